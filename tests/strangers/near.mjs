// Finds what is near a text in an index, in two requests.
import { Client } from '@opensearch-project/opensearch'

const client = new Client({ node: process.env.OPENSEARCH_URL ?? 'http://localhost:9200' })

export async function findNear(index, pipeline, text, maxDistance) {
  const document = { _source: { body: text, simhash: { lookup: { max_distance: maxDistance } } } }
  const simulated = await client.ingest.simulate({ id: pipeline, body: { docs: [document] } })
  const [answer] = simulated.body.docs
  if (answer.error) throw new Error(JSON.stringify(answer.error))
  const lookup = answer.doc._source.simhash.lookup
  if (lookup.error) throw new Error(lookup.error)

  const { body: found } = await client.search({ index, body: lookup.body })
  const { _shards: shards, hits } = found
  const isComplete =
    !found.timed_out && !found.terminated_early && shards.failed === 0 && shards.total > 0 &&
    shards.successful === shards.total && hits.total.relation === 'eq' && hits.hits.length === hits.total.value
  if (!isComplete) throw new Error('the answer is not complete')
  return hits.hits.map((hit) => ({ id: hit._id, distance: hit.fields.distance[0] }))
}
