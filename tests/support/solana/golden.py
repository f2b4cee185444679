"""The golden files of the registry's own SDK (npm 8004-solana 0.8.3), read."""

import base64
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.solana.layouts import AtomNumbers, AtomStats

FOLDER = Path(__file__).parents[2] / "vectors" / "solana"


@dataclass(frozen=True)
class GoldenAccount:
    cluster: str
    kind: str
    name: str
    address: str
    program: str
    data: bytes
    decoded: dict[str, Any]

    @property
    def title(self) -> str:
        return f"{self.cluster}/{self.kind}/{self.name}"


@cache
def read(name: str) -> Any:
    """`golden-NAME.json`."""
    return json.loads((FOLDER / f"golden-{name}.json").read_text("utf-8"))


@cache
def accounts() -> tuple[GoldenAccount, ...]:
    return tuple(
        GoldenAccount(
            one["cluster"],
            one["kind"],
            one["name"],
            one["address"],
            one["ownerProgram"],
            base64.b64decode(one["dataBase64"]),
            one["decoded"],
        )
        for one in read("accounts")["accounts"]
    )


def account(kind: str, name: str, cluster: str = "mainnet-beta") -> GoldenAccount:
    wanted = (cluster, kind, name)
    return next(one for one in accounts() if (one.cluster, one.kind, one.name) == wanted)


def refused() -> list[tuple[str, str, bytes]]:
    """Bytes that the SDK refuses to decode: kind, name, data."""
    found = read("accounts")["refused"]
    return [(one["kind"], one["name"], base64.b64decode(one["dataBase64"])) for one in found]


def atom(name: str) -> AtomNumbers:
    """Numbers that the real ATOM code arrived at, such as `forty-clients`."""
    return AtomStats.decoded(account("AtomStats", name).data).numbers


def vectors() -> list[dict[str, Any]]:
    """The give_feedback transactions."""
    return read("give-feedback")["vectors"]
