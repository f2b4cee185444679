"""Secrets, snapshot blocks and logs on disk and on the wire."""

import base64
import io
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from assay.app.log import RequestLog, open_log
from assay.common.errors import Unavailable
from assay.common.keyring import SecretBox
from assay.common.secret_file import SecretFileError, load_or_create, replace, rotate
from assay.evaluation.blobs import LocalSnapshotBlobs, NoSnapshotBlobs, cid_v1_raw
from tests.support.fakes.clock import FrozenClock

NOW = FrozenClock().now()
BOX = SecretBox.from_secrets("s" * 40)


def test_secrets_are_drawn_once_and_kept_for_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "secrets.json"
    first = load_or_create(path, ["a", "b"], NOW)
    assert len({secret for ring in first.values() for secret in ring}) == 4  # the next ones too
    assert all(len(secret) == 64 for ring in first.values() for secret in ring)
    assert path.stat().st_mode & 0o777 == 0o600
    again = load_or_create(path, ["a", "b", "c"], NOW)
    assert {name: again[name] for name in first} == first
    assert [p.name for p in path.parent.iterdir()] == ["secrets.json"]


def test_a_rotated_secret_was_the_next_one_and_the_old_one_is_kept_for_its_time(
    tmp_path: Path,
) -> None:
    path = tmp_path / "secrets.json"
    (current, following) = load_or_create(path, ["a"], NOW)["a"]
    rotate(path, "a", NOW, NOW + timedelta(days=1))
    second = load_or_create(path, ["a"], NOW)["a"]
    assert (second[0], second[2:]) == (following, (current,))
    assert second[1] not in {current, following}
    rotate(path, "a", NOW, None)
    third = load_or_create(path, ["a"], NOW)["a"]
    assert (third[0], third[2:]) == (second[1], (following, current))
    later = load_or_create(path, ["a"], NOW + timedelta(days=1))["a"]
    assert later[2:] == (following,)  # without an end it is kept for ever
    assert path.stat().st_mode & 0o777 == 0o600


def test_of_a_replaced_secret_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    before = load_or_create(path, ["a", "b"], NOW)
    rotate(path, "a", NOW, None)
    replace(path, "a")
    after = load_or_create(path, ["a", "b"], NOW)
    assert after["b"] == before["b"]
    assert not set(after["a"]) & set(before["a"])
    assert all(secret not in path.read_text() for secret in before["a"])


def test_a_file_of_the_version_before_keeps_its_secret(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    path.touch(0o600)
    path.write_text(json.dumps({"a": "f" * 64}))
    ring = load_or_create(path, ["a"], NOW)["a"]
    assert (ring[0], len(ring)) == ("f" * 64, 2)
    assert load_or_create(path, ["a"], NOW)["a"] == ring


def test_processes_that_start_at_once_draw_the_same_secrets(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    code = (
        "import sys, datetime; from pathlib import Path;"
        "from assay.common.secret_file import load_or_create as load;"
        "sys.stdin.readline();"
        "print(load(Path(sys.argv[1]), ['a', 'b'], datetime.datetime.now(datetime.UTC)))"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(6)
    ]
    with ThreadPoolExecutor(6) as pool:
        said = set(pool.map(lambda one: one.communicate(b"go\n")[0], started))
    assert len(said) == 1


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_others_can_read_is_refused_and_the_message_says_how_to_fix_it(
    tmp_path: Path, mode: int
) -> None:
    path = tmp_path / "secrets.json"
    load_or_create(path, ["a"], NOW)
    path.chmod(mode)
    with pytest.raises(SecretFileError, match="chmod 600"):
        load_or_create(path, ["a"], NOW)


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"'])
def test_a_file_that_holds_no_secrets_is_refused_and_not_overwritten(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "secrets.json"
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(SecretFileError):
        load_or_create(path, ["a"], NOW)
    assert path.read_text() == text


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SecretFileError, match="cannot"):
        load_or_create(tmp_path / "file" / "secrets.json", ["a"], NOW)


def test_the_content_id_is_that_of_the_specification() -> None:
    """Multibase b (RFC 4648 base32, lower case, unpadded), CID 1, raw, sha2-256 of 32 bytes."""
    cid = cid_v1_raw(b"hello world")
    assert cid[0] == "b"
    raw = base64.b32decode(cid[1:].upper() + "=" * (-len(cid[1:]) % 8))
    digest = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"
    assert raw.hex() == "01551220" + digest


async def test_a_block_is_encrypted_named_by_content_and_read_back(tmp_path: Path) -> None:
    blobs = LocalSnapshotBlobs(tmp_path / "blocks", BOX)
    uri = await blobs.store(b'{"evidence": "plain"}')
    assert uri is not None
    (block,) = (tmp_path / "blocks").iterdir()
    assert uri == f"ipfs://{block.name}"
    assert b"plain" not in block.read_bytes()
    assert await blobs.load(uri) == b'{"evidence": "plain"}'


async def test_a_tampered_block_is_refused(tmp_path: Path) -> None:
    blobs = LocalSnapshotBlobs(tmp_path, BOX)
    uri = await blobs.store(b"data")
    assert uri is not None
    (block,) = tmp_path.iterdir()  # noqa: ASYNC240 - nothing else runs
    block.write_bytes(block.read_bytes() + b"x")
    with pytest.raises(ValueError, match="content id"):
        await blobs.load(uri)


async def test_a_store_that_does_not_take_it_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable):
        await LocalSnapshotBlobs(tmp_path / "file", BOX).store(b"data")


async def test_switched_off_nothing_is_stored() -> None:
    assert await NoSnapshotBlobs().store(b"data") is None


async def test_requests_are_one_json_line_each() -> None:
    out = io.StringIO()
    log = RequestLog(open_log("json", "info", out), "json", "info", out)
    log.write(method="GET", route="/x", status=200, operator=None)
    log.write(method="GET", route="/y", status=404)
    assert out.getvalue() == ""
    log.flush()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(line["event"], line["route"]) for line in lines] == [
        ("request", "/x"),
        ("request", "/y"),
    ]
    assert "operator" not in lines[0]


async def test_a_higher_level_silences_requests() -> None:
    out = io.StringIO()
    log = RequestLog(open_log("json", "warning", out), "json", "warning", out)
    log.write(method="GET")
    log.flush()
    assert out.getvalue() == ""


async def test_blocks_beyond_the_bound_go_oldest_first(tmp_path: Path) -> None:
    blobs = LocalSnapshotBlobs(tmp_path / "blocks", BOX)
    assert await blobs.trim(0, 10) == 0  # there is nothing yet
    uris = [f"{await blobs.store(b'data %d' % n)}" for n in range(6)]
    for age, uri in enumerate(reversed(uris)):
        os.utime(tmp_path / "blocks" / uri.removeprefix("ipfs://"), (1000 - age, 1000 - age))
    size = (tmp_path / "blocks" / uris[0].removeprefix("ipfs://")).stat().st_size
    assert await blobs.trim(4 * size, 1) == 1  # a few at a time
    assert await blobs.trim(4 * size, 10) == 1
    assert await blobs.trim(4 * size, 10) == 0
    assert [await blobs.load(uri) is None for uri in uris] == [True, True] + [False] * 4


async def test_a_removed_block_is_gone_and_nothing_else_can_be_named(tmp_path: Path) -> None:
    blobs = LocalSnapshotBlobs(tmp_path / "blocks", BOX)
    uri, other = f"{await blobs.store(b'one')}", f"{await blobs.store(b'two')}"
    (tmp_path / "secrets.json").write_text("{}")
    await blobs.remove("ipfs://../secrets.json")
    await blobs.remove(uri)
    await blobs.remove(uri)
    assert await blobs.load(uri) is None
    assert await blobs.load(other) == b"two"
    assert (tmp_path / "secrets.json").exists()
