"""`assay receipts`: checks a signed receipt of a paid call, offline with a saved key set."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import httpx2
from cyclopts import Parameter

from assay.cli.command import FAILED, AsJson, complain
from assay.common.json import JsonObject, is_object
from assay.net.body import get
from assay.wrappers.receipts import RECEIPT_CHARS_MAX, InvalidReceipt, digest_of, read_receipt

_KEYS_BYTES_MAX: Final = 64 * 1024
_TIMEOUT_S: Final = 10.0
_JWKS_PATH: Final = "/.well-known/jwks.json"
_OK = 200


def verify(  # noqa: PLR0913 - each is one thing that a receipt can be compared with
    receipt: Annotated[str, Parameter(help="File with the receipt; - for standard input.")] = "-",
    *,
    jwks: Annotated[
        str, Parameter(help=f"Key set: a file, or the address of {_JWKS_PATH} of the service.")
    ],
    issuer: Annotated[
        str | None, Parameter(help="Public address of the service; default: any.")
    ] = None,
    request: Annotated[Path | None, Parameter(help="File with the request's body.")] = None,
    response: Annotated[Path | None, Parameter(help="File with the response's body.")] = None,
    target: Annotated[
        str | None, Parameter(help="Path and query of the call, such as /wrap/ID/items?page=2.")
    ] = None,
    transaction: Annotated[str | None, Parameter(help="Hash of the payment.")] = None,
    as_json: AsJson = False,
) -> int:
    """Check the signature and everything that is given; status 1 if anything differs."""
    try:
        token = _text(receipt, RECEIPT_CHARS_MAX + 2).strip()
        claims = read_receipt(token, _key_set(jwks))
        given = _bodies(claims, request, response)
    except (InvalidReceipt, OSError, UnicodeDecodeError) as error:
        complain(f"the receipt does not hold: {error}")
        return FAILED
    claimed = _part(claims, "request"), _part(claims, "payment")
    if target is not None:
        given["target"] = claimed[0].get("target") == digest_of(target.encode())
    if issuer is not None:
        given["issuer"] = claims.get("iss") == issuer.rstrip("/")
    if transaction is not None:
        given["transaction"] = claimed[1].get("transaction") == transaction.lower()
    if as_json:
        found = {"signature": True, **given}
        sys.stdout.write(json.dumps({"claims": claims, "holds": found}, indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in _lines(claims, given))
    return 0 if all(given.values()) else FAILED


def _bodies(claims: JsonObject, request: Path | None, response: Path | None) -> dict[str, bool]:
    """Return for each given body whether it is the receipt's."""
    given = {"request": request, "response": response}
    return {
        name: _part(claims, name).get("contentDigest") == digest_of(path.read_bytes())
        for name, path in given.items()
        if path is not None
    }


def _lines(claims: JsonObject, given: dict[str, bool]) -> Iterator[str]:
    """Return what holds and what does not, and what the receipt says."""
    yield "holds    signature"
    for name, holds in given.items():
        yield f"{'holds   ' if holds else 'DIFFERS '} {name}"
    for name, value in claims.items():
        yield f"says     {name}: {value if isinstance(value, str) else json.dumps(value)}"


def _part(claims: JsonObject, name: str) -> JsonObject:
    found = claims.get(name)
    return found if is_object(found) else {}


def _text(source: str, chars_max: int) -> str:
    """Return the text of a file, or of standard input, up to a bound."""
    if source == "-":
        return sys.stdin.read(chars_max)
    with Path(source).open(encoding="utf-8") as file:
        return file.read(chars_max)


def _key_set(source: str) -> JsonObject:
    """Return the JWK set of a file or an address. Raises `InvalidReceipt` and `OSError`."""
    if source.startswith(("http://", "https://")):
        content = asyncio.run(_fetched(source))
    else:
        content = _text(source, _KEYS_BYTES_MAX).encode()
    try:
        found: object = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not is_object(found):
        raise InvalidReceipt(f"{source} is not a JWK set.")
    return found


async def _fetched(url: str) -> bytes:
    try:
        async with httpx2.AsyncClient(trust_env=False, follow_redirects=False) as client:
            answer = await get(client, url, _KEYS_BYTES_MAX, _TIMEOUT_S)
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError) as error:
        raise InvalidReceipt(f"{url} cannot be read: {error!r}") from error
    if answer.status != _OK:
        raise InvalidReceipt(f"{url} answers {answer.status}.")
    return answer.body
