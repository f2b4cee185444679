/**
 * Errors that the client throws. No message and no enumerable property contains a credential.
 *
 * AssayError
 * ├── InvalidInput          an argument cannot be sent; nothing was sent
 * ├── ConnectionFailed      no complete response arrived, or not in time
 * ├── UnexpectedResponse    the response is not one of this service
 * ├── InvalidToken          a decision token does not verify
 * └── ServiceRefusal        the service answered with an error
 *     ├── InvalidRequest (400), Forbidden (403), NotFound (404), Conflict (409, 412)
 *     ├── Unauthorized (401)
 *     │   ├── IdentityRequired, SignatureInvalid, IdentityMismatch
 *     │   └── ChallengeRequired     carries the challenge to sign
 *     ├── TooManyRequests (429)
 *     │   └── AllowanceUsedUp
 *     └── Unavailable (500 and above)
 */

/** Any failure of a call. */
export class AssayError extends Error {
  override name = "AssayError";
}

/** An argument cannot be sent; nothing was sent. */
export class InvalidInput extends AssayError {
  override name = "InvalidInput";
}

/** No complete response arrived. `sent` says whether the service may have acted. */
export class ConnectionFailed extends AssayError {
  override name = "ConnectionFailed";
  constructor(
    message: string,
    readonly sent: boolean,
  ) {
    super(message);
  }
}

/** The response is not one that the service gives: another server answers at this address. */
export class UnexpectedResponse extends AssayError {
  override name = "UnexpectedResponse";
}

/** A decision token does not verify; the message says why. */
export class InvalidToken extends AssayError {
  override name = "InvalidToken";
}

/** The service's error form. Source: conventions.md#error-envelope. */
export interface RefusalBody {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly requestId: string;
  /** The whole body, with members that depend on the code, such as `details`. */
  readonly members: Readonly<Record<string, unknown>>;
  readonly retryAfterS?: number | undefined;
  /** A session that began with this call although it was refused: its challenge is spent. */
  readonly agentSession?: string | undefined;
}

/** The service answered with an error. */
export class ServiceRefusal extends AssayError {
  override name = "ServiceRefusal";
  readonly status: number;
  readonly code: string;
  readonly requestId: string;
  readonly retryAfterS: number | undefined;
  readonly #body: RefusalBody;

  constructor(body: RefusalBody) {
    const details = body.members["details"];
    const said = details === undefined ? "" : ` ${JSON.stringify(details).slice(0, 1000)}`;
    super(`${body.status} ${body.code}: ${body.message}${said} (request ${body.requestId})`);
    this.status = body.status;
    this.code = body.code;
    this.requestId = body.requestId;
    this.retryAfterS = body.retryAfterS;
    this.#body = body;
  }

  /** The whole body, with members that depend on the code, such as `details`. */
  get members(): Readonly<Record<string, unknown>> {
    return this.#body.members;
  }

  /** A session that began with this call although it was refused: its challenge is spent. */
  get agentSession(): string | undefined {
    return this.#body.agentSession;
  }
}

/** The request is invalid: see `members.details`. */
export class InvalidRequest extends ServiceRefusal {
  override name = "InvalidRequest";
}

/** The operator's credential or the agent's proof is missing or invalid. */
export class Unauthorized extends ServiceRefusal {
  override name = "Unauthorized";
}

/** The agent's address is missing or malformed. */
export class IdentityRequired extends Unauthorized {
  override name = "IdentityRequired";
}

/** The agent must sign `challenge` first: see `AgentSession.answer`. */
export class ChallengeRequired extends Unauthorized {
  override name = "ChallengeRequired";

  /** The text to sign, exactly as it is. */
  get challenge(): string {
    return String(this.members["challenge"] ?? "");
  }
}

/** The signature is not this address's over this challenge, or the challenge is used. */
export class SignatureInvalid extends Unauthorized {
  override name = "SignatureInvalid";
}

/** The proven address does not control the agent. */
export class IdentityMismatch extends Unauthorized {
  override name = "IdentityMismatch";
}

/** The credential does not permit this, or the plan does not include it. */
export class Forbidden extends ServiceRefusal {
  override name = "Forbidden";
}

/** The service knows no such agent or object. */
export class NotFound extends ServiceRefusal {
  override name = "NotFound";
}

/** The call collides with an existing object or a newer revision. */
export class Conflict extends ServiceRefusal {
  override name = "Conflict";
}

/** Too many requests; `retryAfterS` says when to try again. */
export class TooManyRequests extends ServiceRefusal {
  override name = "TooManyRequests";
}

/** The plan's calls of this month are used up. */
export class AllowanceUsedUp extends TooManyRequests {
  override name = "AllowanceUsedUp";
}

/** The service cannot answer now, and does not guess. */
export class Unavailable extends ServiceRefusal {
  override name = "Unavailable";
}

const BY_CODE = new Map<string, typeof ServiceRefusal>([
  ["identity_required", IdentityRequired],
  ["challenge_required", ChallengeRequired],
  ["signature_invalid", SignatureInvalid],
  ["identity_mismatch", IdentityMismatch],
  ["MONTHLY_REQUEST_LIMIT_EXCEEDED", AllowanceUsedUp],
]);
const BY_STATUS = new Map<number, typeof ServiceRefusal>([
  [400, InvalidRequest],
  [401, Unauthorized],
  [403, Forbidden],
  [404, NotFound],
  [409, Conflict],
  [412, Conflict],
  [429, TooManyRequests],
]);

/** Returns the error of the class that fits the code, or else the status. */
export function refusal(body: RefusalBody): ServiceRefusal {
  const other = body.status >= 500 ? Unavailable : ServiceRefusal;
  return new (BY_CODE.get(body.code) ?? BY_STATUS.get(body.status) ?? other)(body);
}
