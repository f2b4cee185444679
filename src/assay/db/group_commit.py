"""Group commit on SQLite: one thread commits the short transactions of all waiting callers.

Passing a statement to another thread and back costs more processor time than SQLite takes to run
it, and a commit waits for the disk. Here a whole transaction is passed once, together with all that
arrived during the last commit, and no caller is answered before their common commit.
"""

import asyncio
import os
import sqlite3
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy.exc import IntegrityError

from assay.common.errors import Unavailable
from assay.db.connect import connect_sqlite
from assay.db.sql_transaction import DriverTransaction, Work

T = TypeVar("T")

AT_ONCE = 64
"""Transactions in one commit: each delays the others by about 0.1 ms."""


@dataclass(slots=True, eq=False)
class PendingTransaction:
    """A transaction that waits for the writer's thread."""

    work: Work[Any]
    done: asyncio.Future[Any]
    is_sure: bool


class GroupCommitWriter:
    """A connection to an SQLite file, used by one thread, for work that writes or only reads.

    Failed work is rolled back alone and fails no other, unless it was marked sure. A failed commit
    fails all work in it. Work whose caller was cancelled before it began is skipped.
    """

    def __init__(
        self,
        path: str,
        wait_s: float,
        turns: AbstractAsyncContextManager[object],
        *,
        writes: bool,
    ) -> None:
        """Create it; `turns` is held during a transaction.

        `wait_s` bounds waiting for other processes.
        """
        self._path = path
        self._wait_s = wait_s
        self._turns = turns
        self._writes = writes
        self._thread = ThreadPoolExecutor(1, "assay-sql", _be_patient)
        self._waiting: list[PendingTransaction] = []
        self._runner: asyncio.Task[None] | None = None
        self._connection: sqlite3.Connection | None = None
        self._is_closed = False

    async def do(self, work: Work[T], limit_s: float, *, is_sure: bool = False) -> T:
        """Run work and return its result once it is committed.

        `is_sure`: after its first change it fails only if the database does; that saves two
        statements. Raises what the work raises, `TimeoutError` after `limit_s`, and `Unavailable`.
        """
        if self._is_closed:
            raise _closed()
        loop = asyncio.get_running_loop()
        ticket = PendingTransaction(work, loop.create_future(), is_sure)
        self._waiting.append(ticket)
        if self._runner is None:
            self._runner = loop.create_task(self._run())
        # Not `asyncio.timeout`, which costs five times as much: a paid call comes here six times.
        timer = loop.call_later(limit_s, _give_up, ticket.done)
        try:
            return await ticket.done
        finally:
            timer.cancel()

    def close(self) -> None:
        """Let running work end, then end the thread; all other work raises `Unavailable`.

        It blocks, so it must not run in the event loop's thread.
        """
        self._is_closed = True
        self._thread.submit(self._forget)
        self._thread.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        some: list[PendingTransaction] = []
        try:
            while self._waiting:
                async with self._turns:
                    some, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                    if self._is_closed:
                        break
                    outcomes = await loop.run_in_executor(self._thread, self._commit_group, some)
                for ticket, outcome in zip(some, outcomes, strict=True):
                    _answer(ticket, outcome)
        finally:
            self._runner = None
            left, self._waiting = (*some, *self._waiting), []
            for ticket in left:  # Empty only if this was closed or the work cancelled.
                _answer(ticket, _Failed(_closed()))

    def _commit_group(self, tickets: Sequence[PendingTransaction]) -> list[Any]:
        """Run the work and commit; return each result or exception. Runs in the writer's thread."""
        try:
            transaction = DriverTransaction(self._opened())
            if not self._writes:
                return [self._alone(ticket, transaction) for ticket in tickets]
            return self._committed(tickets, transaction)
        except Exception as error:  # noqa: BLE001 - raised in the task of each
            self._undo()
            return [_Failed(_translated(error)) for _ in tickets]

    def _committed(
        self, tickets: Sequence[PendingTransaction], transaction: DriverTransaction
    ) -> list[Any]:
        run = transaction.own.execute
        run("BEGIN IMMEDIATE")
        outcomes: list[Any] = []
        for ticket in tickets:
            if ticket.is_sure:
                outcomes.append(self._surely(ticket, transaction))
                continue
            run("SAVEPOINT work")
            outcome = self._alone(ticket, transaction)
            if isinstance(outcome, _Failed):
                run("ROLLBACK TO work")  # Raises if SQLite has already rolled everything back.
            run("RELEASE work")
            outcomes.append(outcome)
        run("COMMIT")
        return outcomes

    def _surely(self, ticket: PendingTransaction, transaction: DriverTransaction) -> object:
        """Run sure work; raise if it fails after a change, since then all work is rolled back."""
        before = transaction.own.total_changes
        outcome = self._alone(ticket, transaction)
        is_clean = transaction.own.total_changes == before and transaction.own.in_transaction
        # Or SQLite has already rolled everything back.
        if isinstance(outcome, _Failed) and not is_clean:
            raise _unusable(repr(outcome.error)) from outcome.error
        return outcome

    @staticmethod
    def _alone(ticket: PendingTransaction, transaction: DriverTransaction) -> object:
        if ticket.done.done():  # Its caller was cancelled or timed out.
            return None
        try:
            return _result(ticket.work(transaction))
        except Exception as error:  # noqa: BLE001 - its own caller's, and nobody else's
            return _Failed(_translated(error))

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = connect_sqlite(self._path, self._wait_s)
            self._connection.row_factory = sqlite3.Row
        return self._connection

    def _undo(self) -> None:
        """Leave no transaction open; drop a connection that cannot even roll back."""
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._forget()

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


def _be_patient() -> None:
    """Let this thread run when the loop's has nothing to do, instead of as soon as it is woken.

    Both need the interpreter's lock: a thread that runs at once only alternates with the loop, and
    each switch costs more than a row. Source: sched(7), SCHED_BATCH.
    """
    with suppress(AttributeError, OSError):  # Not supported by this system, or not permitted.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


def _closed() -> Unavailable:
    return _unusable("closed")


def _unusable(detail: str) -> Unavailable:
    return Unavailable("The database cannot be used now.", detail=detail, retry_after_s=5)


def _result(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, and return its result."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    work.close()
    raise TypeError("work of a transaction waited for something else")


def _give_up(done: asyncio.Future[Any]) -> None:
    if not done.done():
        done.set_exception(TimeoutError("the database took too long"))


def _answer(ticket: PendingTransaction, outcome: object) -> None:
    if ticket.done.done():
        return
    if isinstance(outcome, _Failed):
        ticket.done.set_exception(outcome.error)
    else:
        ticket.done.set_result(outcome)


def _translated(error: Exception) -> Exception:
    """Return the driver's failure as the exception that all other database uses raise."""
    if isinstance(error, sqlite3.IntegrityError):
        return IntegrityError(None, None, error)
    if isinstance(error, sqlite3.Error):
        error_to_raise = _unusable(repr(error))
        error_to_raise.__cause__ = error
        return error_to_raise
    return error
