"""A domain object is never serialised as it is: routes and schemas name each field they show.

`tests/app/test_responses_canary_http.py` shows the same of the responses themselves.
"""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from assay.server.schemas import ResponseModel
from tests.support.syntax import nodes

SOURCES = Path(__file__).parents[2] / "src/assay"

BANNED = {
    *("asdict", "astuple", "vars", "dataclasses.fields", "jsonable_encoder", "is_dataclass"),
    *("dump_python", "dump_json", "RootModel", "__dict__", "__dataclass_fields__"),
    *("from_attributes", "_asdict", "to_jsonable_python", "to_json"),
}
"""What turns an object into its fields without naming them."""

DUMPS = {
    "pages/routes.py": 1,  # the same
    "evaluation/routes_public.py": 1,  # a `ResponseModel`, whose bytes have a tag
    "admin/schemas.py": 1,
    "evaluation/schemas_grade.py": 1,
    "gate/routes.py": 1,
    "gate/schemas.py": 1,
    "liveness/schemas.py": 1,
    "wrappers/routes_configs.py": 1,
    "wrappers/schemas.py": 1,
    "analytics/schemas.py": 1,
    "server/csv_text.py": 1,
}
"""How often `model_dump` or `model_dump_json` is called, each time of a `ResponseModel`."""


def serialised_whole(text: str) -> list[str]:
    """The banned names that a module uses, and `dump` for each `model_dump`."""
    found: list[str] = []
    for node in nodes(text):
        name = (
            *([node.id] if isinstance(node, ast.Name) else []),
            *([node.attr, ast.unparse(node)] if isinstance(node, ast.Attribute) else []),
            *([str(node.arg)] if isinstance(node, ast.keyword) else []),
            *(
                [n for a in node.names for n in (a.name, f"{node.module}.{a.name}")]
                if isinstance(node, ast.ImportFrom)
                else []
            ),
            *([str(node.value)] if isinstance(node, ast.Constant) else []),
        )
        found += [one for one in name if one in BANNED]
        found += ["dump" for one in name if one in {"model_dump", "model_dump_json"}]
    return found


def wire_modules() -> Iterator[Path]:
    for path in sorted(SOURCES.rglob("*.py")):
        if path.name.startswith(("routes", "schemas")) or path.parent.name == "server":
            yield path


def foreign_parts(schema: object) -> Iterator[str]:
    """What a pydantic schema is made of beside `ResponseModel` classes and plain values."""
    if isinstance(schema, dict):
        kind: Any = schema.get("cls")
        if schema.get("type") in ("dataclass", "is-instance", "call"):
            yield str(kind)
        if schema.get("type") == "model" and not issubclass(kind, ResponseModel):
            yield str(kind)
        for name, part in schema.items():
            if name != "metadata":
                yield from foreign_parts(part)
    elif isinstance(schema, list | tuple):
        for part in schema:
            yield from foreign_parts(part)


def responses() -> Iterator[type[ResponseModel]]:
    for path in wire_modules():
        module = import_module(".".join(path.relative_to(SOURCES.parent).with_suffix("").parts))
        for one in vars(module).values():
            if isinstance(one, type) and issubclass(one, ResponseModel):
                yield one


def test_routes_and_schemas_serialise_no_object_whole() -> None:
    dumps: dict[str, int] = {}
    for path in wire_modules():
        name = path.relative_to(SOURCES).as_posix()
        found = serialised_whole(path.read_text("utf-8"))
        assert set(found) <= {"dump"}, f"{name} uses {found}: name the fields in a schema"
        if found:
            dumps[name] = len(found)
    assert dumps == DUMPS, "show that it dumps a `ResponseModel`, then say so in DUMPS"


def test_responses_are_made_of_responses_and_plain_values() -> None:
    """A dataclass as a member would show each field that it gets."""
    found = {one.__name__: set(foreign_parts(one.__pydantic_core_schema__)) for one in responses()}
    assert len(found) > 80
    assert {name: parts for name, parts in found.items() if parts} == {}


@pytest.mark.parametrize(
    "leaky",
    [
        "from dataclasses import asdict as whole",
        "import dataclasses\ndataclasses.asdict(agent)",
        "shape = Shape(**vars(agent))",
        "shape = Shape(**agent.__dict__)",
        "from dataclasses import fields",
        "{f.name: getattr(agent, f.name) for f in dataclasses.fields(agent)}",
        "class Shape(BaseModel):\n    model_config = ConfigDict(from_attributes=True)",
        "class Shape(BaseModel):\n    model_config = {'from_attributes': True}",
        "Shape.model_validate(agent, from_attributes=True)",
        "TypeAdapter(Agent).dump_json(agent)",
        "return jsonable_encoder(agent)",
        "return result.model_dump()",
    ],
)
def test_an_object_serialised_whole_is_seen(leaky: str) -> None:
    assert serialised_whole(leaky)


def test_named_fields_are_let_pass() -> None:
    assert serialised_whole("return Shape(name=agent.name, fields_max=3)") == []


def test_a_dataclass_in_a_response_is_seen() -> None:
    model = import_module("assay.registries.model")

    class Leaky(ResponseModel):
        agents: list[model.Service]  # type: ignore[name-defined]

    assert list(foreign_parts(Leaky.__pydantic_core_schema__)) == [str(model.Service)]
