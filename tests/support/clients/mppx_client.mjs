// The stock MPP client. argv: JSON {url, method, body, privateKey, rpcUrl, chainId, mode: pull | push}
import { createClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { tempo as tempoMainnet, tempoModerato } from 'viem/chains'
import { Mppx, tempo } from 'mppx/client'

const asked = JSON.parse(process.argv[2])
const account = privateKeyToAccount(asked.privateKey)
const chain = asked.chainId === tempoMainnet.id ? tempoMainnet : tempoModerato
const getClient = () =>
  createClient({ account, chain, transport: http(asked.rpcUrl) })
const mppx = Mppx.create({
  methods: [tempo({ account, getClient, mode: asked.mode })],
  polyfill: false,
})
const answer = await mppx.fetch(asked.url, { method: asked.method, body: asked.body })
const headers = Object.fromEntries(answer.headers)
console.log(JSON.stringify({ status: answer.status, body: await answer.text(), headers }))
process.exit(0)
