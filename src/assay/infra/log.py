"""Structured logs: one event a line, only fields somebody named (never headers or bodies)."""

import logging
import sys
from typing import TextIO

import structlog

from assay.trust.model import EvaluationCompleted

Log = structlog.typing.FilteringBoundLogger


def open_log(form: str, level: str, out: TextIO = sys.stderr) -> Log:
    """The process's log. `form` is `json`, `console`, or `auto` (console on a terminal)."""
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
    """A listener: one line for every evaluation that really ran."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def evaluated(self, news: EvaluationCompleted) -> None:
        evaluation = news.evaluation
        self._log.info(
            "evaluated",
            subject=evaluation.subject_key,
            score=evaluation.score,
            tier=evaluation.grade.tier,
            interactions=evaluation.interactions,
            unavailable=sorted(evaluation.unavailable),
            snapshot=news.snapshot.snapshot_hash,
        )
