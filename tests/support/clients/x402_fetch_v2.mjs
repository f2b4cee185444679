// The stock x402 client, version 2. argv: JSON {url, method, body, privateKey}
import { ExactEvmScheme } from '@x402/evm'
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import { privateKeyToAccount } from 'viem/accounts'

const asked = JSON.parse(process.argv[2])
const account = privateKeyToAccount(asked.privateKey)
const pay = wrapFetchWithPaymentFromConfig(fetch, {
  schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(account) }],
})
const answer = await pay(asked.url, { method: asked.method, body: asked.body })
const headers = Object.fromEntries(answer.headers)
console.log(JSON.stringify({ status: answer.status, body: await answer.text(), headers }))
process.exit(0)
