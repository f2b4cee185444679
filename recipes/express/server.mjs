// Express asks Assay before it lets an agent reach the API: npm install express @assay/client
import { Assay } from "@assay/client";
import { expressGate } from "@assay/client/express";
import express from "express";

const { ASSAY_URL = "http://127.0.0.1:8787", ASSAY_KEY, HOST = "127.0.0.1", PORT = "8080" } = process.env;
if (!ASSAY_KEY) throw new Error("Set ASSAY_KEY to your API key.");

const app = express();
const assay = new Assay(ASSAY_URL, { apiKey: ASSAY_KEY });
app.use(expressGate(assay, { minScore: 65, openPaths: ["/health"] }));

app.get("/health", (request, response) => {
  response.json({ ok: true });
});
app.get("/quote", (request, response) => {
  response.json({ price: "1.00", tier: response.locals.assayDecision?.tier });
});

app.listen(Number(PORT), HOST);
