"""Many schedules, one after the other; the seeds that found something are kept and run first."""

import gc
import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from tests.simulation.kept import SEEDS, kept_seeds
from tests.simulation.mutants import MUTANTS, planted
from tests.simulation.world import Outcome, run


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
    """The seeds whose schedules find a planted bug, by a violation that it names."""
    with collected(), planted(mutant):
        return [seed for seed in seeds if MUTANTS[mutant].is_in(run(seed).violation)]


def first_found(mutant: str, seeds: Iterable[int]) -> int | None:
    """The first of them that does."""
    with collected(), planted(mutant):
        bug = MUTANTS[mutant]
        return next((seed for seed in seeds if bug.is_in(run(seed).violation)), None)
