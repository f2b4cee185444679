"""The secrets of a service: each is a ring from its setting, or from the generated file."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Literal

from assay.common import secret_file
from assay.common.clock import Clock, SystemClock
from assay.common.keyring import SecretRing
from assay.settings import PREFIX, Settings, SettingsError

SecretName = Literal["jwt", "session", "snapshot", "signing", "payment", "upstream"]

KEPT: Final = timedelta(days=1)
"""How long a previous secret verifies: longer than anything that it signed is valid."""

_SIGNING: Final[tuple[SecretName, ...]] = ("jwt", "session", "signing", "payment")
SEALING: Final[tuple[SecretName, ...]] = ("snapshot", "upstream")
"""Secrets that protect stored data: a previous one is kept while it seals something."""

_SETTINGS: Final[Mapping[SecretName, str]] = {"upstream": "upstream_secrets"}


def secret_rings(settings: Settings, now: datetime) -> Mapping[SecretName, SecretRing]:
    """Return every ring, the secret in use first. Raises `SecretFileError`."""
    names: Sequence[SecretName] = (*_SIGNING, *SEALING)
    rings: dict[SecretName, SecretRing] = {name: _given(settings, name) for name in names}
    missing: list[SecretName] = [name for name in names if not rings[name]]
    if missing:
        kept_as = [_kept_as(name) for name in missing]
        drawn = secret_file.load_or_create(_file(settings), kept_as, now)
        for name in missing:
            rings[name] = drawn[_kept_as(name)]
    return rings


def generated_secrets(settings: Settings, now: datetime) -> Mapping[str, SecretRing]:
    """Return the generated rings in use, by their names in the file; generate none.

    Raises `SecretFileError`.
    """
    names: Sequence[SecretName] = (*_SIGNING, *SEALING)
    kept_as = [_kept_as(name) for name in names if not _given(settings, name)]
    return secret_file.load_known(_file(settings), kept_as, now)


def known_secrets(settings: Settings, now: datetime) -> Mapping[SecretName, SecretRing]:
    """Return the rings that settings or the file hold already; generate none.

    Raises `SecretFileError`.
    """
    names: Sequence[SecretName] = (*_SIGNING, *SEALING)
    generated = generated_secrets(settings, now)
    rings: dict[SecretName, SecretRing] = {}
    for name in names:
        if ring := _given(settings, name) or generated.get(_kept_as(name)):
            rings[name] = ring
    return rings


def rotate_secret(
    settings: Settings, name: SecretName, *, compromised: bool, clock: Clock | None = None
) -> str:
    """Change a generated secret; return a sentence that says what to do next.

    What a compromised secret signed is no longer accepted. Raises `SettingsError` for a secret that
    a setting gives, and `SecretFileError`.
    """
    if _given(settings, name):
        setting = PREFIX + _setting(name).upper()
        raise SettingsError(
            f"{setting} is set: put the new secret into it, before the old one and a comma"
        )
    now, path, kept_as = (clock or SystemClock()).now(), _file(settings), _kept_as(name)
    secret_file.load_or_create(path, [kept_as], now)
    if compromised and name in _SIGNING:
        secret_file.replace(path, kept_as)
        return "Restart every process now: until then the old secret is accepted."
    keep_until = now + KEPT if name in _SIGNING else None
    for _ in range(2 if compromised else 1):  # a reader of the file knows the next secret as well
        secret_file.rotate(path, kept_as, now, keep_until)
    if name == "upstream":
        return "Restart every process, then run `assay wrappers reseal`."
    return "Restart every process, one after the other."


def _file(settings: Settings) -> Path:
    return settings.data_dir / "secrets.json"


def _given(settings: Settings, name: SecretName) -> SecretRing:
    return tuple(secret.get_secret_value() for secret in getattr(settings, _setting(name)))


def _setting(name: SecretName) -> str:
    return _SETTINGS.get(name, _kept_as(name))


def _kept_as(name: SecretName) -> str:
    return f"{name}_secret"
