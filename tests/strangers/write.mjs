// node write.mjs INDEX < documents, one a line, with their _id
import { createInterface } from 'node:readline'
import { Client } from '@opensearch-project/opensearch'

const [index] = process.argv.slice(2)
const client = new Client({ node: process.env.OPENSEARCH_URL })

async function* documents() {
  for await (const line of createInterface({ input: process.stdin })) yield JSON.parse(line)
}

const result = await client.helpers.bulk({
  datasource: documents(),
  onDocument({ _id, ...document }) {
    // The helper sends what is second.
    return [{ index: { _index: index, _id } }, document]
  },
  onDrop(dropped) { throw new Error(JSON.stringify(dropped.error)) }
})
console.log(JSON.stringify({ written: result.successful }))
