"""Secrets nobody has to invent: generated once, kept in a file only its owner can read."""

import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from assay.kit.json import is_object


class SecretFileError(RuntimeError):
    """The secret file cannot be used; the message says why and how to mend it."""


def load_or_create(path: Path, names: Sequence[str]) -> dict[str, str]:
    """The named secrets of the file; missing ones are drawn (32 bytes, hex) and written back.

    The file is made with mode 0600 and refused when others can read it.
    """
    known = _read(path)
    missing = [name for name in names if name not in known]
    if missing:
        known |= {name: secrets.token_hex(32) for name in missing}
        _write(path, known)
    return {name: known[name] for name in names}


def _read(path: Path) -> dict[str, str]:
    try:
        if path.stat().st_mode & 0o077:
            raise SecretFileError(f"others can read {path}: run `chmod 600 {path}`")
        values: object = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SecretFileError(f"cannot read the secrets in {path}: {error}") from error
    if not is_object(values):
        raise SecretFileError(f"{path} does not hold a JSON object of secrets")
    return {str(name): str(value) for name, value in values.items()}


def _write(path: Path, values: dict[str, str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = path.with_suffix(f".{os.getpid()}")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            json.dump(values, out)
        temporary.replace(path)
    except OSError as error:
        raise SecretFileError(f"cannot write the secrets to {path}: {error}") from error
