"""What a facilitator lists in its answer to `GET /supported`. Source: x402 specification v2."""

import json
from collections.abc import Container

from assay.common.json import is_array, is_object
from assay.payments.networks import network_id

KINDS_MAX = 1000
_NAME_CHARS_MAX = 64


def networks_listed(body: bytes, known: Container[str]) -> frozenset[str] | None:
    """The known networks on which it settles the scheme that we sell, `exact`.

    None for an answer of another form, or with more kinds than are read.
    """
    try:
        said: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    kinds = said.get("kinds") if is_object(said) else None
    if not is_array(kinds) or len(kinds) > KINDS_MAX:
        return None
    found: set[str] = set()
    for kind in kinds:
        name = kind.get("network") if is_object(kind) and kind.get("scheme") == "exact" else None
        if isinstance(name, str) and len(name) <= _NAME_CHARS_MAX:
            found.add(network_id(name) or "")
    return frozenset(one for one in found if one in known)
