// The stock x402 client, version 1. argv: JSON {url, method, body, privateKey}
import { createWalletClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { wrapFetchWithPayment } from 'x402-fetch'

const asked = JSON.parse(process.argv[2])
const account = privateKeyToAccount(asked.privateKey)
const transport = http('http://127.0.0.1:9')
const wallet = createWalletClient({ account, chain: baseSepolia, transport })
const pay = wrapFetchWithPayment(fetch, wallet)
const answer = await pay(asked.url, { method: asked.method, body: asked.body })
const headers = Object.fromEntries(answer.headers)
console.log(JSON.stringify({ status: answer.status, body: await answer.text(), headers }))
process.exit(0)
