/** Next: a guard of route handlers, and one for `proxy.ts` (`middleware.ts` before Next 16). */

import { NextRequest, NextResponse } from "next/server.js";

import type { Assay, Decision } from "./client.js";
import { checker, type GatePolicy, guarded, type Handler, refusalResponse, withoutClaims } from "./guard.js";
import { parse } from "./tokens.js";

/**
 * Returns a route handler that only callers reach that pass the gate.
 *
 * The decision is the second argument of `handler`, before Next's context. The request has no
 * `x-assay-*` headers. `headers()` of `next/headers` still has what the caller sent.
 */
export function protectRoute<A extends unknown[]>(
  client: Assay,
  policy: GatePolicy,
  handler: Handler<NextRequest, A>,
): (request: NextRequest, ...rest: A) => Promise<Response> {
  return guarded(client, policy, handler, (request, init) => new NextRequest(request, init));
}

/**
 * Returns a function for `proxy.ts`: only callers that pass the gate reach pages and routes.
 *
 * It replaces all `x-assay-*` headers: `x-assay-agent`, `-tier`, `-score`, `-route`,
 * `-identity-proven` and `-decision-token` say what the gate decided, and are absent without a
 * decision.
 */
export function gateProxy(client: Assay, policy: GatePolicy = {}) {
  const check = checker(client, policy);
  return async (request: NextRequest): Promise<Response> => {
    const outcome = await check(new URL(request.url).pathname, (name) => request.headers.get(name));
    if (!outcome.passes) return refusalResponse(outcome);
    const headers = withoutClaims(request.headers);
    if (outcome.decision !== null) addClaims(headers, outcome.decision);
    return NextResponse.next({ request: { headers }, headers: outcome.headers });
  };
}

function addClaims(headers: Headers, decision: Decision): void {
  const { tier, score, route, identityProven, decisionToken } = decision;
  headers.set("x-assay-agent", String(parse(decisionToken).claims["sub"]));
  headers.set("x-assay-tier", tier);
  headers.set("x-assay-score", String(score));
  headers.set("x-assay-route", route);
  headers.set("x-assay-identity-proven", String(identityProven));
  headers.set("x-assay-decision-token", decisionToken);
}
