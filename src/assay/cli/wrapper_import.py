"""`assay wrappers import`: an OpenAPI document becomes wrappers."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from assay.app import App
from assay.cli.command import (
    FAILED,
    Email,
    complain,
    explain,
    problems_in,
    with_app,
)
from assay.cli.wrappers import price_of, upstream_secret
from assay.common.errors import InvalidRequest, ServiceError
from assay.wrappers.endpoint_rules import NewEndpoint
from assay.wrappers.openapi_import import ImportedOperation, OpenApiImport, import_openapi
from assay.wrappers.openapi_operations import NOT_ASKED_FOR
from assay.wrappers.openapi_text import FILE


def import_document(  # noqa: PLR0913 - a wrapper's fields
    email: Email,
    file: Annotated[Path, Parameter(help="OpenAPI document, 2.0 to 3.2, as JSON or YAML.")],
    *,
    price: Annotated[str, Parameter(help="USD a call; 0 is free.")],
    target: Annotated[
        str | None, Parameter(help="The upstream; default: the document's servers.")
    ] = None,
    operation: Annotated[
        tuple[str, ...],
        Parameter(help="Operation other than GET to import: `POST /x`; repeat for more."),
    ] = (),
    activate: Annotated[
        bool, Parameter(negative=(), help="Let the new wrappers answer at once.")
    ] = False,
    dry_run: Annotated[bool, Parameter(negative=(), help="Only show what would be made.")] = False,
    protocol: Annotated[Literal["x402", "mpp"], Parameter(help="How it is paid.")] = "x402",
    network: Annotated[str | None, Parameter(help="Where it is paid.")] = None,
    payout_address: Annotated[str | None, Parameter(help="Who is paid.")] = None,
    rate_limit: Annotated[int | None, Parameter(help="Requests a minute and agent.")] = None,
    trust: Annotated[bool, Parameter(negative=(), help="Ask for a grade.")] = False,
    min_score: Annotated[float, Parameter(help="The score asked for.")] = 65.0,
    auth_header: Annotated[
        str | None, Parameter(help="Header for the upstream; its value is asked for.")
    ] = None,
) -> int:
    """Import a document; ask for the upstream secret, or read it from standard input."""
    try:
        text = _read(file)
        terms = NewEndpoint(
            path="",
            price=price_of(price),
            target_url=target,
            rate_limit=rate_limit,
            protocol=protocol,
            network=network,
            payout_address=payout_address,
            trust_enabled=trust,
            min_score=min_score,
            auth_type="none" if auth_header is None else "header",
            auth_header=auth_header,
            auth_secret=auth_header and upstream_secret(),
            active=activate,
        )
    except (OSError, UnicodeDecodeError) as error:
        complain(f"{file}: {error.strerror if isinstance(error, OSError) else 'is not UTF-8'}")
        return FAILED
    except ValueError as error:
        complain(str(error))
        return FAILED
    return _carry_out(email, OpenApiImport(text, terms, operation, dry_run, FILE))


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(FILE.bytes_max + 1).decode()


def _carry_out(email: str, asked: OpenApiImport) -> int:
    async def work(app: App) -> int:
        operator = await app.operators.find_for_admin(email)
        try:
            results = await import_openapi(app.endpoints, operator.id, asked)
        except InvalidRequest as error:
            for problem in problems_in(error):
                complain(problem)
            return FAILED
        except ServiceError as error:
            complain(explain(error))
            return FAILED
        _print(results, dry_run=asked.dry_run)
        return FAILED if any(one.problem not in NOT_ASKED_FOR for one in results) else 0

    return with_app(work)


def _print(results: Sequence[ImportedOperation], *, dry_run: bool) -> None:
    """Print a line for each operation, and the number of each kind."""
    for one in results:
        if one.wrapper is None:
            kind = "skipped" if one.problem in NOT_ASKED_FOR else "refused"
            sys.stdout.write(f"{kind}  {json.dumps(one.name)}: {one.problem}\n")
            continue
        state = "active" if one.wrapper.active else "inactive"
        known = "new" if one.is_new and dry_run else one.wrapper.id
        kind = "create " if one.is_new else "exists "
        sys.stdout.write(f"{kind}  {one.name}  {known}  {state}  {one.wrapper.target_url}\n")
    new = sum(one.is_new for one in results)
    refused = sum(one.wrapper is None for one in results)
    said = "would be created" if dry_run else "created"
    existing = len(results) - new - refused
    sys.stdout.write(f"{new} {said}, {existing} existed, {refused} not imported\n")
