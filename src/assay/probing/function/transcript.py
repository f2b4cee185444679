"""Requests and answers of a proof of function: the evidence behind its verdicts."""

from dataclasses import dataclass, field
from random import Random

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.function.words import known_words, leaves
from assay.probing.ports import ProbeSession
from assay.probing.secret_formats import without_secrets

ANSWER_CHARS_MAX = 2_000
ASKED_CHARS_MAX = 1_000
ROWS_MAX = 24


@dataclass(slots=True)
class Transcript:
    """The transcript of one service. `kind` is its protocol as far as it is known."""

    service: str
    kind: str
    members: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    rows: list[JsonObject] = field(default_factory=list[JsonObject])

    def add(self, role: str, asked: str, found: str, answer: str, more: JsonObject) -> None:
        """Record one exchange: the request, the class of the answer, and its text."""
        row: JsonObject = {
            **more,
            "role": role,
            "asked": _clean(asked, ASKED_CHARS_MAX),
            "class": found,
            "answer": _clean(answer, ANSWER_CHARS_MAX),
        }
        if len(self.rows) < ROWS_MAX:
            self.rows.append(row)

    def know(self, document: JsonValue) -> None:
        """Exclude the words of this document (a card, a list of tools) from answers' content.

        The numbers in an address are not excluded.
        """
        self.members["known"] = known_words(t for t in leaves(document) if "://" not in t)

    def as_json(self) -> JsonObject:
        """Return the transcript as `verdicts.judge` reads it."""
        return {
            "service": _clean(self.service, ASKED_CHARS_MAX),
            "kind": self.kind,
            "asked": list(self.rows),
            **self.members,
        }


def random_for(visit: ProbeSession, service: str) -> Random:
    """Return the random source for one service: the same for the same nonce."""
    return Random(f"{visit.nonce or visit.seed}/{service}")  # noqa: S311 - repeatable on purpose


def spoken(answer: JsonValue) -> str:
    """Return an agent's own words: texts, data and names in its message, task or tool result.

    A task's history is left out (it repeats the question), and so are ids and times of the
    protocol.
    """
    if is_object(answer):
        return "\n".join(filter(None, (_member(key, value) for key, value in answer.items())))
    if is_array(answer):
        return "\n".join(filter(None, map(spoken, answer)))
    return ""


def _member(key: str, value: JsonValue) -> str:
    if key in {"text", "data", "structuredContent"}:
        return "\n".join(leaves(value, with_keys=True))
    return "" if key in {"history", "metadata", "_meta"} else spoken(value)


def _clean(text: str, chars_max: int) -> str:
    """Return text that can be stored: cut, hashable, and without possible secrets."""
    return without_secrets(text[:chars_max].encode("utf-8", "replace").decode("utf-8"))
