"""A changed record is what `dataclasses.replace` makes of it."""

from dataclasses import dataclass, field, replace

import pytest

from assay.common.dataclass_copy import changed


@dataclass(frozen=True)
class Row:
    name: str
    amount: int = 0
    tags: list[str] = field(default_factory=list[str])


def test_a_changed_record_has_the_new_values_and_all_others() -> None:
    row = Row("a", 1, ["x"])
    made = changed(row, amount=2)
    assert made == replace(row, amount=2)
    assert (row.amount, hash(made.name), made.tags) == (1, hash("a"), row.tags)
    assert made.tags is row.tags


def test_a_name_that_there_is_not_is_refused() -> None:
    with pytest.raises(TypeError, match="Row has no colour"):
        changed(Row("a"), colour="red")
