// node rewrite.mjs INDEX: reads each document and writes it again, with one more field
import { Client } from '@elastic/elasticsearch'

const [index] = process.argv.slice(2)
const client = new Client({ node: process.env.ELASTICSEARCH_URL })

const operations = []
for await (const page of client.helpers.scrollSearch({ index, size: 100, query: { match_all: {} } })) {
  for (const hit of page.body.hits.hits) {
    operations.push({ index: { _index: index, _id: hit._id } }, { ...hit._source, read_by: 'node' })
  }
}
const answer = await client.bulk({ operations })
if (answer.errors) throw new Error(JSON.stringify(answer.items))
console.log(JSON.stringify({ written: answer.items.length }))
