// The stock validator of discovery documents. argv: JSON {document}
import { validate } from 'mppx/discovery'

const { document } = JSON.parse(process.argv[2])
const headers = {}
console.log(JSON.stringify({ status: 200, body: JSON.stringify(validate(document)), headers }))
