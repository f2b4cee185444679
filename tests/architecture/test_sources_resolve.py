"""Every source that a comment, a docstring or a page cites can be opened.

Source: docs/reference/README.md.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"
THIS = Path(__file__).resolve()

PROGRAMS = sorted(
    path
    for folder in ("src", "tests", "bench", "tools")
    for path in (ROOT / folder).rglob("*.py")
    if path != THIS
)
DATA = sorted(
    path
    for folder in ("src", "tests", "bench", "tools")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".json", ".mjs", ".toml", ".sh", ".js"} and "node_modules" not in path.parts
)
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

RETIRED = {
    "specification by number": r"\b[Ss]pec,? (?:sections? )?\d|\b(?:our|interface|the) spec\b",
    "decision by number": r"\b[Dd]ecisions?,? (?:sections? )?\d",
    "notes of facts": r'\b[Ff]acts,? (?:\((?:e|s|p)|"|payments|evm|solana|security|performance)',
    "notes of verdicts": r"\b[Vv]erdict,? (?:sections? )?\d\b(?! of)",
    "notes of the design": r"\b[Tt]he design of evidence|\b[Tt]he design, section",
    "findings by file": r"\bfindings/\w+\.md",
    "issue by number": r"\b[Ii]ssue \d+,? (?:\d|\(|section)",
    "section without its word": r"\b(?:RFC \d{3,5}|A2A \d\.\d|SEC 2),? \d+\.\d",
}
"""Forms of citation that lead to nothing in this repository, or that cannot be told from others."""

STANDARDS = re.compile(
    r"""\bRFC\ \d{3,5}\b | \b(?:EIP|ERC|CAIP|TIP|CWE|ANS|ECMA)-\d+ | \bdraft-[\w-]+
    | \bx402\b | \bA2A\ \d\.\d | \bMCP\b | \bModel\ Context\ Protocol | \bgRPC
    | \bGraphQL\b | \bJSON-RPC | \bJSON\ Schema | \bOpenAPI\ \d | \bOpenRPC | \bSEC\ 2
    | \bYellow\ Paper | \bOWASP | \bUnicode | \bWHATWG | \bURL\ Standard | \bFetch\ standard
    | \bIANA | \bICANN | \bISO | \bOASIS | \bPOSIX | \bGS1 | \bITU-T | \bNIST
    | \[MS-\w+\] | \b\w+\(\d\) | \bStandard\ Webhooks | \bmultiformats | \bPrometheus
    | \bpy(?:mpp|tempo)\b | \bmpl-core
    | \bPostgreSQL\ manual | \bSolidity | \bgeth\b | \berigon | \bKubo | \bOpenAI | \bTempo's
    | \bexecution-apis | \bSolana('s|\ JSON-RPC) | \bOP\ Stack | \bGitHub\b | \bAWS\b | \bFly,
    | \bEtherscan | \bGo,\ net/http | \bgit,\ " | \blinux/tcp\.h | \bHTTPie | \bPushpin | \b8004-
    | \b(?:EAS|self-agent-id|deployed)\ contracts | \bworldcoin/ | \bMulticall3\.sol
    | \bFiatTokenV2 | \b[\w.-]+\.(?:com|org|xyz)\b | \bmanuals\ of\b | \binstance-metadata\ pages
    | \bEnvoy\ API\ v3\b | \bYAML\ 1\.2
    | \b[A-Z][a-z]+(?:\ et\ al\.)?\ (?:19|20)\d\d\b | \(.*(?:19|20)\d\d\) | \bCAIPs""",
    re.VERBOSE,
)
"""Public standards and documents, by the names under which they are published."""

_PAGE = r"(?<![\w./-])(?:(?:docs/)(?:[\w-]+/)*)?[\w-]+\.md"
_CITED = re.compile(rf"({_PAGE})((?:#[\w-]+)(?:(?:,| and) #[\w-]+)*)?")
_ADR = re.compile(r"\bADR (\d{4})")
_SOURCE = re.compile(r"\bSources?(?: of [a-z ]+)?: (.+)")
_HEADING = re.compile(r"(?m)^#{1,6} +(.+?) *$")
_LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
_TOKEN = re.compile(
    r"""(?s)\#[^\n]* | [bfru]{0,2} (?:\"{3}(?:\\.|[^\\])*?\"{3} | \'{3}(?:\\.|[^\\])*?\'{3}
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')""",
    re.VERBOSE | re.IGNORECASE,
)
"""Comments and texts of Python; the tokenizer takes ten times as long."""
_FENCE = re.compile(r"(?ms)^```.*?^```")


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings; one that comes again is numbered."""
    found: dict[str, int] = {}
    for heading in _HEADING.findall(_FENCE.sub("", page.read_text("utf-8"))):
        name = slug(heading)
        seen = found[name] = found.get(name, -1) + 1
        if seen:
            found[f"{name}-{seen}"] = 0
    return frozenset(found)


def page_of(name: str) -> Path:
    """`docs/x.md` from the root; a bare name is a page of docs/reference."""
    return ROOT / name if "/" in name else REFERENCE / name


def prose(path: Path) -> Iterator[str]:
    """Docstrings, other texts and comments of a program, each on one line."""
    comments: list[tuple[int, str]] = []
    source, line, end = path.read_text("utf-8"), 1, 0
    for token in _TOKEN.finditer(source):
        text = token[0]
        line += source.count("\n", end, token.start())
        end = token.start()
        if not text.startswith("#"):
            yield from (re.sub(r"\s+", " ", part) for part in re.split(r"\n\s*\n", text))
            continue
        if comments and comments[-1][0] == line - 1:
            text = f"{comments.pop()[1]} {text.lstrip('# ')}"
        comments.append((line, text))
    yield from (text for _, text in comments)


def unresolved(text: str) -> Iterator[str]:
    """Citations of pages, headings and decision records that are not there."""
    for name, headings in _CITED.findall(text):
        page = page_of(name)
        if not headings and (page.parent == REFERENCE or text.strip("\"'") == name):
            continue  # the name of some file, not of a page
        for anchor in re.findall(r"#([\w-]+)", headings) or [""]:
            if not page.exists() or (anchor and anchor not in anchors(page)):
                yield f"{name}#{anchor}"
    for number in _ADR.findall(text):
        if not any((ROOT / "docs/decisions").glob(f"{number}-*.md")):
            yield f"ADR {number}"


def unnamed(text: str) -> Iterator[str]:
    """What stands behind `Source:` and is neither a page, a record, a path nor a standard."""
    for said in _SOURCE.findall(text):
        for part in re.split(r";(?![^()]*\))", re.split(r": |\. (?=[A-Z`\"])", said)[0]):
            paths = re.findall(r"\b(?:src|tests|bench|tools|docs)/[\w./-]+\w", part)
            if any((ROOT / path).exists() for path in paths):
                continue
            if not (_CITED.search(part) or _ADR.search(part) or STANDARDS.search(part)):
                yield part.strip()


def retired(text: str) -> Iterator[str]:
    for pattern in RETIRED.values():
        yield from (found[0] for found in re.finditer(pattern, text))


def broken_links(page: Path, text: str) -> Iterator[str]:
    """Relative links whose page or heading is not there."""
    for target in _LINK.findall(_FENCE.sub("", text)):
        name, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        there = (page.parent / name).resolve() if name else page
        is_page = there.suffix == ".md" and there.exists()
        if not there.exists() or (anchor and is_page and anchor not in anchors(there)):
            yield target


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def texts(path: Path) -> tuple[str, ...]:
    return tuple(prose(path))


def test_every_page_and_record_that_a_program_cites_is_there() -> None:
    found = {name_of(p): [w for t in texts(p) for w in unresolved(t)] for p in PROGRAMS}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_every_source_of_a_program_is_a_page_or_a_published_document() -> None:
    found = {name_of(p): [w for t in texts(p) for w in unnamed(t)] for p in PROGRAMS}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_no_program_and_no_page_cites_in_a_retired_form() -> None:
    found = {name_of(p): [w for t in texts(p) for w in retired(t)] for p in PROGRAMS}
    others = (*PAGES, *(path for path in DATA if "golden" not in path.parts))
    found |= {name_of(p): list(retired(" ".join(p.read_text("utf-8").split()))) for p in others}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_every_link_between_pages_leads_to_a_heading() -> None:
    found = {name_of(p): list(broken_links(p, p.read_text("utf-8"))) for p in PAGES}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_every_record_that_a_page_names_is_there() -> None:
    named = {n for p in PAGES for n in _ADR.findall(p.read_text("utf-8"))}
    assert sorted(n for n in named if not any((ROOT / "docs/decisions").glob(f"{n}-*"))) == []


def test_the_interface_page_has_every_operation_and_every_field() -> None:
    """The golden document has an entry for each: a new one needs a row on the page."""
    page = (REFERENCE / "interface.md").read_text("utf-8")
    document = json.loads((ROOT / "tests/golden/openapi.json").read_text("utf-8"))
    operations = {
        f"{method.upper()} {path}"
        for path, item in document["paths"].items()
        for method in item
        if method != "parameters" and not path.startswith("/wrap/")
    }
    schemas = document["components"]["schemas"].values()
    fields = {name for schema in schemas for name in schema.get("properties", {})}
    assert sorted(one for one in operations if f"`{one}`" not in page) == []
    assert sorted(one for one in fields if not re.search(rf"[|`] ?{one}[ `]", page)) == []


@pytest.mark.parametrize(
    "text",
    [
        "A decision (interface.md#gate-decision, #trust-evaluation; conventions.md#gate).",
        "See docs/grades.md#the-ladder and ADR 0009.",
        '"gone.md"',
    ],
)
def test_what_is_there_is_found(text: str) -> None:
    assert list(unresolved(text)) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("interface.md#no-such-heading", "interface.md#no-such-heading"),
        ("interface.md#gate-decision, #no-such-heading", "interface.md#no-such-heading"),
        ("no-such-page.md#gate", "no-such-page.md#gate"),
        ("as docs/no-such-page.md says", "docs/no-such-page.md#"),
        ("docs/grades.md#no-such-heading", "docs/grades.md#no-such-heading"),
        ("ADR 0999", "ADR 0999"),
    ],
)
def test_what_is_not_there_is_noticed(text: str, wrong: str) -> None:
    assert list(unresolved(text)) == [wrong]


@pytest.mark.parametrize(
    "text",
    [
        "Source: RFC 9110, section 8.6.",
        "Sources: EIP-3009; x402 specification v2, section 5; evidence.md#ladder.",
        "Source of the rules: ADR 0016. Anything may follow a full stop.",
        "Source: tcp(7), TCP_NODELAY",
        "Source: docs/doctor.md, which lists them in this order.",
        "Sources: Kish 1965 (effective sample size); Kamvar et al. 2003 (EigenTrust; a note).",
    ],
)
def test_a_published_source_is_accepted(text: str) -> None:
    assert list(unnamed(text)) == []


@pytest.mark.parametrize("text", ["Source: ours.", "Source: RFC 9110; the notes.", "Sources: x."])
def test_a_source_that_nobody_can_open_is_noticed(text: str) -> None:
    assert len(list(unnamed(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Source: spec 3.4.",
        "the interface spec",
        "(decisions, section 5)",
        "as decision 0009 has it",
        "facts, payments 2",
        'Source: facts, "resilience".',
        "facts (security, section 1: poisoning)",
        "verdict, section 3",
        "the design of evidence, section 2",
        "the design, section 3",
        "findings/money.md, D1",
        "issue 12, section 4",
        "RFC 9110, 15.5.1",
    ],
)
def test_a_retired_form_is_noticed(text: str) -> None:
    assert len(list(retired(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "the facts of one visit, 2 of them",
        "one verdict, 9 of them of honest agents",
        "a decision of 2026",
        "RFC 9110, section 15.5.1",
        "ADR 0009",
        "MCP specification 2025-11-25",
    ],
)
def test_ordinary_words_are_no_retired_form(text: str) -> None:
    assert list(retired(text)) == []


def test_an_anchor_is_the_one_that_the_site_makes() -> None:
    headings = ["Enumerated values", "`8004`", "Time, money and ids", "[Gate](gate.md) & more"]
    assert [slug(one) for one in headings] == [
        "enumerated-values",
        "8004",
        "time-money-and-ids",
        "gate--more",
    ]


@pytest.mark.parametrize("target", ["gone.md", "../README.md#no-such-heading", "#no-such-heading"])
def test_a_link_that_leads_nowhere_is_noticed(target: str) -> None:
    assert list(broken_links(REFERENCE / "interface.md", f"[x]({target})")) == [target]


@pytest.mark.parametrize("target", ["egress.md#addresses", "../quotas.md", "#limits"])
def test_a_link_that_leads_somewhere_is_accepted(target: str) -> None:
    assert list(broken_links(REFERENCE / "interface.md", f"[x]({target})")) == []
