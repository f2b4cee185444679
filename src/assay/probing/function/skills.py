"""Reads the skills of an agent's card, bounded. Pure."""

from assay.common.json import JsonObject, is_array, is_object
from assay.probing.function.acts import names_act
from assay.probing.function.variation import EXAMPLE_CHARS_MAX

SKILLS_MAX = 16
EXAMPLES_MAX = 12


def skills_of(card: JsonObject) -> list[tuple[str, str]]:
    """Return name and description of each skill."""
    return [
        (str(row.get("name") or row.get("id"))[:80], str(row.get("description") or "")[:400])
        for row in skill_rows(card)
    ]


def examples_of(card: JsonObject) -> list[tuple[bool, list[str]]]:
    """Return for each skill whether it acts, and its examples."""
    found: list[tuple[bool, list[str]]] = []
    for skill in skill_rows(card):
        rows = skill.get("examples")
        texts = [e for e in rows if isinstance(e, str)] if is_array(rows) else []
        kept = [e[:EXAMPLE_CHARS_MAX] for e in texts[:EXAMPLES_MAX] if e.strip()]
        found.append((does_act_in(skill), kept))
    return found


def does_act_in(skill: JsonObject) -> bool:
    """Return whether a skill says that it acts."""
    return names_act(f"{skill.get('name')} {skill.get('description')}")


def skill_rows(card: JsonObject) -> list[JsonObject]:
    """Return the skills that are read of a card."""
    listed = card.get("skills")
    return [row for row in listed[:SKILLS_MAX] if is_object(row)] if is_array(listed) else []
