// Guarded applications: node guarded.mjs KIND KEY [[URL, POLICY], …]. Prints their addresses; they answer with what
// they see.
import { Assay, protect } from "@assay/client";
import { expressGate } from "@assay/client/express";
import { honoGate } from "@assay/client/hono";
import { gateProxy, protectRoute } from "@assay/client/next";
import { serve } from "@hono/node-server";
import express from "express";
import { Hono } from "hono";
import { NextRequest } from "next/server.js";

const [kind, key, given] = process.argv.slice(2);
const shown = (names, decision) => ({ names: [...names], allow: decision?.allow ?? null });

function fetchHandler(assay, policy) {
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

function listening(assay, policy) {
  if (kind !== "express") {
    const options = { fetch: fetchHandler(assay, policy), hostname: "127.0.0.1", port: 0 };
    return new Promise((resolve) => serve(options, ({ port }) => resolve(port)));
  }
  const app = express().use(expressGate(assay, policy));
  app.use((request, response) => {
    const raw = request.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
    response.json(shown(new Set([...Object.keys(request.headers), ...raw]), response.locals.assayDecision));
  });
  return new Promise((resolve) => {
    const server = app.listen(0, "127.0.0.1", () => resolve(server.address().port));
  });
}

const addresses = [];
for (const [url, policy] of JSON.parse(given)) {
  const assay = new Assay(url, { apiKey: key, retries: { attempts: 1 } });
  addresses.push(`http://127.0.0.1:${await listening(assay, policy)}`);
}
console.log(JSON.stringify(addresses));
