"""Secrets are changed without anybody noticing: what the old one made holds for its lifetime."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from mpp import Challenge, Credential

from assay.app.secrets import SecretName, rotate_secret
from assay.cli.maintenance import change_secret
from assay.evaluation.recompute import Audit
from assay.settings import SettingsError, load
from tests.support.fakes.clock import FrozenClock
from tests.support.live_service import OWNER_KEY, TestService, address, start_test_service

NAMES: tuple[SecretName, ...] = ("jwt", "session", "snapshot", "signing", "payment", "upstream")
OLD, NEW = "o" * 40, "n" * 40


@dataclass
class Made:
    """What a service has handed out and stored."""

    login: dict[str, str]
    session: dict[str, str]
    decision: str
    challenge: dict[str, str]


async def made_in(service: TestService) -> Made:
    key, session = await service.operator(), await service.session(OWNER_KEY)
    decision = (await service.gate(key | session)).json()["decisionToken"]
    login = await service.token()
    wrapper = {
        "path": "/sealed",
        "pricePerCall": 0,
        "targetUrl": "http://127.0.0.1:20009",
        "upstreamAuthType": "header",
        "upstreamAuthHeader": "x-key",
        "upstreamAuthSecret": "hush",
    }
    answer = await service.http.post("/operator/endpoints", json=wrapper, headers=login)
    assert answer.status_code == 200, answer.text
    return Made(login, session, decision, await service.challenge(OWNER_KEY))


async def holds(service: TestService, made: Made) -> Mapping[str, bool]:
    """Which of it is still accepted or readable."""
    me = await service.http.get("/operator/me", headers=made.login)
    path = f"/operator/key/{address(OWNER_KEY)}/attestation"
    read = await service.http.get(path, headers=made.session)
    answered = await service.http.post("/operator/key/verify", json=made.challenge)
    return {
        "jwt": me.status_code == 200,
        "session": read.status_code == answered.status_code == 200,
        "snapshot": await _are_snapshots_read(service.app.audit),
        "signing": await _is_verified(service, made.decision),
    }


async def _are_snapshots_read(audit: Audit) -> bool:
    checked = [one async for one in audit.snapshots()]
    assert checked
    return all(one.has_data and not one.faults for one in checked)


async def _is_verified(service: TestService, token: str) -> bool:
    keys = KeySet.import_key_set((await service.http.get("/.well-known/jwks.json")).json())
    try:
        jws.deserialize_compact(token, keys, ["ES256"])
    except (JoseError, ValueError):
        return False
    return True


def rotated(folder: Path, name: SecretName, *, compromised: bool = False) -> str:
    return rotate_secret(load(data_dir=folder), name, compromised=compromised, clock=FrozenClock())


async def test_after_a_rotation_of_every_secret_everything_holds(tmp_path: Path) -> None:
    async with start_test_service(tmp_path) as service:
        made = await made_in(service)
    for name in NAMES:
        rotated(tmp_path, name)
    async with start_test_service(tmp_path) as service:
        assert set((await holds(service, made)).values()) == {True}
        [sealed] = (await service.http.get("/operator/endpoints", headers=made.login)).json()
        assert sealed["upstreamAuthType"] == "header"
        owner = await service.app.operators.find_for_admin("op@example.com")
        assert await service.app.endpoints.reseal(owner.id) == 1  # it is opened, and sealed again


async def test_a_process_with_the_old_file_accepts_what_a_rotated_one_makes(
    tmp_path: Path,
) -> None:
    async with start_test_service(tmp_path) as old:
        first = await made_in(old)
        for name in NAMES:
            rotated(tmp_path, name)
        async with start_test_service(tmp_path) as new:
            session, login = await new.session(OWNER_KEY), await new.token()
            key = await new.operator("other@example.com")
            decision = (await new.gate(key | session)).json()["decisionToken"]
            challenge = await new.challenge(OWNER_KEY)
        second = Made(login, session, decision, challenge)
        assert set((await holds(old, second)).values()) == {True}
        assert set((await holds(old, first)).values()) == {True}


async def test_of_a_compromised_secret_nothing_is_accepted(tmp_path: Path) -> None:
    async with start_test_service(tmp_path) as service:
        made = await made_in(service)
    for name in NAMES:
        rotated(tmp_path, name, compromised=True)
    async with start_test_service(tmp_path) as service:
        assert await holds(service, made) == {
            "jwt": False,
            "session": False,
            "snapshot": True,  # it is stored under the old secret, and stays readable
            "signing": False,
        }


async def test_secrets_of_settings_are_rings_as_well(tmp_path: Path) -> None:
    def given(value: str) -> dict[str, Any]:
        rings = {f"{name}_secret": value for name in NAMES[:-1]}
        return {**rings, "upstream_secrets": value}

    async with start_test_service(tmp_path, **given(OLD)) as service:
        made = await made_in(service)
    async with start_test_service(
        tmp_path, **given(f"{OLD}, {NEW}")
    ) as service:  # the next one is staged
        assert set((await holds(service, made)).values()) == {True}
        made.challenge = await service.challenge(OWNER_KEY)
    async with start_test_service(tmp_path, **given(f"{NEW},{OLD}")) as service:
        assert set((await holds(service, made)).values()) == {True}
    async with start_test_service(tmp_path, **given(NEW)) as service:
        assert set((await holds(service, made)).values()) == {False}


def test_a_secret_that_a_setting_gives_is_changed_there(tmp_path: Path) -> None:
    settings = load(data_dir=tmp_path, jwt_secret=OLD)
    with pytest.raises(SettingsError, match="ASSAY_JWT_SECRET"):
        rotate_secret(settings, "jwt", compromised=False)
    with pytest.raises(SettingsError, match="32 characters"):
        load(data_dir=tmp_path, jwt_secret=f"{NEW},short")


def test_the_command_says_what_is_to_be_done_and_never_the_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ASSAY_DATA_DIR", str(tmp_path))
    for name in NAMES:
        assert change_secret(name, compromised=False) == 0
    said = capsys.readouterr().out
    assert "Restart every process" in said
    assert "assay wrappers reseal" in said
    values = json.loads((tmp_path / "secrets.json").read_text()).values()
    assert not any(part in said for value in values for part in value.split("@") if part)
    monkeypatch.setenv("ASSAY_JWT_SECRET", OLD)
    assert change_secret("jwt", compromised=False) == 78
    assert "ASSAY_JWT_SECRET" in capsys.readouterr().err


async def test_a_challenge_of_an_earlier_payment_secret_is_still_looked_into(
    tmp_path: Path,
) -> None:
    """What comes behind the challenge is refused, which is only read when the challenge is ours."""
    wrapper = {
        "path": "/paid",
        "pricePerCall": 0.01,
        "targetUrl": "http://127.0.0.1:20009",
        "paymentProtocol": "mpp",
        "paymentNetwork": "tempo:42431",
        "payoutAddress": "0x" + "5e" * 20,
    }
    chain = {"payment_rpc": {"tempo:42431": ["http://127.0.0.1:9"]}}
    async with start_test_service(tmp_path, payment_secret=OLD, **chain) as service:
        await service.operator()
        token = await service.token()
        made = await service.http.post("/operator/endpoints", json=wrapper, headers=token)
        assert made.status_code == 200, made.text
        me = (await service.http.get("/operator/me", headers=token)).json()
        url = f"/wrap/{me['operator']['id']}/paid"
        asked = (await service.http.get(url)).headers["www-authenticate"]
        echo = Challenge.from_www_authenticate(asked).to_echo()
        payload = {"type": "transaction", "signature": "0x76"}
        header = {"authorization": Credential(echo, payload).to_authorization()}
    reasons: list[str] = []
    for ring in (f"{NEW},{OLD}", NEW):
        async with start_test_service(tmp_path, payment_secret=ring, **chain) as service:
            answer = await service.http.get(url, headers=header)
            assert answer.status_code == 402, answer.text
            reasons.append(answer.json()["reason"])
    assert reasons[0] != "invalid-challenge" == reasons[1]
