/** Client of Assay for fetch-based runtimes: Node 20 and newer, browsers and edge runtimes. */

export * from "./client.js";
export * from "./errors.js";
export { type GatePolicy, type Handler, protect } from "./guard.js";
export { AgentSession, type Sign } from "./session.js";
export { CLOCK_SKEW_S, type DecisionClaims } from "./tokens.js";
export type { ClientOptions, Retries } from "./transport.js";
