// node lookups.mjs INDEX PIPELINE < {"text", "max_distance"} a line > what was found, a line for each
import { createInterface } from 'node:readline'
import { findNear } from './near.mjs'

const [index, pipeline] = process.argv.slice(2)
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line)
  console.log(JSON.stringify(await findNear(index, pipeline, asked.text, asked.max_distance)))
}
