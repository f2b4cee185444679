/** Hono: middleware that lets only callers through that pass the gate. */

import type { Assay, Decision } from "./client.js";
import { checker, type GatePolicy, isClaim, refusalResponse, withoutClaims } from "./guard.js";

interface HonoContext {
  readonly req: { raw: Request };
  set(name: "assayDecision", value: Decision | null): void;
  header(name: string, value: string): void;
}

/** The variables of a guarded application: `new Hono<{ Variables: GateVariables }>()`. */
export interface GateVariables {
  /** Null on an open path, and where the gate failed open. */
  assayDecision: Decision | null;
}

/**
 * Returns middleware; the policy is fixed here, and no caller can change it.
 *
 * The decision is `c.get("assayDecision")`. The request has no `x-assay-*` headers.
 */
export function honoGate(client: Assay, policy: GatePolicy = {}) {
  const check = checker(client, policy);
  return async (c: HonoContext, next: () => Promise<void>): Promise<Response | undefined> => {
    const { raw } = c.req;
    if ([...raw.headers.keys()].some(isClaim)) {
      const { method } = raw;
      const headers = withoutClaims(raw.headers);
      // A body that was read is kept by Hono, and cannot be given to another request.
      const used = raw.bodyUsed;
      c.req.raw = used ? new Request(raw.url, { method, headers }) : new Request(raw, { headers });
    }
    const outcome = await check(new URL(raw.url).pathname, (name) => raw.headers.get(name));
    if (!outcome.passes) return refusalResponse(outcome);
    c.set("assayDecision", outcome.decision);
    await next();
    for (const [name, value] of Object.entries(outcome.headers)) c.header(name, value);
    return undefined;
  };
}
