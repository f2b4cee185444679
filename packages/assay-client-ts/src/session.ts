/** The agent's side of the proof of its address (interface.md#agent-identity). */

import { InvalidInput } from "./errors.js";

const ADDRESS = /^(?:0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$/;
const CHALLENGE =
  /^[\x20-\x7e]{1,300} asks (\S{32,44}) to prove control of this address\. Purpose: agent session\. Nonce: [0-9a-f]{32}\. [\x20-\x7e]{1,300}$/;
const TOKEN = /^[\x21-\x7e]{1,8192}$/;

/** Signs a text as an EIP-191 personal message; returns the signature in hexadecimal. */
export type Sign = (text: string) => string | Promise<string>;

/**
 * An agent's address, and the session that proves it.
 *
 * Only challenges for this address are ever signed. The session is kept in memory, and nothing that
 * prints the object shows it.
 */
export class AgentSession {
  readonly address: string;
  readonly #sign: Sign;
  #token: string | undefined;

  constructor(address: string, sign: Sign) {
    if (!ADDRESS.test(address)) {
      throw new InvalidInput("The agent's address is not an EVM or Solana address.");
    }
    this.address = address;
    this.#sign = sign;
  }

  /** The session, if one has begun. */
  get token(): string | undefined {
    return this.#token;
  }

  /** The headers to send to an API: the address, and the session if there is one. */
  get headers(): Record<string, string> {
    const session = this.#token === undefined ? {} : { "x-agent-session": this.#token };
    return { "x-agent-address": this.address, ...session };
  }

  /**
   * Signs a challenge and returns the headers that answer it.
   *
   * Throws `InvalidInput` if the text is not a challenge of an Assay service for this address, so
   * that no server can have another text signed.
   */
  async answer(challenge: string) {
    if (CHALLENGE.exec(challenge)?.[1]?.toLowerCase() !== this.address.toLowerCase()) {
      throw new InvalidInput("The text is not a challenge for this agent's address.");
    }
    return {
      "x-agent-address": this.address,
      "x-agent-challenge": challenge,
      "x-agent-signature": await this.#sign(challenge),
    };
  }

  /** Keeps the session that a response carries, if it carries one. */
  update(responseHeaders: Headers): void {
    const value = responseHeaders.get("x-agent-session");
    if (value !== null && TOKEN.test(value)) this.#token = value;
  }
}
