"""The sizes that every implementation of `common.shared_state.SharedState` keeps to."""

KEY_CHARS_MAX = 200
VALUE_CHARS_MAX = 4096
"""Source for both: the port's own docstring."""


def check_entry(key: str, value: str) -> None:
    """Raises `ValueError` for an entry beyond the port's sizes: the caller's mistake, not theirs.

    What a stranger sends is hashed or bounded before it becomes a key.
    """
    if len(key) > KEY_CHARS_MAX or len(value) > VALUE_CHARS_MAX:
        raise ValueError("a key has at most 200 characters, a value at most 4,096")
