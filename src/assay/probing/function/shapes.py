"""Checks whether a value has its documented shape. Pure."""

from collections.abc import Mapping

from assay.common.json import JsonObject, JsonValue, is_array, is_object

DEPTH_MAX = 3
_ITEMS_MAX = 40


def fits(value: JsonValue, kind: str) -> bool:
    """Return whether a value is of a JSON Schema type; a boolean is not a number."""
    types: Mapping[str, type | tuple[type, ...]] = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "array": list,
        "object": dict,
        "boolean": bool,
    }
    expected = types.get(kind, str)
    return isinstance(value, expected) and (kind == "boolean" or not isinstance(value, bool))


def is_valid(value: JsonValue, schema: JsonValue, root: JsonValue = None, depth: int = 0) -> bool:
    """Return whether a value has the documented shape: types, required members, enums, items.

    Patterns are ignored: they are untrusted regular expressions.
    """
    if not is_object(schema) or depth > 2 * DEPTH_MAX:
        return True
    root = root or schema.get("$defs")
    if "$ref" in schema or "anyOf" in schema or "oneOf" in schema or "allOf" in schema:
        return True
    if "enum" in schema and not (is_array(schema["enum"]) and value in schema["enum"]):
        return False
    kind = schema.get("type")
    if isinstance(kind, str) and kind != "null" and not fits(value, kind):
        return False
    if is_object(value):
        return _members_valid(value, schema, root, depth)
    items = schema.get("items")
    return not is_array(value) or all(
        is_valid(v, items, root, depth + 1) for v in value[:_ITEMS_MAX]
    )


def _members_valid(value: JsonObject, schema: JsonObject, root: JsonValue, depth: int) -> bool:
    required, properties = schema.get("required"), schema.get("properties")
    if is_array(required) and any(str(name) not in value for name in required):
        return False
    if not is_object(properties):
        return True
    return all(
        is_valid(value[name], declared, root, depth + 1)
        for name, declared in list(properties.items())[:_ITEMS_MAX]
        if name in value and value[name] is not None
    )
