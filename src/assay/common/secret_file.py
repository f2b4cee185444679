"""Generates secrets once, and keeps them in a file that only its owner can read.

Each secret is a ring: the secret in use, the next one, which is accepted already, and previous
ones. A change makes the next secret the one in use. Processes that still run with the old file
therefore accept what a restarted process signs, and the reverse.

Private keys of secp256k1 are generated once as well, into files of their own.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from coincurve import PrivateKey

from assay.common.clock import from_iso, iso
from assay.common.json import is_object
from assay.common.keyring import SecretRing

NEXT, PREVIOUS = "_next", "_previous"
"""Endings of the names of the ring's other members. `NAME_previous` holds `secret@until`, with
commas between; without a time a secret is kept for ever."""


class SecretFileError(RuntimeError):
    """The secret file cannot be used; the message says why and how to fix it."""


def load_or_create(path: Path, names: Sequence[str], now: datetime) -> dict[str, SecretRing]:
    """Return the rings of the file; generate missing secrets (32 bytes, hex) and write them back.

    The file is created with mode 0600, and refused if others can read it. Previous secrets whose
    time is over are left out.
    """
    drawn = [one for name in names for one in (name, name + NEXT)]
    known = _read(path)
    if any(one not in known for one in drawn):
        with _turn(path):
            known = _read(path)  # another process may have created them by now
            known = {one: secrets.token_hex(32) for one in drawn} | known
            _write(path, known)
    return {name: _ring(known, name, now) for name in names}


def load_known(path: Path, names: Sequence[str], now: datetime) -> dict[str, SecretRing]:
    """Return the rings that the file holds already; generate none. Raises `SecretFileError`."""
    known = _read(path)
    return {name: _ring(known, name, now) for name in names if {name, name + NEXT} <= known.keys()}


def rotate(path: Path, name: str, now: datetime, keep_until: datetime | None) -> None:
    """Put the next secret in use, draw another, and accept the old one until `keep_until`.

    If `keep_until` is None, it is accepted for ever. The ring must exist. Raises `SecretFileError`.
    """
    with _turn(path):
        known = _read(path)
        old = f"{known[name]}@{'' if keep_until is None else iso(keep_until)}"
        kept = [f"{secret}@{until}" for secret, until in _previous(known, name, now)]
        known[name + PREVIOUS] = ",".join([old, *kept])
        known[name] = known[name + NEXT]
        known[name + NEXT] = secrets.token_hex(32)
        _write(path, known)


def replace(path: Path, name: str) -> None:
    """Generate a whole new ring: nothing that the old secrets signed is accepted any more."""
    with _turn(path):
        known = _read(path)
        known.pop(name + PREVIOUS, None)
        known |= {one: secrets.token_hex(32) for one in (name, name + NEXT)}
        _write(path, known)


def _ring(known: dict[str, str], name: str, now: datetime) -> SecretRing:
    previous = (secret for secret, _ in _previous(known, name, now))
    return known[name], known[name + NEXT], *previous


def _previous(known: dict[str, str], name: str, now: datetime) -> list[tuple[str, str]]:
    """Return the previous secrets that still count, newest first, each with its time as text."""
    entries = [one.partition("@") for one in known.get(name + PREVIOUS, "").split(",") if one]
    try:
        return [(secret, at) for secret, _, at in entries if not at or now < from_iso(at)]
    except ValueError as error:
        raise SecretFileError(f"the previous secrets of {name} are not readable") from error


@contextmanager
def _turn(path: Path) -> Generator[None]:
    """Let one process write at a time: two that start at once must not draw different secrets."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise SecretFileError(f"cannot write the secrets to {path}: {error}") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


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
        temporary = path.with_suffix(f".{os.getpid()}")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            json.dump(values, out)
        temporary.replace(path)
    except OSError as error:
        raise SecretFileError(f"cannot write the secrets to {path}: {error}") from error


def make_key(path: Path) -> bool:
    """Write a new key to a new file of mode 0600, as 64 hex digits; False if a file exists.

    A reader of the file finds the whole key or no file. Raises `OSError`.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(PrivateKey().to_hex() + "\n")
        out.flush()
        os.fsync(out.fileno())  # somebody may send money to its address at once
    try:
        with suppress(FileExistsError):
            os.link(temporary, path)
            return True
        return False
    finally:
        temporary.unlink()
