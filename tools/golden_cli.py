"""The words of a command line: every command, with its arguments and options."""

from collections.abc import Iterator
from typing import Any

from cyclopts import App
from cyclopts.argument import Argument


def rows(app: App, path: tuple[str, ...] = ("assay",)) -> Iterator[str]:
    """One line a command, and one for each of its arguments."""
    if app.default_command is not None:
        yield " ".join(path)
        place = 0
        for one in app.assemble_argument_collection():
            is_placed = "POSITIONAL" in one.field_info.kind.name
            place += is_placed
            yield f"{' '.join(path)} {_shown(one, place if is_placed else 0)}"
    for name in app:
        if not name.startswith("-"):
            yield from rows(app[name], (*path, name))


def _shown(one: Argument, place: int) -> str:
    """`--plan free|pro [default: free]`; with its place where the name can be left out."""
    names = "/".join((*one.names, *one.negatives))
    unnamed = f" (place {place})" if place else ""
    default = one.field_info.default
    is_required = default is one.field_info.empty
    shown = f"{default:g}" if isinstance(default, float) else str(default)
    said = "required" if is_required else f"[default: {shown}]"
    return f"{names}{unnamed} {_type(one)} {said}"


def _type(one: Argument) -> str:
    choices = one.get_choices()
    if choices:
        return "|".join(choices)
    hint: Any = one.hint
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("pathlib.", "")
