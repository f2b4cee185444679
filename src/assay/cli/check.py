"""`assay check`: evaluates an agent that is not registered, for people and for CI."""

import io
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from assay import __version__
from assay.app import App
from assay.cli.command import FAILED, complain, with_app
from assay.common.errors import InvalidRequest
from assay.common.json import JsonObject, JsonValue
from assay.evaluation.behaviour import findings
from assay.evaluation.checks import CheckFinding
from assay.evaluation.unregistered import UnregisteredAgent
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target
from assay.probing.ports import Severity

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
"""Source: OASIS SARIF 2.1.0, section 3.13.3."""

PROBLEM = "registration_problem"
_LEVELS: Mapping[Severity, str] = {
    Severity.CRITICAL: "error",
    Severity.MAJOR: "error",
    Severity.MINOR: "warning",
    Severity.INFO: "note",
}


@dataclass(frozen=True, slots=True)
class Report:
    """What `assay check` found, and the threshold that it is compared with."""

    target: str
    found: UnregisteredAgent
    checks: Sequence[CheckFinding]
    min_score: float

    @property
    def passes(self) -> bool:
        """Return whether the score before its rung's ceiling reaches the threshold.

        Only a registered agent can prove control of its services: others do not get beyond rung 0.
        """
        return self.found.score.before_ceiling >= self.min_score

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        grade, score = self.found.grade, self.found.score
        reached = "reaches" if self.passes else "does not reach"
        said = f"{self.target}: {score.before_ceiling:.2f}; it {reached} {self.min_score:g}."
        if score.before_ceiling <= score.value:
            return f"{said} Its grade is {grade.tier}."
        return (
            f"{said} That is the score before the ceiling of rung {score.place.rung}"
            f" ({score.value:.2f}, {grade.tier}): control of services cannot be proven for an agent"
            " that is not registered."
        )


def as_json(report: Report) -> str:
    """Return the report as one JSON object."""
    found = report.found
    document: JsonObject = {
        "target": report.target,
        "score": found.score.value,
        "scoreBeforeCeiling": found.score.before_ceiling,
        "heldAgainst": "scoreBeforeCeiling",
        "tier": found.grade.tier,
        "rung": found.score.place.rung,
        "rungName": found.score.place.name,
        "ceiling": found.score.place.ceiling,
        "riskLevel": found.grade.risk_level,
        "route": found.grade.route,
        "minScore": report.min_score,
        "meetsThreshold": report.passes,
        "requests": found.behaviour.evidence.interactions,
        "status": str(found.behaviour.evidence.data["status"]),
        "services": [{"name": s.name, "endpoint": s.endpoint} for s in found.services],
        "checks": [
            {
                "name": one.name,
                "family": one.family,
                "severity": one.severity.value,
                "outcome": one.finding.outcome,
                "note": one.finding.note,
            }
            for one in report.checks
        ],
        "reasons": [*found.why.reasons],
        "improve": [one.document() for one in found.why.improve],
        "problems": [
            {"where": p.where, "found": p.found, "expected": p.expected} for p in found.problems
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def as_sarif(report: Report) -> str:
    """Return a SARIF log of one run: a rule per check, a result per failure and problem."""
    failed = [one for one in report.checks if one.finding.outcome == "fail"]
    names = sorted({one.name for one in failed} | ({PROBLEM} if report.found.problems else set()))
    index = {name: number for number, name in enumerate(names)}
    fixes = {one.cause.slug: one.cause for one in report.found.why.improve}
    results: list[JsonValue] = [
        _result(report, index, one.name, _LEVELS[one.severity], one.finding.note) for one in failed
    ]
    results += [
        _result(report, index, PROBLEM, "warning", one.sentence) for one in report.found.problems
    ]
    rules: list[JsonValue] = []
    for name in names:
        cause = fixes.get(name)
        text = cause.action if cause else "Put right what the result says."
        rules.append({"id": name, "shortDescription": {"text": name}, "help": {"text": text}})
    driver: JsonObject = {"name": "Assay", "version": __version__, "rules": rules}
    run: JsonObject = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True}],
        "results": results,
        "properties": {"score": report.found.score.value, "tier": report.found.grade.tier},
    }
    log: JsonObject = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _result(
    report: Report, index: Mapping[str, int], name: str, level: str, text: str
) -> JsonObject:
    place: JsonObject = {"physicalLocation": {"artifactLocation": {"uri": report.target}}}
    return {
        "ruleId": name,
        "ruleIndex": index[name],
        "level": level,
        "message": {"text": text},
        "locations": [place],
    }


def as_junit(report: Report) -> str:
    """Return a JUnit suite with one case per check and one for the threshold."""
    cases = [
        _case(one.family, one.name, one.finding.outcome, one.finding.note) for one in report.checks
    ]
    outcome = "pass" if report.passes else "fail"
    cases.append(_case("grade", "threshold", outcome, report.verdict))
    failures = sum(one.finding.outcome == "fail" for one in report.checks) + (not report.passes)
    skipped = sum(one.finding.outcome == "not_tested" for one in report.checks)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="0" skipped="{skipped}"'
    head = f'<testsuite name="{_xml(report.target)}" {counts}>'
    body = "\n".join(["<testsuites>", head, *cases, "</testsuite>", "</testsuites>"])
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _case(family: str, name: str, outcome: str, note: str) -> str:
    inner = {
        "fail": f'<failure message="{_xml(note)}"/>',
        "not_tested": f'<skipped message="{_xml(note)}"/>',
    }.get(outcome, "")
    return f'<testcase classname="assay.{_xml(family)}" name="{_xml(name)}">{inner}</testcase>'


def _xml(text: str) -> str:
    """Return untrusted text without the control characters that XML 1.0 forbids."""
    return escape("".join(c if c.isprintable() else " " for c in text))


def as_text(report: Report) -> str:
    """Return the report for people: verdict, failures, what to do, and what the file lacks."""
    out = io.StringIO()
    console = Console(file=out, width=110)
    console.print(report.verdict, markup=False, highlight=False)
    table = Table()
    for column in ("worth", "found", "what to do"):
        table.add_column(column, overflow="fold")
    for one in report.found.why.improve:
        most = "up to " if one.cause.is_upper_bound else ""
        table.add_row(f"{most}{one.points:+.2f}", one.cause.finding, one.cause.action)
    if report.found.why.improve:
        console.print(table, markup=False)
    for problem in report.found.problems:
        console.print(problem.sentence, markup=False, highlight=False, soft_wrap=True)
    return out.getvalue()


FORMATS: Mapping[str, Callable[[Report], str]] = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
    "junit": as_junit,
}


Format = Literal["text", "json", "sarif", "junit"]

UNREADABLE = 2
"""There is nothing to evaluate at the target."""

_FILE_BYTES_MAX = 256 * 1024


def check(
    target: Annotated[
        str,
        Parameter(
            help="URL of a card, MCP server, OpenAPI document or site; or a registration file."
        ),
    ],
    *,
    service: Annotated[
        str | None, Parameter(help="What is spoken at the URL (A2A, MCP, web), if it is known.")
    ] = None,
    min_score: Annotated[float, Parameter(help="Score from which on the status is 0.")] = 65.0,
    form: Annotated[Format, Parameter(name="--format", help="Form of the report.")] = "text",
    output: Annotated[
        Path | None, Parameter(help="File for the report; default: print it.")
    ] = None,
    header_file: Annotated[
        Path | None,
        Parameter(help="File with one line `Name: value`: a credential for the target's services."),
    ] = None,
) -> int:
    """Evaluate `target`; return 0 if it reaches `min_score`, 1 if not, 2 if nothing is there.

    `header_file` holds one line, `Name: value`: a credential for the target's services.
    """
    is_url = target.lower().startswith(("https:", "http:", "ipfs:", "ar:", "data:"))
    source = target if is_url else _text_of(Path(target))
    if source is None:
        complain(f"there is no file {target!r} of at most {_FILE_BYTES_MAX} bytes")
        return UNREADABLE

    header = None if header_file is None else header_in(header_file)
    if header is None and header_file is not None:
        complain(f"{str(header_file)!r} holds no line `Name: value` of a header")
        return UNREADABLE
    written: list[str] = []

    async def work(app: App) -> int:
        seconds = app.settings.sandbox_evaluation_s
        try:
            found = await app.unregistered.evaluate(source, seconds, service, header)
        except InvalidRequest as error:
            complain(error.message)
            return UNREADABLE
        rows = findings(found.behaviour.evidence, app.probes)
        report = Report(target, found, rows, min_score)
        written.append(FORMATS[form](report))
        return 0 if report.passes else FAILED

    with tempfile.TemporaryDirectory(prefix="assay-check-") as folder:
        # It has a store and budgets of its own: nothing of it stays, and no service is needed.
        overrides: dict[str, object] = {
            "data_dir": Path(folder),
            "allow_private_upstreams": _is_private(target, source) or None,
        }
        status = with_app(work, overrides)
    text = "".join(written)
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, "utf-8")
    return status


def header_in(path: Path) -> tuple[str, str] | None:
    """Return the header in a file of one line `Name: value`, or None without such a line."""
    name, colon, value = (_text_of(path) or "").strip().partition(":")
    return (name.strip(), value.strip()) if colon and name.strip() else None


def _text_of(path: Path) -> str | None:
    try:
        body = path.read_bytes() if path.stat().st_size <= _FILE_BYTES_MAX else None
    except OSError:
        return None
    return None if body is None else body.decode("utf-8-sig", "replace")


def _is_private(target: str, source: str) -> bool:
    """Return whether the target is on this machine or network: only then that is allowed.

    A file was written here, so its addresses are trusted; a public address must not lead into this
    network.
    """
    if target != source:
        return True
    is_url = target.lower().startswith(("https:", "http:"))
    strict = EgressPolicy(require_https=False)
    return is_url and isinstance(parse_target(target, strict), RefusedUrl)
