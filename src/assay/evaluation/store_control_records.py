"""Stores an evaluation's results about control, in the evaluation's own transaction.

So a crash loses neither: no evaluation with an open critical finding is left without its record.
"""

from collections.abc import Callable, Sequence

from sqlalchemy import delete, text
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.common.json import JsonObject, is_array, is_object
from assay.control.identity import REPUTATION
from assay.control.ports import FOLLOWS_US
from assay.control.similarity import bands
from assay.db.engine import to_us
from assay.db.schema.everything import open_findings
from assay.evaluation.model import Evaluation, SignalName

BAD_REPUTATION = 40.0
SURE = 0.5
"""A reputation below the first, with at least the second's confidence, is bad."""

KEYS_MAX = 64


_KEY = text(
    "INSERT INTO control_keys (subject_key, key, proof, disputed, seen_us)"
    " VALUES (:subject, :key, :proof, :disputed, :now_us)"
    " ON CONFLICT (subject_key, key) DO UPDATE SET proof = excluded.proof,"
    " disputed = excluded.disputed, seen_us = excluded.seen_us"
)
_OPEN = text(
    "INSERT INTO open_findings (subject_key, check_name, opened_us, seen_us)"
    " VALUES (:subject, :check, :now_us, :now_us)"
    " ON CONFLICT (subject_key, check_name) DO UPDATE SET seen_us = excluded.seen_us,"
    " opened_us = CASE WHEN open_findings.seen_us < :since_us THEN excluded.opened_us"
    " ELSE open_findings.opened_us END"
)
_IDENTITY = text(
    "INSERT INTO agent_identities (subject_key, owner, owner_us, group_key, skeleton, signature,"
    " rung, first_us, seen_us) VALUES (:subject, :owner, :owner_us, :group_key, :skeleton,"
    " :signature, :rung, :now_us, :now_us)"
    " ON CONFLICT (subject_key) DO UPDATE SET owner = excluded.owner,"
    " owner_us = COALESCE(excluded.owner_us, agent_identities.owner_us),"
    " group_key = excluded.group_key, skeleton = excluded.skeleton,"
    " signature = excluded.signature, rung = excluded.rung, seen_us = excluded.seen_us"
)
_BAND = text(
    "INSERT INTO content_bands (band, subject_key, seen_us) VALUES (:band, :subject, :now_us)"
    " ON CONFLICT (band, subject_key) DO UPDATE SET seen_us = excluded.seen_us"
)


class ControlRecords:
    """Writes keys, findings, names and texts of each evaluation that is stored."""

    def __init__(self, critical: Callable[[Evaluation], Sequence[str]]) -> None:
        """Create it; `critical` returns the checks with an open critical finding."""
        self._critical = critical

    async def put(self, connection: AsyncConnection, evaluation: Evaluation) -> None:
        """Write within the caller's transaction."""
        data = _behaviour(evaluation)
        now_us = to_us(evaluation.evaluated_at)
        values = {
            "subject": evaluation.subject_key,
            "now_us": now_us,
            "since_us": now_us - FOLLOWS_US,
        }
        is_open = await self._findings(connection, evaluation, data, values)
        identity = data.get("identity")
        if not is_object(identity):
            return
        await _keys(connection, identity, values)
        history = data.get("history")
        rung = history.get("heldRung") if is_object(history) else 0
        signature = str(identity.get("signature", ""))
        await connection.execute(
            _IDENTITY,
            {
                **_without_since(values),
                "owner": str(identity.get("owner", "")),
                "owner_us": now_us if identity.get("transferred") else None,
                "group_key": identity.get("group"),
                "skeleton": str(identity.get("name", "")),
                "signature": signature,
                "rung": rung if isinstance(rung, int) else 0,
            },
        )
        found = [{**_without_since(values), "band": band} for band in bands(signature)]
        if is_open and found:
            await connection.execute(_BAND, found)

    async def _findings(
        self,
        connection: AsyncConnection,
        evaluation: Evaluation,
        data: JsonObject,
        values: dict[str, str | int],
    ) -> bool:
        """Open and close findings; return whether a critical one is open now."""
        critical = list(dict.fromkeys(self._critical(evaluation)))[:KEYS_MAX]
        bad = _reputation_is_bad(evaluation)
        opened = [*critical, *([REPUTATION] if bad else [])]
        if opened:
            await connection.execute(_OPEN, [{**values, "check": name[:64]} for name in opened])
        rows = open_findings.c
        mine = delete(open_findings).where(rows.subject_key == evaluation.subject_key)
        if bad is False:
            await connection.execute(mine.where(rows.check_name == REPUTATION))
        history = data.get("history")
        listed = history.get("openCritical") if is_object(history) else None
        if is_array(listed):
            kept = [*critical, *(_name(one) for one in listed), REPUTATION]
            await connection.execute(mine.where(rows.check_name.not_in(kept)))
            return bool(critical or listed)
        return bool(critical)


async def _keys(
    connection: AsyncConnection, identity: JsonObject, values: dict[str, str | int]
) -> None:
    keys, disputed, sites = (identity.get(name) for name in ("keys", "disputed", "sites"))
    listed = {key: str(proof) for key, proof in keys.items()} if is_object(keys) else {}
    listed |= {str(site): "site" for site in (sites if is_array(sites) else ())}
    against = {str(key) for key in (disputed if is_array(disputed) else ())}
    rows = [
        {**_without_since(values), "key": key, "proof": proof, "disputed": key in against}
        for key, proof in sorted(listed.items())[:KEYS_MAX]
    ]
    if rows:
        await connection.execute(_KEY, rows)


def _without_since(values: dict[str, str | int]) -> dict[str, str | int]:
    return {name: value for name, value in values.items() if name != "since_us"}


def _behaviour(evaluation: Evaluation) -> JsonObject:
    for one in evaluation.collected:
        if one.signal is SignalName.SANDBOX:
            return one.evidence.data
    return {}


def _reputation_is_bad(evaluation: Evaluation) -> bool | None:
    """Return whether the reputation is bad; None if too little is known."""
    for one in evaluation.collected:
        if one.signal is SignalName.REGISTRY_8004 and one.weighed.confidence >= SURE:
            return one.weighed.value < BAD_REPUTATION
    return None


def _name(listed: object) -> str:
    """Return the check of an entry of `openCritical`: its name, or a row that has it."""
    return str(listed.get("check")) if is_object(listed) else str(listed)
