"""Many schedules, one after the other; the seeds that found something are kept and run first."""

import gc
import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from tests.simulation.mutants import planted
from tests.simulation.world import Outcome, run

SEEDS = Path(__file__).parent / "seeds" / "found.txt"
"""A seed a line, and after it what it found."""


def kept_seeds() -> list[int]:
    """What has found something once, oldest first."""
    lines = SEEDS.read_text("utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


def keep(outcome: Outcome) -> None:
    """For the next run, and for whoever mends it."""
    if outcome.seed not in kept_seeds():
        with SEEDS.open("a", encoding="utf-8") as file:
            file.write(f"{outcome.seed} {outcome.violation}\n")


def trace(seed: int) -> str:
    """Everything that happens in a schedule, in its order."""
    said: list[str] = []
    with collected():
        run(seed, said.append)
    return "\n".join(said)


@contextmanager
def collected() -> Generator[None]:
    """A world is a web of cycles: they are collected together, and killed tasks end unawaited."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        gc.disable()
        try:
            yield
        finally:
            gc.enable()
            gc.collect()


def campaign(seeds: Iterable[int]) -> list[Outcome]:
    """The outcome of every schedule. One that breaks an invariant is printed and kept."""
    with collected():
        outcomes: list[Outcome] = []
        for number, seed in enumerate(seeds):
            outcome = run(seed)
            outcomes.append(outcome)
            if outcome.violation is not None:
                print(f"seed {seed}: {outcome.violation}")  # noqa: T201 - to be found again
                keep(outcome)
            if number % 50 == 49:
                gc.collect()
        return outcomes


def found_in(mutant: str, seeds: Iterable[int]) -> list[int]:
    """The seeds whose schedules find a planted bug."""
    with collected(), planted(mutant):
        return [seed for seed in seeds if run(seed).violation is not None]


def first_found(mutant: str, seeds: Iterable[int]) -> int | None:
    """The first of them that does."""
    with collected(), planted(mutant):
        return next((seed for seed in seeds if run(seed).violation is not None), None)
