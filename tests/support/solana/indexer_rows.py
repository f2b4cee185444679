"""What the public indexer lists, in the words of its two interfaces, from a registry."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from tests.support.solana.layouts import AtomNumbers
from tests.support.solana.registry import Agent, Registry, Said

Row = dict[str, Any]


def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _text(key: object) -> str | None:
    return None if key is None else str(key)


def _average(said: Iterable[Said]) -> int | None:
    """ROUND(AVG(score)) of what is neither revoked nor without a score; halves go up."""
    scores = [s for one in said if not one.revoked and (s := one.args.score) is not None]
    return (2 * sum(scores) + len(scores)) // (2 * len(scores)) if scores else None


def agent_row(agent: Agent, shift: int) -> Row:
    """A row of `/rest/v1/agents`."""
    account, stats = agent.listed, agent.stats or AtomNumbers()
    said = list(agent.registry.feedbacks(agent.asset))
    return {
        "asset": str(agent.asset),
        "agent_id": None if agent.number is None else str(agent.number + shift),
        "owner": str(account.owner),
        "creator": str(account.creator),
        "agent_uri": account.uri,
        "agent_wallet": _text(account.wallet),
        "collection": str(account.collection),
        "collection_pointer": account.col or None,
        "col_locked": account.col_locked,
        "parent_asset": _text(account.parent),
        "parent_creator": None,
        "parent_locked": account.parent_locked,
        "nft_name": account.name,
        "atom_enabled": account.atom_enabled,
        "trust_tier": stats.trust_tier,
        "quality_score": stats.quality_score,
        "confidence": stats.confidence,
        "risk_score": stats.risk_score,
        "diversity_ratio": stats.diversity_ratio,
        "feedback_count": account.feedback.count,
        "raw_avg_score": _average(said) or 0,
        "sort_key": str(agent.created_at),
        "block_slot": 431_000_000,
        "tx_index": 0,
        "event_ordinal": 0,
        "tx_signature": "registration",
        "status": "FINALIZED",
        "verified_at": None,
        "verified_slot": None,
        "created_at": _iso(agent.created_at),
        "updated_at": _iso(max([agent.created_at, *(one.created_at for one in said)])),
    }


def feedback_row(one: Said) -> Row:
    """A row of `/rest/v1/feedbacks`."""
    return {
        "id": str(one.id),
        "feedback_id": str(one.id),
        "asset": str(one.asset),
        "client_address": str(one.client),
        "feedback_index": str(one.index),
        "value": str(one.args.value),
        "value_decimals": one.args.decimals,
        "score": one.args.score,
        "tag1": one.args.tag1,
        "tag2": one.args.tag2,
        "endpoint": one.args.endpoint,
        "feedback_uri": one.args.uri,
        "feedback_hash": one.args.file_hash and one.args.file_hash.hex(),
        "running_digest": None,
        "is_revoked": one.revoked,
        "revoked_at": _iso(one.created_at) if one.revoked else None,
        "status": one.status,
        "verified_at": None,
        "block_slot": one.slot,
        "tx_signature": one.signature,
        "created_at": _iso(one.created_at),
    }


def reputation_row(agent: Agent) -> Row:
    """A row of `/rest/v1/agent_reputation`."""
    account, said = agent.listed, list(agent.registry.feedbacks(agent.asset))
    scores = [one.args.score for one in said if not one.revoked and one.args.score is not None]
    return {
        "asset": str(agent.asset),
        "owner": str(account.owner),
        "collection": str(account.collection),
        "nft_name": account.name,
        "agent_uri": account.uri,
        "feedback_count": account.feedback.count,
        "avg_score": _average(said),
        "positive_count": sum(score >= 50 for score in scores),
        "negative_count": sum(score < 50 for score in scores),
        "validation_count": 0,
    }


def tables(registry: Registry, shift: int) -> dict[str, list[Row]]:
    """The tables behind `/rest/v1`."""
    with registry.lock:
        said = [one for one in registry.said if one.status != "ORPHANED"]
        return {
            "agents": [agent_row(agent, shift) for agent in registry.agents],
            "feedbacks": [feedback_row(one) for one in said],
            "agent_reputation": [reputation_row(agent) for agent in registry.agents],
        }


def agent_node(row: Row) -> Row:
    """The same agent as GraphQL has it; numbers that may be large are texts."""
    extension = {
        "assetPubkey": row["asset"],
        "collection": row["collection"],
        "atomEnabled": row["atom_enabled"],
        "trustTier": row["trust_tier"],
        "qualityScore": row["quality_score"],
        "confidence": row["confidence"],
        "riskScore": row["risk_score"],
        "diversityRatio": row["diversity_ratio"],
        "verificationStatus": row["status"],
    }
    return {
        "id": row["asset"],
        "agentId": row["agent_id"],
        "agentURI": row["agent_uri"] or None,
        "owner": row["owner"],
        "creator": row["creator"],
        "agentWallet": row["agent_wallet"],
        "collectionPointer": row["collection_pointer"],
        "colLocked": row["col_locked"],
        "parentAsset": row["parent_asset"],
        "parentCreator": row["parent_creator"],
        "parentLocked": row["parent_locked"],
        "createdAt": _seconds(row["created_at"]),
        "updatedAt": _seconds(row["updated_at"]),
        "totalFeedback": row["feedback_count"],
        "metadata": [],
        "stats": {"totalFeedback": row["feedback_count"]},
        "solana": extension,
    }


def feedback_node(row: Row) -> Row:
    extension = {
        "valueRaw": row["value"],
        "valueDecimals": row["value_decimals"],
        "score": row["score"],
        "txSignature": row["tx_signature"],
        "blockSlot": row["block_slot"],
        "runningDigest": row["running_digest"],
        "verificationStatus": row["status"],
        "proofPassAuth": False,
    }
    revoked = row["revoked_at"]
    return {
        "id": row["id"],
        "agent": {"id": row["asset"]},
        "clientAddress": row["client_address"],
        "feedbackIndex": row["feedback_index"],
        "value": _decimal(row["value"], row["value_decimals"]),
        "tag1": row["tag1"],
        "tag2": row["tag2"],
        "endpoint": row["endpoint"],
        "feedbackURI": row["feedback_uri"],
        "feedbackHash": row["feedback_hash"],
        "isRevoked": row["is_revoked"],
        "createdAt": _seconds(row["created_at"]),
        "revokedAt": None if revoked is None else _seconds(revoked),
        "solana": extension,
    }


def reputation_node(row: Row) -> Row:
    words = {"nft_name": "nftName", "agent_uri": "agentUri", "feedback_count": "feedbackCount"}
    words |= {"avg_score": "avgScore", "positive_count": "positiveCount"}
    words |= {"negative_count": "negativeCount", "validation_count": "validationCount"}
    return {words.get(name, name): value for name, value in row.items()}


def _seconds(iso: str) -> str:
    return str(int(datetime.fromisoformat(iso).timestamp()))


def _decimal(value: str, decimals: int) -> str:
    digits = value.removeprefix("-").rjust(decimals + 1, "0")
    sign = "-" if value.startswith("-") else ""
    return f"{sign}{digits[:-decimals]}.{digits[-decimals:]}" if decimals else value
