"""Frozen dataclasses that change often."""

from typing import TypeVar

T = TypeVar("T")


def changed(record: T, **values: object) -> T:
    """As `dataclasses.replace`, of a dataclass without slots and `__post_init__`.

    In a fifth of its time: one of thirty fields is 1.3 us instead of 7.6. Raises `TypeError`.
    """
    known = vars(record)
    if unknown := values.keys() - known.keys():
        raise TypeError(f"{type(record).__name__} has no {', '.join(sorted(unknown))}")
    made = object.__new__(type(record))
    vars(made).update(known, **values)
    return made
