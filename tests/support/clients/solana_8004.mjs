// The registry's own SDK. argv: JSON {act, rpcUrl, indexerUrl, cluster, asset, secretKey: [64 numbers], ...}
// act "build": the transactions of `feedbacks`, as the SDK would send them.
// act "send": loads the agent, sends `feedbacks` with the SDK's confirmation, loads it again.
// act "read": the agent and its reputation, from the node and from the indexer.
// act "alive": the SDK's liveness report; hosts under .example are dialled on loopback, because
//   the SDK refuses private hosts by their names.
import { PublicKey, Keypair, Transaction } from '@solana/web3.js'
import { SolanaSDK } from '8004-solana'

const asked = JSON.parse(process.argv[2])
const signer = Keypair.fromSecretKey(Uint8Array.from(asked.secretKey))
const graphql = asked.indexerUrl && `${asked.indexerUrl}/v2/graphql`
const sdk = new SolanaSDK({
  cluster: asked.cluster,
  rpcUrl: asked.rpcUrl,
  indexerGraphqlUrl: graphql ?? 'http://127.0.0.1:9/v2/graphql',
  signer,
})
const asset = new PublicKey(asked.asset)
const feedbacks = (asked.feedbacks ?? []).map(({ value, feedbackFileHash, ...rest }) => ({
  ...rest,
  value: BigInt(value),
  ...(feedbackFileHash && { feedbackFileHash: Buffer.from(feedbackFileHash, 'hex') }),
}))

const account = async () => {
  const agent = await sdk.loadAgent(asset)
  return agent && {
    owner: agent.getOwnerPublicKey().toBase58(),
    uri: agent.agent_uri,
    name: agent.nft_name,
    count: agent.feedback_count.toString(),
    digest: Buffer.from(agent.feedback_digest).toString('hex'),
  }
}

const build = async (feedback) => {
  const made = await sdk.giveFeedback(asset, feedback, { skipSend: true })
  if (!made.transaction) return { error: made.error }
  const transaction = Transaction.from(Buffer.from(made.transaction, 'base64'))
  return transaction.instructions.map((one) => ({
    programId: one.programId.toBase58(),
    accounts: one.keys.map((key) => ({ ...key, pubkey: key.pubkey.toBase58() })),
    dataHex: Buffer.from(one.data).toString('hex'),
  }))
}

const send = async () => {
  const before = await account()
  const sent = []
  for (const feedback of feedbacks) sent.push(await sdk.giveFeedback(asset, feedback))
  return { before, sent, after: await account() }
}

const read = async () => {
  const wallet = (await sdk.loadAgent(asset)).getAgentWalletPublicKey()?.toBase58()
  return {
    account: await account(),
    summary: await sdk.getEnrichedSummary(asset),
    byId: await sdk.getAgentByAgentId(asked.agentId),
    byWallet: wallet && (await sdk.getAgentByWallet(wallet)),
    feedbacks: await sdk.getFeedbacksFromIndexer(asset, { limit: 100 }),
  }
}

const alive = async () => {
  const dial = globalThis.fetch
  globalThis.fetch = (url, options) =>
    dial(String(url).replace(/^(http:\/\/)[a-z.]+\.example(:|\/)/, '$1127.0.0.1$2'), options)
  return sdk.isItAlive(asset, { timeoutMs: asked.timeoutMs })
}

const acts = { build: () => Promise.all(feedbacks.map(build)), send, read, alive }
const told = await acts[asked.act]()
const plain = (_, value) => (typeof value === 'bigint' ? value.toString() : value)
console.log(JSON.stringify({ status: 200, body: JSON.stringify(told, plain), headers: {} }))
process.exit(0)
