/** The client: the gate, profiles, wrappers, an agent's session, decision tokens. */

import { UnexpectedResponse } from "./errors.js";
import type { components } from "./openapi.js";
import type { AgentSession } from "./session.js";
import { type DecisionClaims, DecisionVerifier } from "./tokens.js";
import { type ClientOptions, headerValue, objectOf, segment, Transport } from "./transport.js";

type Schemas = components["schemas"];

/** Options of a gate call, besides the agent. Source: interface.md#gate-decision. */
export interface GateOptions {
  readonly address?: string | undefined;
  readonly session?: string | undefined;
  readonly challenge?: string | undefined;
  readonly signature?: string | undefined;
  readonly chain?: string | undefined;
  readonly minScore?: number | undefined;
  readonly ttlMs?: number | undefined;
  readonly trustSignals?: readonly string[] | undefined;
  readonly coldStart?: ColdStart | undefined;
}

/** What the gate does with an agent of which too little is known. */
export type ColdStart = "deny" | "throttle" | "allow";

/**
 * A gate decision; enforce `allow`. Source: interface.md#gate-decision.
 *
 * `decisionToken` and `agentSession` are not enumerable: a decision that is logged has neither.
 */
export type Decision = Readonly<Schemas["GateResponse"]> & {
  /** A session that began with this call, for the agent. */
  readonly agentSession?: string;
};

/** The trust profile of a registered agent. Source: interface.md#trust-profile. */
export type Profile = Readonly<Schemas["AgentProfileResponse"]>;

/** The result of an evaluation on demand. Source: interface.md#sandbox-result. */
export type Evaluation = Readonly<Schemas["SandboxResponse"]>;

/** A wrapper of the operator. Source: interface.md#wrapper-configuration. */
export type Wrapper = Readonly<Schemas["WarnedEndpointResponse"]>;

/** Members of a new wrapper; `path` and `pricePerCall` are required. */
export type NewWrapper = Pick<Schemas["EndpointRequest"], "path" | "pricePerCall"> &
  Partial<Schemas["EndpointRequest"]>;

/** Members of a wrapper to change. */
export type WrapperChanges = Partial<Schemas["EndpointPatch"]>;

/** The operator's account and its allowance. Source: interface.md#account-responses. */
export type Account = Readonly<Schemas["Me"]>;

/** A client of one service. Every method throws an `AssayError`; `errors.ts` has the tree. */
export class Assay {
  readonly #transport: Transport;
  readonly #verifier: DecisionVerifier;

  constructor(baseUrl: string, options: ClientOptions = {}) {
    this.#transport = new Transport(baseUrl, options);
    this.#verifier = new DecisionVerifier(this.#transport);
  }

  /**
   * Asks whether the agent may pass; a denial is a `Decision` with `allow` false.
   *
   * A lost response is asked for again, which can count twice in the allowance. A call with a
   * signed challenge is sent once.
   */
  async gate(agentId: string, options: GateOptions = {}): Promise<Decision> {
    const { address, session, challenge, signature, chain, ...body } = options;
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries({ address, session, challenge, signature })) {
      if (value !== undefined) headers[`x-agent-${name}`] = headerValue(name, value);
    }
    const { minScore, ttlMs, trustSignals, coldStart } = body;
    const isProof = signature !== undefined;
    const received = await this.#transport.send({
      method: "POST",
      path: `/operator/gate/${segment("agentId", agentId)}${query(chain)}`,
      headers,
      body: { minScore, ttlMs, trustSignals, coldStart },
      credential: this.#transport.apiKey,
      isIdempotent: !isProof,
      isSingleUse: isProof,
    });
    return decisionOf(received.json, received.headers.get("x-agent-session"));
  }

  /** Fetches the trust profile of a registered agent. */
  async profile(agentId: string, options: { chain?: string } = {}): Promise<Profile> {
    const path = `/operator/agent/${segment("agentId", agentId)}${query(options.chain)}`;
    const credential = this.#transport.apiKey;
    const received = await this.#transport.send({ method: "GET", path, credential });
    return withMembers(received.json, "The profile", { tier: "string", score: "number" });
  }

  /** Evaluates an agent, or the key agent of an address, now; takes up to 25 s. */
  async evaluate(agentId: string, options: { chain?: string } = {}): Promise<Evaluation> {
    const isAddress = /^0x[0-9a-fA-F]{40}$/.test(agentId);
    const operation = isAddress ? "trigger-sandbox-key" : "trigger-sandbox";
    const path = `/operator/${operation}/${segment("agentId", agentId)}${query(options.chain)}`;
    const credential = this.#transport.optionalKey;
    const received = await this.#transport.send({ method: "POST", path, credential });
    return withMembers(received.json, "The evaluation", { tier: "string", score: "number" });
  }

  /** Lists the operator's wrappers, newest first, inactive ones included. */
  async wrappers(): Promise<Wrapper[]> {
    const credential = this.#transport.tokenOrKey;
    const path = "/operator/endpoints";
    const received = await this.#transport.send({ method: "GET", path, credential });
    if (!Array.isArray(received.json)) {
      throw new UnexpectedResponse("The list of wrappers is not a JSON array.");
    }
    return received.json.map(wrapperOf);
  }

  /** Creates a wrapper; it answers at once. */
  async createWrapper(members: NewWrapper): Promise<Wrapper> {
    const credential = this.#transport.tokenOrKey;
    const path = "/operator/endpoints";
    const request = { method: "POST", path, body: members, credential } as const;
    return wrapperOf((await this.#transport.send(request)).json);
  }

  /** Changes the members that are given; throws `Conflict` if `revision` is not the newest. */
  async updateWrapper(
    wrapperId: string,
    members: WrapperChanges,
    options: { revision?: number } = {},
  ): Promise<Wrapper> {
    const path = `/operator/endpoints/${segment("wrapperId", wrapperId)}`;
    const match = options.revision === undefined ? {} : { "if-match": `"${options.revision}"` };
    const credential = this.#transport.tokenOrKey;
    const request = { method: "PATCH", path, headers: match, body: members, credential } as const;
    return wrapperOf((await this.#transport.send(request)).json);
  }

  /** Deactivates a wrapper at once. */
  async deleteWrapper(wrapperId: string): Promise<void> {
    const path = `/operator/endpoints/${segment("wrapperId", wrapperId)}`;
    const credential = this.#transport.tokenOrKey;
    await this.#transport.send({ method: "DELETE", path, credential });
  }

  /** Fetches the account and its allowance; needs the dashboard `token`. */
  async me(): Promise<Account> {
    const credential = this.#transport.token;
    const path = "/operator/me";
    const received = await this.#transport.send({ method: "GET", path, credential });
    return withMembers(received.json, "The account", { operator: "object", allowance: "object" });
  }

  /** Proves an agent's address: challenge, signature, session. Returns the same object. */
  async openSession(session: AgentSession): Promise<AgentSession> {
    const path = `/operator/key/${segment("address", session.address)}/challenge`;
    const begun = await this.#transport.send({ method: "POST", path });
    const { challenge } = objectOf(begun.json, "The challenge");
    if (typeof challenge !== "string") {
      throw new UnexpectedResponse("The challenge has no text.");
    }
    const signature = (await session.answer(challenge))["x-agent-signature"];
    const received = await this.#transport.send({
      method: "POST",
      path: "/operator/key/verify",
      body: { agentAddress: session.address, challenge, signature },
      isSingleUse: true,
    });
    session.update(received.headers);
    if (!received.headers.has("x-agent-session") || session.token === undefined) {
      throw new UnexpectedResponse("The verified proof brought no session.");
    }
    return session;
  }

  /**
   * Verifies a decision token offline, with cached keys; throws `InvalidToken`.
   *
   * `audience` is your operator id. `issuer` is the service's public address; the default is the
   * address of this client.
   */
  async verifyDecision(
    token: string,
    expected: { audience: string; issuer?: string },
  ): Promise<DecisionClaims> {
    return await this.#verifier.verify(token, expected.audience, expected.issuer);
  }
}

function query(chain: string | undefined): string {
  return chain === undefined ? "" : `?${new URLSearchParams({ chain })}`;
}

function wrapperOf(value: unknown): Wrapper {
  return withMembers(value, "The wrapper", { id: "string", path: "string", active: "boolean" });
}

/** Returns a JSON object as `T`, whose members a program relies on have the stated types. */
function withMembers<T>(value: unknown, name: string, types: Record<string, string>): T {
  const members = objectOf(value, name);
  for (const [member, type] of Object.entries(types)) {
    if (typeof members[member] !== type || members[member] === null) {
      throw new UnexpectedResponse(`${name} has no ${member} of the type ${type}.`);
    }
  }
  return members as T;
}

function decisionOf(value: unknown, session: string | null): Decision {
  const members = withMembers<Record<string, unknown>>(value, "The decision", {
    allow: "boolean",
    tier: "string",
    score: "number",
    route: "string",
    agentId: "string",
    identityProven: "boolean",
    decisionToken: "string",
  });
  const decision = { ...members };
  Object.defineProperty(decision, "decisionToken", { enumerable: false });
  if (session !== null) Object.defineProperty(decision, "agentSession", { value: session });
  return decision as unknown as Decision;
}
