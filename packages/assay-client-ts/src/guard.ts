/**
 * Guards an application: asks the gate about each caller, by the policy of its operator.
 *
 * The caller names itself by `x-agent-id`, `x-agent-address` and a proof. It chooses nothing else.
 * If the gate cannot decide, the request is refused, unless the policy says `failOpen`.
 */

import type { Assay, ColdStart, Decision, GateOptions } from "./client.js";
import {
  AllowanceUsedUp,
  AssayError,
  ChallengeRequired,
  ConnectionFailed,
  IdentityMismatch,
  IdentityRequired,
  InvalidInput,
  InvalidRequest,
  NotFound,
  ServiceRefusal,
  SignatureInvalid,
  TooManyRequests,
  Unavailable,
  UnexpectedResponse,
} from "./errors.js";

/** What the application's operator asks of callers; no caller can change it. */
export interface GatePolicy {
  /** The least score, from 0 to 100; the default is 65. */
  readonly minScore?: number;
  readonly ttlMs?: number;
  readonly trustSignals?: readonly string[];
  readonly coldStart?: ColdStart;
  /** Chains that a caller may name in `x-chain`; without any, the service's default chain. */
  readonly chains?: readonly string[];
  /** Whether callers pass without a decision while the service is unreachable or answers 5xx. */
  readonly failOpen?: boolean;
  /** Exact paths that need no decision, such as `/health`. */
  readonly openPaths?: readonly string[];
}

/** The caller passes. `decision` is null on an open path, and where the gate failed open. */
export interface Passed {
  readonly passes: true;
  readonly decision: Decision | null;
  /** To add to the response: the session that began, if one did. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The caller is refused with this response, whose body is in the form of the service's errors. */
export interface Refused {
  readonly passes: false;
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Asks the gate about the caller of a request for `path` with these headers. */
export type Check = (
  path: string,
  header: (name: string) => string | null | undefined,
) => Promise<Passed | Refused>;

/** Refusals that are about the caller and reach it as they are. All others are the operator's. */
const CALLERS_FAULTS = [
  InvalidRequest,
  IdentityRequired,
  ChallengeRequired,
  SignatureInvalid,
  IdentityMismatch,
  NotFound,
];
const DENIAL = ["tier", "score", "scoreLow", "scoreHigh", "minScore", "denialReason", "reasons"];
const ADVICE = ["improve", "problems", "didYouMean"];
/** A session and a signature have no spaces: two headers that a server joined do. */
const JOINED = /[\s,]/;

/** Returns the check that guards share; throws `InvalidInput` for a policy that cannot be sent. */
export function checker(client: Assay, given: GatePolicy = {}): Check {
  const policy = { ...given, minScore: given.minScore ?? 65 };
  if (!Number.isFinite(policy.minScore) || policy.minScore < 0 || policy.minScore > 100) {
    throw new InvalidInput("minScore must be a number from 0 to 100.");
  }
  const openPaths = new Set(policy.openPaths);
  const chains = new Set(policy.chains);
  return async (path, header) => {
    if (openPaths.has(path)) return { passes: true, decision: null, headers: {} };
    try {
      const [agentId, options] = asked(policy, chains, (name) => header(name) ?? undefined);
      const decision = await client.gate(agentId, options);
      const headers = session(decision.agentSession);
      return decision.allow === true ? { passes: true, decision, headers } : denied(decision, headers);
    } catch (error) {
      return withoutDecision(policy.failOpen === true, error);
    }
  };
}

/** Returns whether a header may come from nobody but a guard: `x-assay-`, in any spelling. */
export function isClaim(name: string): boolean {
  return name.toLowerCase().replaceAll("_", "-").startsWith("x-assay-");
}

/** Returns headers without `x-assay-*`; no caller may say what the gate decided. */
export function withoutClaims(headers: Headers): Headers {
  return new Headers([...headers].filter(([name]) => !isClaim(name)));
}

/** A handler of fetch requests, as edge runtimes and Next's route handlers have. */
export type Handler<R extends Request, A extends unknown[]> = (
  request: R,
  decision: Decision | null,
  ...rest: A
) => Response | Promise<Response>;

/**
 * Returns a fetch handler that only callers reach that pass the gate.
 *
 * The decision is the second argument of `handler`; the request has no `x-assay-*` headers.
 */
export function protect<A extends unknown[]>(
  client: Assay,
  policy: GatePolicy,
  handler: Handler<Request, A>,
): (request: Request, ...rest: A) => Promise<Response> {
  return guarded(client, policy, handler, (request, init) => new Request(request, init));
}

/** `protect` for another kind of request; `copy` makes one with other headers. */
export function guarded<R extends Request, A extends unknown[]>(
  client: Assay,
  policy: GatePolicy,
  handler: Handler<R, A>,
  copy: (request: R, init: { headers: Headers }) => R,
): (request: R, ...rest: A) => Promise<Response> {
  const check = checker(client, policy);
  return async (request, ...rest) => {
    const outcome = await check(new URL(request.url).pathname, (name) => request.headers.get(name));
    if (!outcome.passes) return refusalResponse(outcome);
    const hasClaims = [...request.headers.keys()].some(isClaim);
    const kept = hasClaims ? copy(request, { headers: withoutClaims(request.headers) }) : request;
    return withHeaders(await handler(kept, outcome.decision, ...rest), outcome.headers);
  };
}

/** Returns the response of a refused caller. */
export function refusalResponse({ status, body, headers }: Refused): Response {
  return new Response(body, { status, headers });
}

function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  const entries = Object.entries(headers);
  if (entries.length === 0) return response;
  const copy = new Response(response.body, response); // a fetched response's headers are immutable
  for (const [name, value] of entries) copy.headers.set(name, value);
  return copy;
}

/** Returns whom to ask about and how; throws `InvalidInput` or `NobodyNamed`. */
function asked(
  policy: GatePolicy & { minScore: number },
  chains: ReadonlySet<string>,
  header: (name: string) => string | undefined,
): [string, GateOptions] {
  const chain = header("x-chain");
  if (chain !== undefined && !chains.has(chain)) {
    throw new InvalidInput("The header x-chain names a chain that is not accepted here.");
  }
  const address = header("x-agent-address");
  const agentId = header("x-agent-id") || address;
  if (!agentId) throw new NobodyNamed();
  const proof = { session: header("x-agent-session"), signature: header("x-agent-signature") };
  for (const [name, value] of Object.entries({ address, ...proof })) {
    if (value !== undefined && JOINED.test(value)) {
      throw new InvalidInput(`The header x-agent-${name} is malformed, or is there twice.`);
    }
  }
  const { minScore, ttlMs, trustSignals, coldStart } = policy;
  const challenge = header("x-agent-challenge");
  const options = { address, ...proof, challenge, chain, minScore, ttlMs, trustSignals, coldStart };
  return [agentId, options];
}

class NobodyNamed extends AssayError {}

function session(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { "x-agent-session": token };
}

/** Returns the 403 of a denial, with the members of a wrapper's (interface.md#wrapper-errors). */
function denied(decision: Decision, headers: Record<string, string>): Refused {
  const members = Object.entries(decision).filter(([n]) => [...DENIAL, ...ADVICE].includes(n));
  const message = `The agent's score of ${decision.score} does not pass here.`;
  return refused(403, { ...form("trust_denied", message), ...Object.fromEntries(members) }, headers);
}

/** Returns what a failed gate call means for the caller. Only its own faults reach it in full. */
function withoutDecision(failOpen: boolean, error: unknown): Passed | Refused {
  if (error instanceof NobodyNamed) {
    const message = "Send x-agent-address, and x-agent-id for a registered agent, and prove the address.";
    return refused(401, form("identity_required", message), {});
  }
  if (error instanceof InvalidInput) return refused(400, form("invalid_request", error.message), {});
  const known = error instanceof ServiceRefusal ? error : undefined;
  const headers = session(known?.agentSession);
  if (known !== undefined && CALLERS_FAULTS.some((kind) => known instanceof kind)) {
    return refused(known.status, known.members, headers);
  }
  const isDown = [ConnectionFailed, UnexpectedResponse, Unavailable].some((k) => error instanceof k);
  if (isDown && failOpen) return { passes: true, decision: null, headers };
  if (error instanceof TooManyRequests && !(error instanceof AllowanceUsedUp)) {
    const retry = { "retry-after": String(error.retryAfterS ?? 1) };
    const members = form("rate_limited", "Too many requests: try again later.");
    return refused(429, members, { ...headers, ...retry });
  }
  const retry = { "retry-after": String(known?.retryAfterS ?? 5) };
  const message = "The gate cannot decide about callers now: try again later.";
  return refused(503, form("gate_unavailable", message), { ...headers, ...retry });
}

function form(code: string, message: string): Record<string, unknown> {
  return { error: code, code, message };
}

function refused(
  status: number,
  members: Readonly<Record<string, unknown>>,
  more: Record<string, string>,
): Refused {
  const headers = { "content-type": "application/json", "cache-control": "no-store", ...more };
  return { passes: false, status, body: JSON.stringify(members), headers };
}
