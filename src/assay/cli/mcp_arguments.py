"""What a tool is, and its arguments: one declaration gives the JSON Schema and the check."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Final

from assay.cli.mcp_pay import WrapperPayer
from assay.cli.mcp_service import ServiceClient, ToolRefused
from assay.common.json import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool."""

    says: str
    pattern: str | None = None
    """Of a text; None: see `choices`, else a number or a boolean."""
    chars_max: int = 100
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    """Of a number, both or neither."""
    is_whole: bool = False
    is_required: bool = True

    @property
    def schema(self) -> JsonObject:
        """Return its JSON Schema."""
        said: JsonObject = {"description": self.says}
        if self.choices:
            return {"type": "string", "enum": list(self.choices), **said}
        if self.pattern is not None:
            shape = {"pattern": f"^(?:{self.pattern})$", "maxLength": self.chars_max}
            return {"type": "string", **shape, **said}
        if self.most is not None:
            kind = "integer" if self.is_whole else "number"
            return {"type": kind, "minimum": self.least, "maximum": self.most, **said}
        return {"type": "boolean", **said}

    def accepts(self, value: JsonValue) -> bool:
        """Return whether the value fits the schema."""
        if self.choices:
            return value in self.choices
        if self.pattern is not None:
            return (
                isinstance(value, str)
                and len(value) <= self.chars_max
                and re.fullmatch(self.pattern, value) is not None
            )
        if self.most is None or self.least is None:
            return isinstance(value, bool)
        kinds = int if self.is_whole else int | float
        is_number = isinstance(value, kinds) and not isinstance(value, bool)
        return is_number and self.least <= value <= self.most  # type: ignore[operator] - a number


ToolArguments = Mapping[str, Argument]

Given = Mapping[str, JsonValue]
Need = Enum("Need", ["NOTHING", "KEY", "TOKEN", "PAYER"])
"""What has to be configured for a tool to be offered."""


@dataclass(frozen=True, slots=True)
class McpSession:
    """What the tools use: the service, and the credentials that are configured."""

    service: ServiceClient
    key: Mapping[str, str] | None = None
    """The header of the API key."""
    token: Mapping[str, str] | None = None
    """The header of the dashboard token."""
    payer: WrapperPayer | None = None

    def has(self, need: Need) -> bool:
        """Return whether it has what a tool needs."""
        found = {Need.KEY: self.key, Need.TOKEN: self.token, Need.PAYER: self.payer}
        return need is Need.NOTHING or found[need] is not None


@dataclass(frozen=True, slots=True)
class AssayTool:
    """A tool; `run` blocks, returns what `output` describes, and raises `ToolRefused`."""

    name: str
    title: str
    says: str
    run: Callable[[McpSession, Given], JsonObject]
    output: Mapping[str, JsonValue]
    """JSON Schemas of the members of the result."""
    arguments: ToolArguments
    need: Need = Need.NOTHING
    is_read_only: bool = True
    is_destructive: bool = False
    is_idempotent: bool = True
    is_open_world: bool = True
    """Whether agents or others on the internet are involved."""


def schema_of(arguments: ToolArguments) -> dict[str, JsonValue]:
    """Return the JSON Schema of a tool's arguments; it allows no others."""
    return {
        "type": "object",
        "properties": {name: one.schema for name, one in arguments.items()},
        "required": [name for name, one in arguments.items() if one.is_required],
        "additionalProperties": False,
    }


def checked(arguments: ToolArguments, given: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return the arguments that were given. Raises `ToolRefused`, which names the argument."""
    if any(name not in arguments for name in given):
        raise ToolRefused(f"unknown argument; known are: {', '.join(arguments) or 'none'}")
    for name, argument in arguments.items():
        if name not in given:
            if argument.is_required:
                raise ToolRefused(f"the argument {name} is missing: {argument.says}")
        elif not argument.accepts(given[name]):
            raise ToolRefused(f"the argument {name} is invalid: {argument.says}")
    return given


AGENT_ID: Final = Argument(
    "The agent's id: a number in an ERC-8004 registry, or a Solana asset.", r"[0-9A-Za-z]+", 78
)
WALLET: Final = Argument(
    "A wallet of the agent: its owner, or the one it declares.", r"[0-9A-Za-z]+", 64
)
CHAIN: Final = Argument(
    "Name or number of the chain; absent: the service's default.",
    r"[A-Za-z0-9:_-]+",
    64,
    is_required=False,
)
WRAPPER_ID: Final = Argument("Id of the wrapper, from list_wrappers.", r"[0-9a-f-]+", 36)
WRAPPER_PATH: Final = Argument(
    "Path of a wrapper of the configured service: /wrap/{operatorId}/..., with its query if any.",
    r"/wrap/[0-9a-f-]{36}/[A-Za-z0-9._~!$&'()*+,;=:@/-]*(?:\?[A-Za-z0-9._~!$&'()*+,;=:@/?%-]*)?",
    2000,
)


def usd(value: JsonValue) -> Decimal:
    """Return an amount that was checked, as it was written."""
    return Decimal(str(value))
