"""Evidence that proves a rung, for tests of everything else."""

from collections.abc import Mapping

from assay.common.json import JsonObject, JsonValue
from assay.evaluation.ladder import LadderPlace

URL = "https://agent.test/a2a"

TOP = LadderPlace(4, 100.0, is_unconfirmed=False, demands=())
"""A place whose ceiling hides nothing."""


def proven(*urls: str, kind: str = "a2a") -> dict[str, JsonValue]:
    """The sandbox evidence of an agent on rung 1: works, and is controlled."""
    listed = urls or (URL,)
    return {
        "function": [
            {"service": url, "kind": kind, "state": "functional", "why": ""} for url in listed
        ],
        "control": [{"service": url, "proof": "well_known", "conflict": False} for url in listed],
    }


STEADY: Mapping[str, JsonValue] = {
    "visits": 10,
    "scheduled": 10,
    "days": 8,
    "spanDays": 70,
    "unannounced": 6,
    "criticalUnannounced": True,
    "silentChange": False,
    "heldRung": 1,
    "unconfirmed": False,
    "pooled": {},
    "openCritical": [],
}
"""What history has of an agent on rung 2."""

CUSTOMERS: JsonObject = {
    "clusters": 120,
    "days": 60,
    "largestShare": 0.05,
    "usdNet": "2000",
    "sinceDays": 70,
    "network": "main",
}

ON_TOP: Mapping[str, JsonObject] = {
    "sandbox": {"status": "tested", "why": None, **proven(), "history": STEADY},
    "8004": {"customers": CUSTOMERS, "stake": {"usd": "500"}},
}
"""Evidence by signal of an agent on rung 4."""
