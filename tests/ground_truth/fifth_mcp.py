"""The fifth set's honest tools on the official MCP library, in its several transports."""

import asyncio
import datetime as dt
import random
import tomllib
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from tests.ground_truth.fifth_base import honest
from tests.ground_truth.fifth_tools import (
    codice,
    compared,
    elo,
    fixtures,
    in_range,
    ladder,
    route,
    version_key,
)
from tests.ground_truth.fourth_base import on_server
from tests.ground_truth.mcp_parts import READS, server


def league() -> MCPServer[Any]:
    """Who plays whom."""
    made = server("league", "Makes fixture lists for small leagues.")

    def round_robin(teams: Annotated[list[str], Field(min_length=2, max_length=20)]) -> str:
        lines = [
            f"Round {n}: " + ", ".join(f"{home} - {away}" for home, away in pairs)
            for n, pairs in enumerate(fixtures(teams), 1)
        ]
        return "\n".join(lines)

    made.add_tool(round_robin, description="Fixture list in which each team meets each other team "
                  "once. Takes the names of 2 to 20 teams.", annotations=READS)  # fmt: skip
    return made


def versions() -> MCPServer[Any]:
    """Semantic versions."""
    made = server("semver-desk")

    def sort_versions(versions: list[str]) -> list[str]:
        """Orders semantic versions from oldest to newest, pre-releases included."""
        try:
            return sorted(versions, key=version_key)
        except ValueError as wrong:
            raise ToolError(str(wrong)) from wrong

    def satisfies(version: str, range: str) -> bool:  # noqa: A002 - as npm calls it
        """Whether a version lies in a range such as ^1.2.0, ~1.4.1 or ">=1.0.0 <2.0.0"."""
        try:
            return in_range(version, range)
        except ValueError as wrong:
            raise ToolError(str(wrong)) from wrong

    made.add_tool(sort_versions, annotations=READS)
    made.add_tool(satisfies, annotations=READS)
    return made


def differences() -> MCPServer[Any]:
    """Two texts."""
    made = server("two-drafts", "Compares two drafts line by line.")

    def diff(before: str, after: str) -> str:
        return compared(before[:70_000], after[:70_000])

    def similarity(before: str, after: str) -> float:
        return round(_ratio(before[:9000], after[:9000]), 3)

    made.add_tool(diff, description="Unified diff of two texts.", annotations=READS)
    made.add_tool(similarity, annotations=READS, description=(
        "Share of words that two texts have in common, 0 to 1 (Jaccard index, case ignored)."
    ))  # fmt: skip
    return made


def _ratio(before: str, after: str) -> float:
    one, two = set(before.lower().split()), set(after.lower().split())
    return len(one & two) / len(one | two) if one | two else 1.0


class Toml(BaseModel):
    """A parsed document."""

    tables: int
    document: dict[str, Any]


def toml_reader() -> MCPServer[Any]:
    """TOML to JSON."""
    made = server("toml-reader")

    def read_toml(text: str) -> Toml:
        """Parses a TOML document; returns it as JSON, with the number of its top-level tables."""
        try:
            parsed = tomllib.loads(text)
        except tomllib.TOMLDecodeError as wrong:
            raise ToolError(f"not valid TOML: {wrong}") from wrong
        plain = _plain(parsed)
        return Toml(tables=sum(isinstance(v, dict) for v in parsed.values()), document=plain)

    made.add_tool(read_toml, annotations=READS)
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value.isoformat() if isinstance(value, dt.date | dt.time) else value


def routes() -> MCPServer[Any]:
    """Cheapest ways."""
    made = server("wayfarer")

    def cheapest_route(edges: list[str], start: str, goal: str) -> str:
        """Cheapest route through an undirected graph. Edges are written like "A-B: 4"."""
        return route(edges[:500], start, goal)

    made.add_tool(cheapest_route, annotations=READS)
    return made


def tax_codes() -> MCPServer[Any]:
    """Codice fiscale, in Italian."""
    made = server("codice-fiscale", "Calcola il codice fiscale di persone nate in quindici città.")

    def calcola(
        cognome: Annotated[str, Field(examples=["Rossi"])],
        nome: Annotated[str, Field(examples=["Mario"])],
        nascita: Annotated[dt.date, Field(description="Data di nascita, AAAA-MM-GG")],
        sesso: Literal["M", "F"],
        comune: Annotated[str, Field(examples=["Roma", "Milano", "Torino"])],
    ) -> str:
        try:
            return codice(cognome, nome, nascita, sesso, comune)
        except KeyError as town:
            raise ToolError(f"comune non in elenco: {town}") from town

    made.add_tool(calcola, name="calcola_codice_fiscale", annotations=READS,
                  description="Calcola le sedici lettere e cifre del codice fiscale.")  # fmt: skip
    return made


def ladders() -> MCPServer[Any]:
    """Word ladders, found slowly."""
    made = server("rungs")

    async def word_ladder(
        start: Annotated[str, Field(pattern="^[a-zA-Z]{4}$", examples=["cold"])],
        goal: Annotated[str, Field(pattern="^[a-zA-Z]{4}$", examples=["warm"])],
    ) -> str:
        """Turns one four-letter word into another, changing one letter at each rung."""
        await asyncio.sleep(random.uniform(1.0, 3.0))
        found = ladder(start.lower(), goal.lower())
        if not found:
            return f"I know no ladder from {start} to {goal}."
        return f"{' > '.join(found)}\n{len(found) - 1} rungs"

    made.add_tool(word_ladder, annotations=READS)
    return made


class Rated(BaseModel):
    """A rating after a game."""

    expected_score: float
    new_rating: float
    change: float


def ratings() -> MCPServer[Any]:
    """Elo."""
    made = server("rating-room", "Elo ratings as chess federations compute them.")

    def rate_game(
        rating: float,
        opponent: float,
        result: Literal["win", "draw", "loss"],
        k: Annotated[float, Field(gt=0, le=100)] = 20,
    ) -> Rated:
        score = {"win": 1.0, "draw": 0.5, "loss": 0.0}[result]
        expected, new = elo(rating, opponent, score, k)
        return Rated(expected_score=expected, new_rating=new, change=round(new - rating, 1))

    made.add_tool(rate_game, annotations=READS, description=(
        "A player's new Elo rating after one game, from both ratings, the result and the K-factor."
    ))  # fmt: skip
    return made


AGENTS = (
    honest("mcp", "League secretary", on_server(league)),
    honest("mcp", "Version marshal", on_server(versions, sessions=True)),
    honest("mcp", "Two drafts", on_server(differences, plain_json=False)),
    honest("mcp", "Toml table", on_server(toml_reader)),
    honest("mcp", "Wayfarer", on_server(routes, sse=True)),
    honest("mcp", "Sedici caratteri", on_server(tax_codes)),
    honest("mcp", "Rungs", on_server(ladders, sessions=True, plain_json=False)),
    honest("mcp", "Rating room", on_server(ratings)),
)
