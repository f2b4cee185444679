"""Every input that is kept, again: none breaks its parser, none costs more than the bound."""

import pytest

from tests.fuzz.corpus import BYTES_MAX, CORPUS, CRASHES, INPUTS_MAX, load
from tests.fuzz.target import lines_max, lines_run
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs_raise_what_is_documented_and_nothing_else(name: str) -> None:
    target = TARGETS[name]
    inputs = load(CORPUS, name) + load(CRASHES, name)
    assert inputs
    for data in (b"", *inputs):
        target(data)


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs_cost_work_in_proportion_to_their_size(name: str) -> None:
    """Counted in lines that run, so that a busy machine makes no difference."""
    target = TARGETS[name]
    for data in load(CORPUS, name) + load(CRASHES, name):
        target(data)  # what is loaded and remembered at the first call
        assert lines_run(target, data) <= lines_max(data), data


@pytest.mark.parametrize("name", TARGETS)
def test_some_kept_input_is_accepted(name: str) -> None:
    """Else the fuzzer would only ever see the first refusal."""
    target = TARGETS[name]
    accepted = [target(data) for data in load(CORPUS, name)]
    assert any(accepted) is target.accepts


def test_what_is_kept_is_small_and_of_targets_that_exist() -> None:
    for folder in (CORPUS, CRASHES):
        for file in folder.glob("*"):
            assert file.stem in TARGETS, file
            assert file.stat().st_size <= 6 * BYTES_MAX
            assert len(load(folder, file.stem)) <= INPUTS_MAX
