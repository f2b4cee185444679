"""The indexer's GraphQL, executed for real: unknown fields and wrong types are refused."""

from collections.abc import Callable
from typing import Any, cast

from graphql import (
    GraphQLScalarType,
    build_schema,
    graphql_sync,  # pyright: ignore[reportUnknownVariableType]
)

from tests.support.solana.indexer_rows import Row, agent_node, feedback_node, reputation_node

PAGE_MAX = 250

SCHEMA = build_schema("""
scalar BigInt
scalar BigDecimal
scalar Bytes
enum OrderDirection { asc desc }
enum AgentOrderBy { createdAt updatedAt totalFeedback qualityScore trustTier }
enum FeedbackOrderBy { createdAt feedbackId value feedbackIndex }
input AgentFilter {
  id: ID
  id_in: [ID!]
  agentId: BigInt
  owner: String
  creator: String
  agentWallet: String
  collection: String
  atomEnabled: Boolean
}
input FeedbackFilter {
  agent: ID
  clientAddress: String
  tag1: String
  tag2: String
  isRevoked: Boolean
}
type KeyValue { key: String! value: String! }
type Stats { totalFeedback: BigInt! }
type SolanaAgent {
  assetPubkey: String!
  collection: String
  atomEnabled: Boolean!
  trustTier: Int
  qualityScore: Int
  confidence: Int
  riskScore: Int
  diversityRatio: Int
  verificationStatus: String
  feedbackDigest: String
  responseDigest: String
  revokeDigest: String
}
type Agent {
  id: ID!
  agentId: BigInt
  agentURI: String
  owner: String!
  creator: String
  agentWallet: String
  collectionPointer: String
  colLocked: Boolean
  parentAsset: String
  parentCreator: String
  parentLocked: Boolean
  createdAt: BigInt!
  updatedAt: BigInt!
  totalFeedback: BigInt!
  metadata: [KeyValue!]!
  stats: Stats
  solana: SolanaAgent
}
type SolanaFeedback {
  valueRaw: BigInt!
  valueDecimals: Int!
  score: Int
  txSignature: String
  blockSlot: BigInt
  runningDigest: String
  verificationStatus: String
  proofPassAuth: Boolean
}
type AgentReference { id: ID! }
type Feedback {
  id: ID!
  agent: AgentReference!
  clientAddress: String!
  feedbackIndex: BigInt!
  value: BigDecimal!
  tag1: String
  tag2: String
  endpoint: String
  feedbackURI: String
  feedbackHash: Bytes
  isRevoked: Boolean!
  createdAt: BigInt!
  revokedAt: BigInt
  solana: SolanaFeedback
}
type AgentReputation {
  asset: ID!
  owner: String
  collection: String
  nftName: String
  agentUri: String
  feedbackCount: Int!
  avgScore: Int
  positiveCount: Int!
  negativeCount: Int!
  validationCount: Int!
}
type Query {
  agent(id: ID!): Agent
  agents(
    first: Int = 100 skip: Int = 0
    where: AgentFilter orderBy: AgentOrderBy orderDirection: OrderDirection
  ): [Agent!]!
  feedbacks(
    first: Int = 100 skip: Int = 0
    where: FeedbackFilter orderBy: FeedbackOrderBy orderDirection: OrderDirection
  ): [Feedback!]!
  agentReputation(asset: ID!): AgentReputation
}
""")


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError(f"BigInt cannot represent {value!r}")
    return int(value)


_big = cast("GraphQLScalarType", SCHEMA.type_map["BigInt"])
_big.serialize = str  # pyright: ignore[reportAttributeAccessIssue] - the library's own way
_big.parse_value = _number

AGENT_COLUMNS = {
    "id": "asset",
    "agentId": "agent_id",
    "agentWallet": "agent_wallet",
    "atomEnabled": "atom_enabled",
}
FEEDBACK_COLUMNS = {"agent": "asset", "clientAddress": "client_address", "isRevoked": "is_revoked"}
ORDER = {
    "createdAt": "created_at",
    "updatedAt": "updated_at",
    "totalFeedback": "feedback_count",
    "qualityScore": "quality_score",
    "trustTier": "trust_tier",
    "feedbackId": "feedback_id",
    "value": "value",
    "feedbackIndex": "feedback_index",
}
NUMBERS = {"feedback_id", "value", "feedback_index"}
"""Texts that are ordered as the numbers they are."""


def execute(tables: dict[str, list[Row]], asked: Any) -> dict[str, Any]:
    """The body of the answer to the body of a request."""
    if not isinstance(asked, dict) or not isinstance(cast("Row", asked).get("query"), str):
        return {"errors": [{"message": "Must provide query string."}]}
    request = cast("Row", asked)
    done = graphql_sync(SCHEMA, request["query"], _root(tables), None, request.get("variables"))
    told = cast("dict[str, Any]", done.formatted)
    for error in told.get("errors", []):
        error["message"] = error["message"].replace("'", '"')  # as graphql-js quotes names
    return told


def _root(tables: dict[str, list[Row]]) -> dict[str, Callable[..., Any]]:
    def one(table: str, asset: str) -> Row | None:
        return next((row for row in tables[table] if row["asset"] == asset), None)

    def agent(_: object, id: str) -> Row | None:  # noqa: A002 - the argument's name in the schema
        found = one("agents", id)
        return found and agent_node(found)

    def reputation(_: object, asset: str) -> Row | None:
        found = one("agent_reputation", asset)
        return found and reputation_node(found)

    def agents(_: object, **arguments: Any) -> list[Row]:
        return [agent_node(row) for row in _page(tables["agents"], AGENT_COLUMNS, **arguments)]

    def feedbacks(_: object, **arguments: Any) -> list[Row]:
        found = _page(tables["feedbacks"], FEEDBACK_COLUMNS, **arguments)
        return [feedback_node(row) for row in found]

    return {
        "agent": agent, "agents": agents, "feedbacks": feedbacks, "agentReputation": reputation,
    }  # fmt: skip


def _page(
    rows: list[Row],
    columns: dict[str, str],
    *,
    first: int,
    skip: int,
    where: Row | None = None,
    orderBy: str | None = None,  # noqa: N803 - the argument's name in the schema
    orderDirection: str | None = None,  # noqa: N803
) -> list[Row]:
    found = rows
    for field, wanted in (where or {}).items():
        if wanted is None:
            continue
        column, several = columns.get(field, field.removesuffix("_in")), field.endswith("_in")
        column = columns.get(column, column)
        admitted = [str(one) for one in (wanted if several else [wanted])]
        found = [row for row in found if str(row[column]) in admitted]
    column, rises = ORDER[orderBy or "createdAt"], orderDirection == "asc"

    def place(row: Row) -> tuple[Any, str]:
        return (int(row[column]) if column in NUMBERS else row[column], row["asset"])

    ordered = sorted(found, key=place, reverse=not rises)
    return ordered[max(skip, 0) :][: min(first, PAGE_MAX) if first > 0 else 100]
