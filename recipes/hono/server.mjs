// Hono asks Assay before it lets an agent reach the API: npm install hono @hono/node-server @assay/client
import { Assay } from "@assay/client";
import { honoGate } from "@assay/client/hono";
import { serve } from "@hono/node-server";
import { Hono } from "hono";

const { ASSAY_URL = "http://127.0.0.1:8787", ASSAY_KEY, HOST = "127.0.0.1", PORT = "8080" } = process.env;
if (!ASSAY_KEY) throw new Error("Set ASSAY_KEY to your API key.");

const app = new Hono();
const assay = new Assay(ASSAY_URL, { apiKey: ASSAY_KEY });
app.use(honoGate(assay, { minScore: 65, openPaths: ["/health"] }));

app.get("/health", (c) => c.json({ ok: true }));
app.get("/quote", (c) => c.json({ price: "1.00", tier: c.get("assayDecision")?.tier }));

serve({ fetch: app.fetch, hostname: HOST, port: Number(PORT) });
