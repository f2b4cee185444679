"""Keys of tokens from before ES256 are published once: one lifetime after the upgrade."""

import asyncio
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from assay.db.engine import Database
from assay.gate.decision_token import TOKEN_TTL
from assay.settings import load
from tests.support.live_service import TestService, start_test_service

OPERATOR = text(
    "INSERT INTO operators (id, email, email_lower, name, role, plan, fee_rate, password_hash,"
    " created_us, updated_us) VALUES ('op', 'A@b.cc', 'a@b.cc', 'A', 'operator', 'free', '0', '!',"
    " 0, 0)"
)
OLD, NEW = "o" * 40, "n" * 40
LIFETIME_S = TOKEN_TTL.total_seconds()


def _at_0012(connection: Connection) -> None:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "assay.db:migrations")
    config.set_main_option("path_separator", "os")
    command.upgrade(config, "0012")


async def _earlier_version(folder: Path, *, is_used: bool) -> None:
    """The database of a version before; used, or only made."""
    await asyncio.to_thread(folder.mkdir, mode=0o700)
    database = await Database.open(load(data_dir=folder).database)
    async with database.write(60) as connection:
        await connection.run_sync(_at_0012)
        if is_used:
            await connection.execute(OPERATOR)
    await database.close()


async def _algorithms(service: TestService) -> list[str]:
    keys = (await service.http.get("/.well-known/jwks.json")).json()["keys"]
    return sorted(key["alg"] for key in keys)


async def test_a_service_that_never_signed_with_ed25519_publishes_no_such_key(
    tmp_path: Path,
) -> None:
    """Whether it is new or was begun by an earlier version, and at no later start."""
    await _earlier_version(tmp_path / "unused", is_used=False)
    for folder in ("new", "unused"):
        for number in range(2):
            async with start_test_service(tmp_path / folder, signing_secret=OLD) as service:
                assert await _algorithms(service) == ["ES256"]
                await service.operator(f"{number}@b.cc")


async def test_earlier_keys_are_published_for_one_lifetime_after_the_first_start(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data"
    await _earlier_version(folder, is_used=True)
    async with start_test_service(folder, signing_secret=OLD) as service:
        assert await _algorithms(service) == ["ES256", "Ed25519"]
    for waited_s, ring, expected in (
        (1, OLD, ["ES256", "Ed25519"]),
        (1, f"{NEW},{OLD}", ["ES256", "ES256", "Ed25519"]),  # of the ring that signed with it
        (1, NEW, ["ES256"]),
        (LIFETIME_S - 1, OLD, ["ES256", "Ed25519"]),
        (LIFETIME_S, OLD, ["ES256"]),
        (10 * LIFETIME_S, OLD, ["ES256"]),
    ):
        async with start_test_service(folder, signing_secret=ring) as service:
            service.clock.move(waited_s)
            assert await _algorithms(service) == expected, waited_s
