// A guarded application: node guarded.mjs KIND URL KEY POLICY. Prints its address; answers with what it sees.
import { Assay, protect } from "@assay/client";
import { expressGate } from "@assay/client/express";
import { honoGate } from "@assay/client/hono";
import { gateProxy, protectRoute } from "@assay/client/next";
import { serve } from "@hono/node-server";
import express from "express";
import { Hono } from "hono";
import { NextRequest } from "next/server.js";

const [kind, url, key, given] = process.argv.slice(2);
const assay = new Assay(url, { apiKey: key, retries: { attempts: 1 } });
const policy = JSON.parse(given);
const shown = (names, decision) => ({ names: [...names], allow: decision?.allow ?? null });

function fetchHandler() {
  if (kind === "fetch") return protect(assay, policy, (r, d) => Response.json(shown(r.headers.keys(), d)));
  if (kind === "hono") {
    const app = new Hono().use(honoGate(assay, policy));
    return app.all("*", (c) => c.json(shown(Object.keys(c.req.header()), c.get("assayDecision")))).fetch;
  }
  if (kind === "next route") {
    const handler = protectRoute(assay, policy, (r, d) => Response.json(shown(r.headers.keys(), d)));
    return (request) => handler(new NextRequest(request.url, request));
  }
  const proxy = gateProxy(assay, policy);
  return async (request) => {
    const response = await proxy(new NextRequest(request.url, request));
    if (!response.headers.has("x-middleware-next")) return response;
    // Next gives the application these headers, and no others.
    const names = response.headers.get("x-middleware-override-headers").split(",");
    const values = Object.fromEntries(names.map((n) => [n, response.headers.get(`x-middleware-request-${n}`)]));
    const allow = "x-assay-decision-token" in values ? true : null;
    const session = response.headers.get("x-agent-session");
    return Response.json({ names, allow, values }, { headers: session ? { "x-agent-session": session } : {} });
  };
}

if (kind === "express") {
  const app = express().use(expressGate(assay, policy));
  app.use((request, response) => {
    const raw = request.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
    response.json(shown(new Set([...Object.keys(request.headers), ...raw]), response.locals.assayDecision));
  });
  const server = app.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
} else {
  const options = { fetch: fetchHandler(), hostname: "127.0.0.1", port: 0 };
  serve(options, ({ port }) => console.log(`http://127.0.0.1:${port}`));
}
