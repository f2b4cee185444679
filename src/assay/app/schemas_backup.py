"""The manifest of a backup."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from assay.app.secrets import SecretName
from assay.db.backup import TableDigest


class BackupManifest(BaseModel):
    """What a backup holds; its last member, so that an archive without it is incomplete."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1]
    version: str
    """Of the service that wrote it."""
    created_at: str
    database: Literal["sqlite", "postgresql"]
    revision: str | None
    tables: dict[str, TableDigest]
    blocks: int
    """How many encrypted snapshots."""
    files: list[str]
    salt: str
    secrets: dict[SecretName, list[str]]
    """Fingerprints, made with the salt: of the secret in use, and of all that seal stored data."""
    keys: dict[str, str]
    """Fingerprints of key files, whether or not the backup holds them."""
