"""Reads members of an object in a registration file, in their known spellings. Pure."""

from collections.abc import Mapping

from assay.common.json import JsonObject, JsonValue
from assay.registries.file_problems import Note, described, quoted


class Members:
    """An object's members. The first name asked for is the correct one; others are a problem.

    Names are compared exactly first, then without regard to capitals, `_` and `-`. The result does
    not depend on the order of the members.
    """

    def __init__(self, raw: JsonObject, where: str, note: Note) -> None:
        self._raw = raw
        self._where = where
        self._note = note
        self._folded: Mapping[str, str] = {_folded(key): key for key in sorted(raw, reverse=True)}

    def at(self, name: str) -> str:
        """Return the path of a member with this name."""
        return f"{self._where}.{name}" if self._where else name

    def get(self, *names: str) -> JsonValue:
        """Return the first member of these names that exists and is not empty, else None."""
        key = self.key(*names)
        if key is None:
            return None
        if key != names[0]:
            found = f"the member {quoted(key)}"
            self._note(self.at(names[0]), found, f"the member {quoted(names[0])}")
        return self._raw[key]

    def key(self, *names: str) -> str | None:
        """Return its spelling here; None if it is absent, null or an empty list or object."""
        for name in names:
            if _is_there(self._raw.get(name)):
                return name
        for name in names:
            key = self._folded.get(_folded(name))
            if key is not None and _is_there(self._raw[key]):
                return key
        return None

    def lacking(self, name: str) -> str:
        """Return what was found in place of a missing member: `nothing` or `null`."""
        return described(self._raw[name]) if name in self._raw else "nothing"


def _is_there(value: JsonValue) -> bool:
    return value is not None and value not in ([], {})


def _folded(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "").strip()
