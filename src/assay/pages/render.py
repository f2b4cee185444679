"""Renders pages and badges from templates that escape everything, and serves their style sheet.

There is no script, and nothing is loaded from elsewhere: `POLICY` forbids both.
"""

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from assay.pages import views
from assay.server.public_documents import tag_of

POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
"""No script runs, no form leads elsewhere, and no other page frames this one."""

BADGE_POLICY: Final = "default-src 'none'; sandbox"
HTML: Final = "text/html; charset=utf-8"
SVG: Final = "image/svg+xml"

_STYLE = "pages.css"


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the templates' environment."""
    made = Environment(
        loader=PackageLoader("assay.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "day": views.day,
        "minute": views.minute,
        "signed": views.signed,
        "brief": views.brief,
        "figure": views.figure,
    }
    return made


@lru_cache(maxsize=1)
def _constants() -> Mapping[str, object]:
    return {
        "TONES": views.TONES,
        "WORDS": views.WORDS,
        "RUNG_NAMES": views.RUNG_NAMES,
        "RUNG_MEANS": views.RUNG_MEANS,
        "style": style_name(),
    }


def render(template: str, values: Mapping[str, object]) -> bytes:
    """Return a template filled with values; a missing one raises."""
    return (
        environment()
        .get_template(template)
        .render({**_constants(), **values})
        .encode("utf-8", "replace")
    )


@lru_cache(maxsize=1)
def style() -> bytes:
    """Return the style sheet."""
    return files("assay.pages").joinpath("static", _STYLE).read_bytes()


@lru_cache(maxsize=1)
def style_name() -> str:
    """Return the name under which the style sheet is served: it has the hash of its content."""
    stem, _, kind = _STYLE.partition(".")
    return f"{stem}.{tag_of(style())[1:17]}.{kind}"
