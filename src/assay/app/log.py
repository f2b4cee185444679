"""Structured logs: one event a line, with named fields only (never headers or bodies).

It also puts the setting's name in front of an error about its value.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TextIO

import structlog

from assay.common.errors import InvalidRequest
from assay.evaluation.model import EvaluationCompleted
from assay.reputation.write_back import PublishOutcome, PublishResult


@contextmanager
def naming(setting: str) -> Generator[None]:
    """Turn errors about a value into `ValueError`s that begin with the setting's name."""
    try:
        yield
    except InvalidRequest as error:
        raise ValueError(f"{setting}: {error.message}") from error
    except ValueError as error:
        raise ValueError(f"{setting}: {error}") from error


FLUSH_LOG_S = 0.1

Log = structlog.typing.FilteringBoundLogger


def open_log(form: str, level: str, out: TextIO = sys.stderr) -> Log:
    """Return the process's log. `form` is `json`, `console`, or `auto` (console on a terminal)."""
    console = form == "console" or (form == "auto" and out.isatty())
    render = (
        structlog.dev.ConsoleRenderer(colors=out.isatty())
        if console
        else structlog.processors.JSONRenderer(sort_keys=False)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([] if console else [structlog.processors.format_exc_info]),
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        cache_logger_on_first_use=True,
    )
    return structlog.get_logger()


class EvaluationLog:
    """A listener that logs one line for every evaluation that ran."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def evaluated(self, completed: EvaluationCompleted) -> None:
        evaluation = completed.evaluation
        self._log.info(
            "evaluated",
            subject=evaluation.subject_key,
            score=evaluation.score,
            tier=evaluation.grade.tier,
            interactions=evaluation.interactions,
            unavailable=sorted(evaluation.unavailable),
            snapshot=completed.snapshot.snapshot_hash,
        )


def write_back_note(log: Log) -> Callable[[PublishResult], None]:
    """Log one line for every score that was to be written back."""

    def note(written: PublishResult) -> None:
        say = log.info if written.outcome is PublishOutcome.SUBMITTED else log.warning
        say(
            "score write-back",
            outcome=written.outcome.value,
            agent=written.agent_id,
            score=written.score,
            told=written.result,
        )

    return note


class RequestLog:
    """Logs one line for each request.

    Lines are written together, ten times a second, because a gate call must not wait for a pipe.
    """

    def __init__(self, log: Log, form: str, level: str, out: TextIO = sys.stderr) -> None:
        self._log = log
        self._console = form == "console" or (form == "auto" and out.isatty())
        self._silent = logging.getLevelNamesMapping()[level.upper()] > logging.INFO
        self._out = out
        self._lines: list[str] = []

    def write(self, **fields: str | float | None) -> None:
        """Log one request; leave out fields that are None."""
        if self._silent:
            return
        known = {name: value for name, value in fields.items() if value is not None}
        if self._console:
            self._log.info("request", **known)
            return
        if not self._lines:
            asyncio.get_running_loop().call_later(FLUSH_LOG_S, self.flush)
        stamp = datetime.now(UTC).isoformat(timespec="milliseconds")  # noqa: TID251 - a log's own time
        self._lines.append(json.dumps({"event": "request", "timestamp": stamp, **known}))

    def flush(self) -> None:
        """Write the waiting lines."""
        lines, self._lines = self._lines, []
        if lines:
            self._out.write("\n".join(lines) + "\n")
            self._out.flush()
