/** Sends requests to the service: what may be repeated, how long it may take, what is accepted. */

import { ConnectionFailed, InvalidInput, refusal, UnexpectedResponse } from "./errors.js";

/**
 * How often and how long a call is tried again.
 *
 * Again are sent: any request that could not be sent, an idempotent one whose response was lost,
 * and one refused with 429 or 503 and a `Retry-After` of at most `waitMsMax`.
 */
export interface Retries {
  /** All attempts together, the first one included; at least 1. */
  readonly attempts: number;
  /** The first wait after a failed connection; each further one is twice as long. */
  readonly waitMs: number;
  readonly waitMsMax: number;
}

/** Options of a client; all may be left out. */
export interface ClientOptions {
  /** The operator's key, for the gate, profiles and wrappers. */
  readonly apiKey?: string | undefined;
  /** A dashboard token, for `me` and wrappers. */
  readonly token?: string | undefined;
  /** The longest wait for one response, its body included. The service answers within 25 s. */
  readonly timeoutMs?: number | undefined;
  readonly retries?: Partial<Retries> | undefined;
  /** The longest response that is read. */
  readonly responseBytesMax?: number | undefined;
  /** The function that sends; the default is the runtime's `fetch`. */
  readonly fetch?: typeof fetch | undefined;
}

/** A request, before it is sent. */
export interface Outgoing {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly credential?: string | undefined;
  /** Whether it may be sent twice. GET and DELETE may (RFC 9110, section 9.2.2). */
  readonly isIdempotent?: boolean;
  /** Whether it carries a proof that one request uses up: it is never sent again. */
  readonly isSingleUse?: boolean;
}

/** A successful response; `json` is undefined if its body is not JSON. */
export interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly json: unknown;
}

const RESPONSE_BYTES_MAX = 16 * 2 ** 20;
const ID = /^[A-Za-z0-9:_-]{1,128}$/;
const HEADER = /^[\x21-\x7e](?:[\x20-\x7e]{0,16383}[\x21-\x7e])?$/;
const TEXT_CHARS_MAX = 2000;
/** Codes of Node's `fetch` for requests of which no byte was sent. */
const NOT_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"]);

/** The service's address and the operator's credentials; nothing that prints it shows them. */
export class Transport {
  readonly baseUrl: string;
  readonly #apiKey: string | undefined;
  readonly #token: string | undefined;
  readonly #retries: Retries;
  readonly #timeoutMs: number;
  readonly #bytesMax: number;
  readonly #fetch: typeof fetch;

  constructor(baseUrl: string, options: ClientOptions) {
    this.baseUrl = checkedUrl(baseUrl);
    for (const credential of [options.apiKey, options.token]) {
      if (credential !== undefined) headerValue("The credential", credential);
    }
    this.#apiKey = options.apiKey;
    this.#token = options.token;
    this.#retries = {
      attempts: positive("retries.attempts", options.retries?.attempts ?? 3),
      waitMs: positive("retries.waitMs", options.retries?.waitMs ?? 100),
      waitMsMax: positive("retries.waitMsMax", options.retries?.waitMsMax ?? 5000),
    };
    this.#timeoutMs = positive("timeoutMs", options.timeoutMs ?? 30_000);
    this.#bytesMax = positive("responseBytesMax", options.responseBytesMax ?? RESPONSE_BYTES_MAX);
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /** The API key; throws `InvalidInput` if there is none. */
  get apiKey(): string {
    if (this.#apiKey === undefined) throw new InvalidInput("This call needs an API key: apiKey.");
    return this.#apiKey;
  }

  /** The dashboard token; throws `InvalidInput` if there is none. */
  get token(): string {
    if (this.#token === undefined) throw new InvalidInput("This call needs a dashboard token.");
    return this.#token;
  }

  /** The token, or else the key, which may lack the scope. */
  get tokenOrKey(): string {
    return this.#token ?? this.apiKey;
  }

  /** The API key, if there is one. */
  get optionalKey(): string | undefined {
    return this.#apiKey;
  }

  /** Sends with retries; returns a success, throws `ServiceRefusal` or `ConnectionFailed`. */
  async send(request: Outgoing): Promise<Received> {
    const { attempts, waitMs, waitMsMax } = this.#retries;
    const repeatable = request.isIdempotent ?? ["GET", "DELETE"].includes(request.method);
    for (let attempt = 1; ; attempt += 1) {
      const isLast = attempt >= attempts || request.isSingleUse === true;
      let received: Received;
      try {
        received = await this.#sendOnce(request);
      } catch (error) {
        const isLost = error instanceof ConnectionFailed;
        if (!isLost || isLast || (error.sent && !repeatable)) throw error;
        await wait(Math.min(spread(waitMs * 2 ** (attempt - 1)), waitMsMax));
        continue;
      }
      if (received.status >= 200 && received.status < 300) return received;
      const refused = refusalOf(received);
      const delayMs = (refused.retryAfterS ?? Infinity) * 1000;
      const canWait = received.status === 429 || received.status === 503;
      if (isLast || !canWait || delayMs > waitMsMax) throw refused;
      await wait(delayMs + spread(waitMs));
    }
  }

  async #sendOnce(request: Outgoing): Promise<Received> {
    const headers: Record<string, string> = { accept: "application/json", ...request.headers };
    if (request.credential !== undefined) headers["authorization"] = `Bearer ${request.credential}`;
    if (request.body !== undefined) headers["content-type"] = "application/json";
    const init: RequestInit = {
      method: request.method,
      headers,
      redirect: "manual", // a redirect would carry the credential to another address
      signal: AbortSignal.timeout(this.#timeoutMs),
    };
    if (request.body !== undefined) init.body = json(request.body);
    let response: Response;
    try {
      response = await this.#fetch(this.baseUrl + request.path, init);
    } catch (error) {
      throw failure(error);
    }
    if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) {
      await response.body?.cancel().catch(() => undefined); // its failure changes nothing
      throw new UnexpectedResponse("The service redirects, which is not followed: see baseUrl.");
    }
    const text = await this.#read(response);
    return { status: response.status, headers: response.headers, json: parsed(text) };
  }

  async #read(response: Response): Promise<string> {
    const reader = response.body?.getReader();
    if (reader === undefined) return "";
    const decoder = new TextDecoder();
    let size = 0;
    let text = "";
    for (;;) {
      let chunk: Uint8Array | undefined;
      try {
        chunk = (await reader.read()).value;
      } catch (error) {
        throw failure(error);
      }
      if (chunk === undefined) return text + decoder.decode();
      size += chunk.byteLength;
      if (size > this.#bytesMax) {
        await reader.cancel().catch(() => undefined); // its failure changes nothing
        throw new UnexpectedResponse(`The response is longer than ${this.#bytesMax} bytes.`);
      }
      text += decoder.decode(chunk, { stream: true });
    }
  }
}

/** Returns a value that fits a header; throws `InvalidInput` without showing the value. */
export function headerValue(name: string, value: string): string {
  if (typeof value !== "string" || !HEADER.test(value)) {
    throw new InvalidInput(`${name} is not printable ASCII text.`);
  }
  return value;
}

/** Returns an id for a path; throws `InvalidInput` if it has other characters than ids have. */
export function segment(name: string, value: string): string {
  if (typeof value !== "string" || !ID.test(value)) {
    throw new InvalidInput(`${name} is not an id: letters, digits, ':', '_' and '-' are.`);
  }
  return value;
}

/** Returns a JSON object; throws `UnexpectedResponse` for any other value. */
export function objectOf(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UnexpectedResponse(`${name} is not a JSON object.`);
  }
  return value as Record<string, unknown>;
}

function checkedUrl(baseUrl: string): string {
  let url: URL;
  try {
    url = new URL(baseUrl);
  } catch {
    throw new InvalidInput("baseUrl is not a URL.");
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw new InvalidInput("baseUrl must begin with https:// or http://.");
  }
  if (url.username !== "" || url.password !== "" || /[?#]/.test(baseUrl)) {
    throw new InvalidInput("baseUrl must have no user name, query or fragment.");
  }
  return url.href.replace(/\/+$/, "");
}

function positive(name: string, value: number): number {
  if (!(Number.isFinite(value) && value > 0)) throw new InvalidInput(`${name} must be above 0.`);
  return value;
}

function json(body: unknown): string {
  try {
    return JSON.stringify(body, (_, value: unknown) => {
      if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError();
      return value;
    });
  } catch {
    throw new InvalidInput("An argument cannot be written as JSON.");
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // what needs JSON refuses it: see `objectOf`
  }
}

/** Returns our error; the runtime's may name the request, and is not kept. */
function failure(error: unknown): ConnectionFailed {
  const { name, cause } = (error ?? {}) as { name?: unknown; cause?: { code?: unknown } };
  const code = typeof cause?.code === "string" ? cause.code : String(name);
  return new ConnectionFailed(`No response of the service: ${code}.`, !NOT_SENT.has(code));
}

function refusalOf(received: Received) {
  const place = `The response with status ${received.status}`;
  const members = objectOf(received.json, place);
  const text = (name: string) => {
    const value = members[name];
    return typeof value === "string" ? value.slice(0, TEXT_CHARS_MAX) : "";
  };
  if (text("code") === "") throw new UnexpectedResponse(`${place} is no error of this service.`);
  const after = received.headers.get("retry-after") ?? "";
  return refusal({
    status: received.status,
    code: text("code"),
    message: text("message"),
    requestId: text("requestId"),
    members,
    retryAfterS: /^[0-9]{1,9}$/.test(after) ? Number(after) : undefined,
    agentSession: received.headers.get("x-agent-session") ?? undefined,
  });
}

/** Returns a random part of it, so that clients do not all come back at once. */
function spread(ms: number): number {
  return ms * (0.5 + Math.random() / 2);
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
