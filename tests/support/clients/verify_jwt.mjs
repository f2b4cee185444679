// Stock JWT libraries. argv: JSON {library, token, jwks, issuer, audience}; says whether it verifies
import { createPublicKey } from 'node:crypto'
import { createLocalJWKSet, jwtVerify } from 'jose'
import jsonwebtoken from 'jsonwebtoken'

const { library, token, jwks, issuer, audience } = JSON.parse(process.argv[2])

async function verified() {
  if (library === 'jose') {
    return (await jwtVerify(token, createLocalJWKSet(jwks), { issuer, audience })).payload
  }
  const { kid } = jsonwebtoken.decode(token, { complete: true }).header
  const key = createPublicKey({ key: jwks.keys.find((one) => one.kid === kid), format: 'jwk' })
  return jsonwebtoken.verify(token, key, { issuer, audience, algorithms: ['ES256'] })
}

let answer = { status: 200, body: '', headers: {} }
try {
  answer.body = JSON.stringify(await verified())
} catch (error) {
  answer = { status: 401, body: String(error), headers: {} }
}
console.log(JSON.stringify(answer))
