// Cloudflare's signer. argv: JSON {jwk, requests: [{url, method, headers, created, expires, nonce?, components?}]}
import { signatureHeaders } from 'web-bot-auth'
import { signerFromJWK } from 'web-bot-auth/crypto'

const asked = JSON.parse(process.argv[2])
const signer = await signerFromJWK(asked.jwk)
const signed = []
for (const { url, method, headers, created, expires, ...more } of asked.requests) {
  const request = new Request(url, { method, headers })
  const times = { created: new Date(created * 1000), expires: new Date(expires * 1000) }
  signed.push(await signatureHeaders(request, signer, { ...times, ...more }))
}
console.log(JSON.stringify({ status: 200, body: JSON.stringify(signed), headers: {} }))
