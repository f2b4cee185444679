"""Operations on wrapper configs: the operator's own endpoints.

Source: interface.md#wrapper-configuration, #wrapper-body.
"""

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Header, Path, Request, Response

from assay.accounts.auth import actor_of, api_key_or_token
from assay.accounts.model import Operator, Scope
from assay.server.route import read, route, service
from assay.server.schemas import Limit, Offset, PageCursor, cursor_at, offset_of
from assay.wrappers import schemas as wire
from assay.wrappers import schemas_import as imports
from assay.wrappers.openapi_import import import_openapi
from assay.wrappers.service import Endpoints

router = APIRouter(tags=["Wrappers"])

AT_ONCE: Final = 250
"""Wrappers that are written before other work runs; an account can have 5,000."""

EndpointId = Annotated[
    str, Path(alias="endpointId", max_length=64, description="Id of the wrapper.")
]


@route(
    router,
    "GET",
    "/operator/endpoints",
    operation="list_endpoints",
    auth=api_key_or_token(Scope.WRAPPERS),
    answers=list[wire.WarnedEndpointResponse],
)
async def list_endpoints(request: Request) -> Response:
    """List the account's wrappers, newest first, deactivated ones included.

    `warnings` are about price, network and payee of active ones; pairs are warned of when created.
    """
    endpoints, who = service(request, Endpoints), _operator(request).id
    parts: list[str] = []
    async with endpoints.lists.slot(who, is_known=True):
        configs = await endpoints.list(who)
        for at in range(0, len(configs), AT_ONCE):
            await asyncio.sleep(0)
            some = configs[at : at + AT_ONCE]
            warnings_of_each = await endpoints.sale_warnings(some)
            shapes = (
                wire.warned(config, warnings)
                for config, warnings in zip(some, warnings_of_each, strict=True)
            )
            parts += [shape.model_dump_json(by_alias=True) for shape in shapes]
    return Response(f"[{','.join(parts)}]", media_type="application/json")


@route(
    router,
    "POST",
    "/operator/endpoints",
    operation="create_endpoint",
    auth=api_key_or_token(Scope.WRAPPERS),
    body=wire.EndpointRequest,
    answers=wire.WarnedEndpointResponse,
    also=(409,),
)
async def create_endpoint(request: Request, response: Response) -> wire.WarnedEndpointResponse:
    """Create a wrapper at once. Callers use `/wrap/{operatorId}` and its path."""
    text = await request.body()
    asked = read(wire.EndpointRequest, text).new(text)
    endpoints = service(request, Endpoints)
    config = await endpoints.create(_operator(request).id, asked, actor_of(request))
    response.headers["etag"] = wire.tag(config)
    return wire.warned(config, await endpoints.warnings(config))


@route(
    router,
    "POST",
    "/operator/endpoints/import",
    operation="import_endpoints",
    auth=api_key_or_token(Scope.WRAPPERS),
    body=imports.EndpointImport,
    answers=imports.ImportResponse,
    also=(409,),
)
async def import_endpoints(request: Request) -> imports.ImportResponse:
    """Make a draft of a wrapper for each operation of an OpenAPI document.

    Operations other than GET are imported if they are named. Those of which the account has a
    wrapper already are left alone, so that a second import changes nothing.
    """
    text = await request.body()
    asked = read(imports.EndpointImport, text).asked(text)
    endpoints, who = service(request, Endpoints), _operator(request).id
    async with endpoints.lists.slot(who, is_known=True):
        results = await import_openapi(endpoints, who, asked, actor_of(request))
    return imports.imported(results, dry_run=asked.dry_run)


@route(
    router,
    "PATCH",
    "/operator/endpoints/{endpointId}",
    operation="change_endpoint",
    auth=api_key_or_token(Scope.WRAPPERS),
    body=wire.EndpointPatch,
    answers=wire.WarnedEndpointResponse,
    also=(409, 412),
)
async def change_endpoint(
    request: Request,
    response: Response,
    endpoint_id: EndpointId,
    if_match: Annotated[
        str | None,
        Header(max_length=100, description="The `ETag` it must still have, if it matters."),
    ] = None,
) -> wire.WarnedEndpointResponse:
    """Change a wrapper at once: fields that are left out stay. What was bought stays bought.

    A payment on the earlier terms is accepted for as long as its quote was valid.
    """
    text = await request.body()
    change = read(wire.EndpointPatch, text).change(text)
    endpoints, operator_id = service(request, Endpoints), _operator(request).id
    revision = wire.revision_of(if_match)
    config = await endpoints.change(operator_id, endpoint_id, change, actor_of(request), revision)
    response.headers["etag"] = wire.tag(config)
    return wire.warned(config, await endpoints.warnings(config))


@route(
    router,
    "GET",
    "/operator/endpoints/{endpointId}/history",
    operation="endpoint_history",
    auth=api_key_or_token(Scope.WRAPPERS),
    answers=wire.HistoryResponse,
)
async def endpoint_history(
    request: Request,
    endpoint_id: EndpointId,
    limit: Limit = 50,
    offset: Offset = 0,
    cursor: PageCursor = None,
) -> wire.HistoryResponse:
    """List a wrapper's revisions, newest first: who changed what, and its price at each time."""
    start = offset_of(cursor, offset)
    endpoints, operator_id = service(request, Endpoints), _operator(request).id
    found, total = await endpoints.history(operator_id, endpoint_id, limit, start)
    return wire.HistoryResponse(
        items=[wire.revision(one) for one in found],
        total=total,
        limit=limit,
        offset=start,
        next_cursor=cursor_at(start, len(found), total),
    )


@route(
    router,
    "DELETE",
    "/operator/endpoints/{endpointId}",
    operation="deactivate_endpoint",
    auth=api_key_or_token(Scope.WRAPPERS),
    answers=wire.Deactivated,
)
async def deactivate_endpoint(request: Request, endpoint_id: EndpointId) -> wire.Deactivated:
    """Deactivate a wrapper at once."""
    endpoints = service(request, Endpoints)
    await endpoints.deactivate(_operator(request).id, endpoint_id, actor_of(request))
    return wire.Deactivated(ok=True, id=endpoint_id, active=False)


def _operator(request: Request) -> Operator:
    """Return the operator that the declared credential found."""
    return request.state.principal
