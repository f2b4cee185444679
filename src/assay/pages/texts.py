"""The documentation that pages show: `docs/probes.md` and `docs/grades.md`, as HTML and in parts.

`tools/generate_docs.py` copies both files into the package, and a test compares them, so the pages
and the documentation have one source.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from markdown_it import MarkdownIt
from markdown_it.token import Token

_SECTION = re.compile(r"^### (\w+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.+?) \|$", re.MULTILINE)
_ASKED = re.compile(r"\*Asked:\*\s*(.*?)(?=\s*\*Why:\*|\n\n|\Z)", re.DOTALL)
_WHY = re.compile(r"\*Why:\*\s*(.*?)(?=\s*\*Fix:\*|\n\n|\n- |\Z)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")
_NO_SLUG = re.compile(r"[^\w\- ]")

SHORT_CHARS = 200
"""Length up to which further sentences of a section are shown in a report."""


@dataclass(frozen=True, slots=True)
class ProbeText:
    """What the documentation says of one probe. `asked` and `why` are safe HTML."""

    name: str
    severity: str
    passes: str
    """When it passes, as safe HTML."""
    asked: str
    why: str
    source: str
    """The section in Markdown."""


@lru_cache(maxsize=1)
def probes() -> Mapping[str, ProbeText]:
    """Return every documented probe by name, in the order of the list."""
    text = source("probes.md")
    sections = {found[1]: found[2].strip() for found in _SECTION.finditer(text)}
    return {
        name: ProbeText(
            name,
            severity,
            inline(passes),
            inline(_first(_ASKED, sections[name])),
            inline(_first(_WHY, sections[name])),
            sections[name],
        )
        for name, severity, passes in _ROW.findall(text)
        if name in sections
    }


def _first(pattern: re.Pattern[str], section: str) -> str:
    """Return what a mark introduces: its first sentences, the first letter in upper case."""
    found = pattern.search(section)
    sentences = _SENTENCE.split(" ".join(found[1].split()).rstrip(";")) if found else [""]
    shown = sentences[0]
    for sentence in sentences[1:]:
        if len(shown) + len(sentence) > SHORT_CHARS:
            break
        shown = f"{shown} {sentence}"
    return shown[:1].upper() + shown[1:]


@lru_cache(maxsize=4)
def source(name: str) -> str:
    """Return a documentation page as Markdown."""
    return files("assay.pages").joinpath("documents", name).read_text("utf-8")


def page(markdown: str, base: str) -> str:
    """Return our own Markdown as safe HTML; links lead to pages of this service or are left out.

    `base` is the path below which the service answers.
    """
    return _html(_parser().parse(markdown), base)


def inline(markdown: str) -> str:
    """Return a line of our own Markdown as safe HTML, without links."""
    return _html(_parser().parseInline(markdown), None)


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def _html(tokens: list[Token], base: str | None) -> str:
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", slug(tokens[place + 1].content))
        if token.children:
            _resolve(token.children, base)
    return str(_parser().renderer.render(tokens, _parser().options, {}))


def _resolve(children: list[Token], base: str | None) -> None:
    """Point each link to a page of this service, or leave its words alone."""
    kept: list[bool] = []
    for token in list(children):
        if token.type == "link_open":
            target = None if base is None else _target(str(token.attrGet("href") or ""), base)
            kept.append(target is not None)
            if target is not None:
                token.attrSet("href", target)
            else:
                children.remove(token)
        elif token.type == "link_close" and not kept.pop():
            children.remove(token)


def _target(href: str, base: str) -> str | None:
    name, _, anchor = href.partition("#")
    if name in ("", "probes.md") and anchor in probes_named():
        return f"{base}/probes/{anchor}"
    if name == "probes.md":
        return f"{base}/probes"
    if name == "grades.md" or (not name and anchor):
        return f"{base}/methodology#{anchor}" if name else f"#{anchor}"
    return href if href.startswith("https://") else None


@lru_cache(maxsize=1)
def probes_named() -> frozenset[str]:
    """Return the names of the probes in the list."""
    return frozenset(name for name, _, _ in _ROW.findall(source("probes.md")))


def slug(heading: str) -> str:
    """Return a heading's anchor, as the documentation's links spell it."""
    return _NO_SLUG.sub("", heading.replace("`", "").lower()).strip().replace(" ", "-")
