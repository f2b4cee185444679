"""`assay check`: the evaluation of an agent that is not registered, for people and for CI."""

import sys
import tempfile
from pathlib import Path
from typing import Literal

from assay.app import App
from assay.cli.check_formats import FORMATS, Report
from assay.cli.command import FAILED, complain, with_app
from assay.common.errors import InvalidRequest
from assay.evaluation.behaviour import findings
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target

Format = Literal["text", "json", "sarif", "junit"]

UNREADABLE = 2
"""There is nothing to evaluate at the target."""

_FILE_BYTES_MAX = 256 * 1024


def check(
    target: str,
    name: str | None,
    min_score: float,
    form: Format,
    output: Path | None,
    header_file: Path | None = None,
) -> int:
    """Evaluate `target`; 0 where it reaches `min_score`, 1 where not, 2 where nothing is there.

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
            found = await app.unregistered.evaluate(source, seconds, name, header)
        except InvalidRequest as error:
            complain(error.message)
            return UNREADABLE
        rows = findings(found.behaviour.evidence, app.probes)
        report = Report(target, found, rows, min_score)
        written.append(FORMATS[form](report))
        return 0 if report.passes else FAILED

    with tempfile.TemporaryDirectory(prefix="assay-check-") as folder:
        # Its own store and its own budgets: nothing of it stays, and no service has to be set up.
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
    """The header in a file of one line `Name: value`; None where there is no such line."""
    name, colon, value = (_text_of(path) or "").strip().partition(":")
    return (name.strip(), value.strip()) if colon and name.strip() else None


def _text_of(path: Path) -> str | None:
    try:
        body = path.read_bytes() if path.stat().st_size <= _FILE_BYTES_MAX else None
    except OSError:
        return None
    return None if body is None else body.decode("utf-8-sig", "replace")


def _is_private(target: str, source: str) -> bool:
    """Whether the target itself is on this machine or network: only then is that let through.

    A file was written here, so that its addresses are believed; a public address must not lead
    into this network.
    """
    if target != source:
        return True
    is_url = target.lower().startswith(("https:", "http:"))
    strict = EgressPolicy(require_https=False)
    return is_url and isinstance(parse_target(target, strict), RefusedUrl)
