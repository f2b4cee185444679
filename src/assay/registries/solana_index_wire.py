"""Queries to an indexer of the 8004 registry, in both forms, and their answers. Pure.

Source: solana-registry.md#indexer and its recorded requests.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Context, Decimal

from assay.chains.model import is_public_key
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.registries.model import Feedback

AGENTS_MAX = 16
PAGE = 250
"""Rows requested at once; an indexer may return fewer before the end."""

_VALUE = re.compile(r"-?[0-9]{1,39}")
_I128_MAX = 2**127
_EXACT = Context(prec=60)
"""Digits for any i128 with 18 decimals."""

_DECIMALS_MAX, _SCORE_MAX = 18, 100
_TEXT_CHARS_MAX = 256
_INDEX_MAX = 2**63


class MalformedIndexAnswer(Exception):
    """The indexer's answer does not match the query."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query: as GraphQL, and as a path of the REST form."""

    name: str
    graphql: str
    variables: Mapping[str, JsonValue]
    rest: str

    def rows(self, answer: JsonValue, *, graphql: bool) -> Sequence[JsonValue]:
        """Return the rows of an answer. Raises `MalformedIndexAnswer`."""
        if graphql:
            if not is_object(answer) or answer.get("errors"):
                raise MalformedIndexAnswer("the answer is an error")
            data = answer.get("data")
            answer = data.get(self.name) if is_object(data) else None
        if not is_array(answer):
            raise MalformedIndexAnswer("the answer is no list")
        return answer


def by_number(number: int) -> Query:
    """Query the agent of a sequential id."""
    return Query(
        "agents",
        "query($number: BigInt!) { agents(first: 1, where: { agentId: $number }) { id agentId } }",
        {"number": str(number)},
        f"/agents?agent_id=eq.{number}",
    )


def by_wallet(wallet: str) -> Query:
    """Query agents that name a wallet as theirs, newest first."""
    return _agents("agentWallet", "agent_wallet", wallet, "desc")


def by_owner(owner: str) -> Query:
    """Query agents of an owner, oldest first: anyone can send it more."""
    return _agents("owner", "owner", owner, "asc")


def _agents(field: str, column: str, value: str, order: str) -> Query:
    return Query(
        "agents",
        f"query($value: String!) {{ agents(first: {AGENTS_MAX}, where: {{ {field}: $value }},"
        f" orderBy: createdAt, orderDirection: {order}) {{ id }} }}",
        {"value": value},
        f"/agents?{column}=eq.{value}&order=created_at.{order}&limit={AGENTS_MAX}",
    )


def feedback_page(asset: str, skip: int) -> Query:
    """Query unrevoked entries of an agent, newest first."""
    return Query(
        "feedbacks",
        f"query($where: FeedbackFilter) {{ feedbacks(first: {PAGE}, skip: {skip}, where: $where,"
        " orderBy: createdAt, orderDirection: desc) { agent { id } clientAddress feedbackIndex"
        " tag1 tag2 createdAt solana { valueRaw valueDecimals score } } }",
        {"where": {"agent": asset, "isRevoked": False}},
        f"/feedbacks?asset=eq.{asset}&order=feedback_id.desc&limit={PAGE}&offset={skip}"
        "&is_revoked=eq.false",
    )


def asset_of_number(rows: Sequence[JsonValue], number: int) -> str | None:
    """Return the asset of a sequential id, or None. Raises `MalformedIndexAnswer`.

    A row with another number means that the indexer misunderstood the query: nothing on chain could
    show that its agent is the wrong one.
    """
    for row in rows[:1]:
        since_textnt_id = row.get("agentId", row.get("agent_id")) if is_object(row) else None
        if _whole(since_textnt_id, _INDEX_MAX) != number:
            raise MalformedIndexAnswer("an agent of another number")
        return _asset(row)
    return None


def assets_of(rows: Sequence[JsonValue]) -> Sequence[str]:
    """Return the assets of agents' rows, in their order. Raises `MalformedIndexAnswer`."""
    return [_asset(row) for row in rows]


def _asset(row: JsonValue) -> str:
    value = row.get("id", row.get("asset")) if is_object(row) else None
    if not isinstance(value, str) or not is_public_key(value):
        raise MalformedIndexAnswer("an agent without its asset")
    return value


def entries_of(rows: Sequence[JsonValue], asset: str) -> Sequence[Feedback]:
    """Return the entries of feedback rows, all about `asset`. Raises `MalformedIndexAnswer`."""
    return [_entry(row, asset) for row in rows]


def _entry(row: JsonValue, asset: str) -> Feedback:
    if not is_object(row):
        raise MalformedIndexAnswer("an entry that is no object")
    about = row.get("agent")
    if (about.get("id") if is_object(about) else row.get("asset")) != asset:
        raise MalformedIndexAnswer("an entry about another agent")
    nested = row.get("solana")
    own: JsonObject = nested if is_object(nested) else row
    client = row.get("clientAddress", row.get("client_address"))
    decimals = _whole(own.get("valueDecimals", own.get("value_decimals")), _DECIMALS_MAX)
    index = _whole(row.get("feedbackIndex", row.get("feedback_index")), _INDEX_MAX)
    raw = str(own.get("valueRaw", own.get("value")))
    if not isinstance(client, str) or not is_public_key(client) or not _VALUE.fullmatch(raw):
        raise MalformedIndexAnswer("an entry without its client or value")
    value = int(raw)
    if decimals is None or index is None or not -_I128_MAX <= value < _I128_MAX:
        raise MalformedIndexAnswer("an entry whose numbers are out of range")
    return Feedback(
        client=client,
        index=index,
        value=Decimal(value).scaleb(-decimals, _EXACT),
        decimals=decimals,
        tag1=_text(row.get("tag1")),
        tag2=_text(row.get("tag2")),
        given_s=_time(row.get("createdAt", row.get("created_at"))),
        score=_whole(own.get("score"), _SCORE_MAX),
        is_scored=True,
    )


def _whole(value: JsonValue, largest: int) -> int | None:
    """Return a number from 0 to `largest`, given as number or text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:  # noqa: PLR2004 - digits of a u64
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= largest:
        return value
    return None


def _text(value: JsonValue) -> str:
    """Return a text without lone surrogates, which JSON can spell and UTF-8 cannot encode."""
    text = value[:_TEXT_CHARS_MAX] if isinstance(value, str) else ""
    return text.encode("utf-8", "replace").decode("utf-8")


def _time(value: JsonValue) -> int | None:
    """Return Unix seconds from seconds as text (GraphQL) or an ISO time (REST)."""
    seconds = _whole(value, _INDEX_MAX)
    if seconds is not None or not isinstance(value, str):
        return seconds
    try:
        return int(datetime.fromisoformat(value).timestamp())
    except (ValueError, OverflowError):
        return None
