/** Express: middleware that lets only callers through that pass the gate. */

import type { Assay } from "./client.js";
import { checker, type GatePolicy, isClaim } from "./guard.js";

interface ExpressRequest {
  readonly baseUrl: string;
  readonly path: string;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly rawHeaders: string[];
}

interface ExpressResponse {
  locals: Record<string, any>;
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
}

/**
 * Returns middleware; the policy is fixed here, and no caller can change it.
 *
 * The decision is in `response.locals.assayDecision`: null on an open path, and where the gate
 * failed open. The request has no `x-assay-*` headers, neither parsed nor raw.
 */
export function expressGate(client: Assay, policy: GatePolicy = {}) {
  const check = checker(client, policy);
  return async (request: ExpressRequest, response: ExpressResponse, next: () => void) => {
    removeClaims(request);
    const outcome = await check(request.baseUrl + request.path, (name) => {
      const value = request.headers[name];
      return Array.isArray(value) ? value.join(", ") : value;
    });
    for (const [name, value] of Object.entries(outcome.headers)) response.setHeader(name, value);
    if (outcome.passes) {
      response.locals["assayDecision"] = outcome.decision;
      next();
      return;
    }
    response.statusCode = outcome.status;
    response.end(outcome.body);
  };
}

function removeClaims(request: ExpressRequest): void {
  for (const name of Object.keys(request.headers)) {
    if (isClaim(name)) delete request.headers[name];
  }
  const raw = request.rawHeaders;
  for (let index = raw.length - 2; index >= 0; index -= 2) {
    if (isClaim(raw[index] ?? "")) raw.splice(index, 2);
  }
}
