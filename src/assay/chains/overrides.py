"""Chains from the configuration: replaced fields and added rows, all validated."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from urllib.parse import urlsplit

from assay.chains.model import Network, is_address
from assay.common.json import is_array

_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_REQUIRED = frozenset({"chain_id", "identity_registry", "reputation_registry", "rpc_urls"})


def overridden(slug: str, known: Network | None, values: Mapping[str, object]) -> Network:
    """Return the row `known` with the fields of `values`, or a new row if there is none.

    Raises `ValueError` with a plain sentence for any invalid value.
    """
    if not _SLUG.fullmatch(slug):
        raise ValueError(f"chain {slug!r}: a slug is made of a-z, 0-9 and -")
    checked = {name: _checked(slug, name, value) for name, value in values.items()}
    if known is None:
        if missing := sorted(_REQUIRED - set(checked)):
            raise ValueError(f"chain {slug!r}: the field {missing[0]!r} is missing")
        known = Network(slug, slug, 0, True, "", "", (), "configuration")  # noqa: FBT003
    return replace(known, **checked)  # Each is validated by its field's rule.


def _checked(slug: str, name: str, value: object) -> object:
    rule = _RULES.get(name)
    if rule is None:
        raise ValueError(f"chain {slug!r}: there is no field {name!r}")
    taken = rule(value)
    if taken is None:
        raise ValueError(f"chain {slug!r}: the value of {name!r} does not hold")
    return taken


def _text(value: object) -> str | None:
    """Validate one printable line."""
    return value if isinstance(value, str) and value.strip() and value.isprintable() else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _natural(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def _positive(value: object) -> int | None:
    return _natural(value) or None


def _url(value: object) -> str | None:
    return value if isinstance(value, str) and _is_http(value) else None


def _address(value: object) -> str | None:
    return value.lower() if isinstance(value, str) and is_address(value) else None


def _urls(value: object) -> tuple[str, ...] | None:
    if not is_array(value):
        return None
    urls = tuple(url for item in value if (url := _url(item)))
    return urls if urls and len(urls) == len(value) else None


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        usable_port = parts.port != 0
    except ValueError:  # Brackets without an IPv6 address, or an invalid port.
        return False
    printable = url.isprintable() and " " not in url
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and usable_port and printable


_RULES: Mapping[str, Callable[[object], object]] = MappingProxyType(
    {
        "name": _text,
        "chain_id": _positive,
        "testnet": _flag,
        "identity_registry": _address,
        "reputation_registry": _address,
        "rpc_urls": _urls,
        "source": _text,
        "explorer": _url,
        "multicall3": _flag,
        "start_block": _natural,
    }
)
