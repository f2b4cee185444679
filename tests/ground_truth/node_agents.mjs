// Honest agents of the Node world. argv: JSON {role, public}; PORT in the environment.
import express from 'express'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { z } from 'zod'

const { role, public: base } = JSON.parse(process.argv[2])
const app = express()
app.disable('x-powered-by')
app.use(express.json({ limit: '64kb' }))

const FACTOR = { gram: 1, kilogram: 1000, pound: 453.59237, ounce: 28.349523, stone: 6350.29318 }

function units() {
  const server = new McpServer({ name: 'units', version: '1.0.2' })
  const unit = z.enum(Object.keys(FACTOR))
  server.registerTool(
    'convert_mass',
    {
      description: 'Converts a mass between units.',
      inputSchema: { amount: z.number(), from: unit, to: unit },
      annotations: { readOnlyHint: true }
    },
    async ({ amount, from, to }) => ({
      content: [{ type: 'text', text: `${((amount * FACTOR[from]) / FACTOR[to]).toPrecision(6)} ${to}` }]
    })
  )
  server.registerTool(
    'list_units',
    { description: 'All units of mass.', annotations: { readOnlyHint: true } },
    async () => ({ content: [{ type: 'text', text: Object.keys(FACTOR).join(', ') }] })
  )
  return server
}

function seed(text) {
  let h = 2166136261
  for (const c of text) h = Math.imul(h ^ c.codePointAt(0), 16777619) >>> 0
  return h
}

if (role === 'mcp') {
  app.post('/mcp', async (request, response) => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
    response.on('close', () => transport.close())
    await units().connect(transport)
    await transport.handleRequest(request, response, request.body)
  })
  app.all('/mcp', (_request, response) => response.status(405).set('allow', 'POST').end())
} else if (role === 'express') {
  app.get('/tides', (request, response) => {
    const port = String(request.query.port ?? '').trim()
    if (!port) return response.status(400).json({ error: 'port is needed' })
    const h = seed(port.toLowerCase())
    response.json({ port, high: `${h % 12}:${String(h % 60).padStart(2, '0')}`, metres: 1 + (h % 70) / 10 })
  })
  app.get('/openapi.json', (_request, response) =>
    response.json({
      openapi: '3.0.0',
      info: { title: 'Tides', version: '2.0.0' },
      servers: [{ url: base }],
      paths: {
        '/tides': {
          get: {
            summary: 'High water of today at a port',
            parameters: [
              { name: 'port', in: 'query', required: true, schema: { type: 'string' }, example: 'Bremen' }
            ],
            responses: { 200: { description: 'High water' }, 400: { description: 'No port' } }
          }
        }
      }
    })
  )
} else {
  const prime = n => { for (let d = 2; d * d <= n; d++) if (n % d === 0) return d; return 0 }
  app.get('/.well-known/agent-card.json', (_request, response) =>
    response.json({
      name: 'Prime desk',
      description: 'Says whether a number is prime, and its smallest divisor.',
      url: `${base}/`,
      version: '0.5.0',
      protocolVersion: '0.3.0',
      capabilities: {},
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      skills: [
        { id: 'prime', name: 'Primes', description: 'Tests a number.', tags: ['numbers'], examples: ['Is 91 prime?'] }
      ]
    })
  )
  app.post('/', (request, response) => {
    const { id = null, method, params } = request.body ?? {}
    if (method !== 'message/send') {
      return response.json({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } })
    }
    const text = (params?.message?.parts ?? []).map(part => part.text ?? '').join(' ')
    const numbers = (text.match(/\d{1,9}/g) ?? []).map(Number).filter(n => n > 1)
    const said = numbers.map(n => (prime(n) ? `${n} is divisible by ${prime(n)}` : `${n} is prime`)).join('; ')
    response.json({
      jsonrpc: '2.0',
      id,
      result: {
        kind: 'message',
        role: 'agent',
        messageId: `m-${Date.now()}`,
        parts: [{ kind: 'text', text: said || 'Name a number above one, and I test it.' }]
      }
    })
  })
}
app.use((_request, response) => response.status(404).json({ error: 'not found' }))
app.use((error, _request, response, _next) => response.status(error.status ?? 500).json({ error: 'bad request' }))
app.listen(Number(process.env.PORT), '127.0.0.1')
