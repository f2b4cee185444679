/**
 * Verifies decision tokens offline (conventions.md#gate).
 *
 * Only compact JWS by ES256 is accepted (RFC 7518, section 3.4): the token does not choose its
 * algorithm, and a key of another kind is never used (RFC 8725, section 3.1).
 */

import { InvalidToken, UnexpectedResponse } from "./errors.js";
import { objectOf, type Transport } from "./transport.js";

/** The claims of a verified decision token. Source: conventions.md#gate. */
export interface DecisionClaims {
  readonly iss: string;
  readonly aud: string;
  /** The agent and its chain, such as `eip155:1/22`. */
  readonly sub: string;
  readonly jti: string;
  readonly iat: number;
  readonly exp: number;
  readonly agentAddress: string;
  readonly chain: string;
  readonly allow: boolean;
  readonly score: number;
  readonly minScore: number;
  readonly tier: string;
  readonly riskLevel: string;
  readonly route: string;
}

/** How far the clocks of the service and of the verifier may differ. */
export const CLOCK_SKEW_S = 5;

const FORM = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;
const TYPE = "assay-decision+jwt";
const TOKEN_CHARS_MAX = 8192;
const KEYS_MAX = 100;
const SIGNATURE_BYTES = 64;
/** Keys are fetched again after this time. */
const KEYS_MS = 600_000;
/** An unknown key id has keys fetched at most this often: invented ids cause no requests. */
const REFRESH_MS = 60_000;
const ES256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const CLAIMS = {
  string: ["iss", "aud", "sub", "jti", "agentAddress", "chain", "tier", "riskLevel", "route"],
  number: ["iat", "exp", "score", "minScore"],
  boolean: ["allow"],
};

/** Holds the service's keys; they are fetched when first needed. */
export class DecisionVerifier {
  readonly #transport: Transport;
  #keys = new Map<string, CryptoKey>();
  #fetchedAt = -Infinity;
  #askedAt = -Infinity;
  #fetching: Promise<void> | undefined;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Returns the claims of a valid token; throws `InvalidToken`. */
  async verify(token: string, audience: string, issuer?: string): Promise<DecisionClaims> {
    const { kid, signed, signature, claims } = parse(token);
    const key = await this.#key(kid);
    if (!(await crypto.subtle.verify(ES256, key, signature, signed))) {
      throw new InvalidToken("The signature is not the service's.");
    }
    check(claims, audience, issuer ?? this.#transport.baseUrl);
    return claims as unknown as DecisionClaims;
  }

  async #key(kid: string): Promise<CryptoKey> {
    const now = performance.now();
    const isStale = now - this.#fetchedAt >= KEYS_MS;
    const mayAsk = now - this.#askedAt >= REFRESH_MS;
    if (this.#fetching === undefined && (isStale || (!this.#keys.has(kid) && mayAsk))) {
      this.#askedAt = now;
      this.#fetching = this.#fetchKeys().finally(() => (this.#fetching = undefined));
    }
    if (isStale || !this.#keys.has(kid)) await this.#fetching;
    const key = this.#keys.get(kid);
    if (key === undefined) throw new InvalidToken("The service has no key of the token's key id.");
    return key;
  }

  async #fetchKeys(): Promise<void> {
    const received = await this.#transport.send({ method: "GET", path: "/.well-known/jwks.json" });
    const listed = objectOf(received.json, "The key set")["keys"];
    if (!Array.isArray(listed)) throw new UnexpectedResponse("The key set has no keys.");
    const keys = new Map<string, CryptoKey>();
    for (const one of listed.slice(0, KEYS_MAX)) {
      const jwk = objectOf(one, "A key of the key set");
      if (typeof jwk["kid"] === "string" && isUsable(jwk)) keys.set(jwk["kid"], await imported(jwk));
    }
    this.#keys = keys;
    this.#fetchedAt = performance.now();
  }
}

/** Returns whether a key may verify ES256 signatures (RFC 7517, section 4). */
function isUsable(jwk: Record<string, unknown>): boolean {
  const isP256 = jwk["kty"] === "EC" && jwk["crv"] === "P-256";
  return isP256 && (jwk["alg"] ?? "ES256") === "ES256" && (jwk["use"] ?? "sig") === "sig";
}

async function imported(jwk: Record<string, unknown>): Promise<CryptoKey> {
  const plain = { kty: "EC", crv: "P-256", x: String(jwk["x"]), y: String(jwk["y"]) };
  try {
    return await crypto.subtle.importKey("jwk", plain, ES256, false, ["verify"]);
  } catch {
    throw new UnexpectedResponse("A key of the key set is malformed.");
  }
}

/** Returns the parts of a token of the right form; nothing of it is verified. */
export function parse(token: string) {
  if (typeof token !== "string" || token.length > TOKEN_CHARS_MAX || !FORM.test(token)) {
    throw new InvalidToken("The token is not a compact JWS.");
  }
  const [head = "", payload = "", last = ""] = token.split(".");
  const header = objectIn(head);
  if (header["alg"] !== "ES256" || header["typ"] !== TYPE || "crit" in header) {
    throw new InvalidToken("The token is not a decision signed by ES256.");
  }
  const kid = header["kid"];
  const signature = bytesOf(last);
  if (typeof kid !== "string" || signature.byteLength !== SIGNATURE_BYTES) {
    throw new InvalidToken("The token has no key id, or no signature by ES256.");
  }
  const signed = new TextEncoder().encode(`${head}.${payload}`);
  return { kid, signed, signature, claims: objectIn(payload) };
}

function check(claims: Record<string, unknown>, audience: string, issuer: string): void {
  const nowS = Date.now() / 1000;
  for (const [type, names] of Object.entries(CLAIMS)) {
    for (const name of names) {
      if (typeof claims[name] !== type) throw new InvalidToken(`The claim ${name} is malformed.`);
    }
  }
  if (claims["iss"] !== issuer) throw new InvalidToken("The token is of another issuer.");
  if (claims["aud"] !== audience) throw new InvalidToken("The token is for another audience.");
  if (nowS >= Number(claims["exp"]) + CLOCK_SKEW_S) throw new InvalidToken("The token has expired.");
  if (Number(claims["iat"]) > nowS + CLOCK_SKEW_S) {
    throw new InvalidToken("The token is from the future.");
  }
}

function objectIn(part: string): Record<string, unknown> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytesOf(part));
    return objectOf(JSON.parse(text), "A part of the token");
  } catch {
    throw new InvalidToken("A part of the token is not a JSON object.");
  }
}

function bytesOf(part: string) {
  try {
    const text = atob(part.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(text, (character) => character.charCodeAt(0));
  } catch {
    throw new InvalidToken("A part of the token is not base64url.");
  }
}
