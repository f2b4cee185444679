"""What a proof of function asked and what came back: the evidence that verdicts follow from."""

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
    """One service's. `kind` is what is spoken there as far as it is known."""

    service: str
    kind: str
    members: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    rows: list[JsonObject] = field(default_factory=list[JsonObject])

    def add(self, role: str, asked: str, found: str, answer: str, more: JsonObject) -> None:
        """Note one exchange: what was asked, the class of the answer, and what it said."""
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
        """Give answers no credit for the words of this document: a card, a list of tools.

        The numbers in an address are no words of it.
        """
        self.members["known"] = known_words(t for t in leaves(document) if "://" not in t)

    def as_json(self) -> JsonObject:
        """The transcript as `verdicts.judge` reads it."""
        return {
            "service": _clean(self.service, ASKED_CHARS_MAX),
            "kind": self.kind,
            "asked": list(self.rows),
            **self.members,
        }


def random_for(visit: ProbeSession, service: str) -> Random:
    """The source of what is asked of one service: the same for the same nonce."""
    return Random(f"{visit.nonce or visit.seed}/{service}")  # noqa: S311 - repeatable on purpose


def spoken(answer: JsonValue) -> str:
    """What an agent itself said: the texts, data and names in its message, task or tool result.

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
    """Text as it may be kept: cut, hashable, and without what looks like a secret."""
    return without_secrets(text[:chars_max].encode("utf-8", "replace").decode("utf-8"))
