"""A paid answer carries a receipt that anybody can check offline, and that proves nothing else."""

import base64
import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jwt
import pytest

from assay.cli.main import build
from assay.payments.model import StoredResponse
from assay.wrappers.model import AdmittedAgent, NotRequired
from assay.wrappers.receipts import (
    HEADER,
    RECEIPT_CHARS_MAX,
    RECEIPT_TYPE,
    InvalidReceipt,
    SignedReceipts,
    digest_of,
    facts_of,
    read_receipt,
)
from assay_client import Assay, InvalidToken
from tests.payments.outside import OPERATOR, PATH, PAYEE, PRICE, SOLD, FakeReply, incoming, payment
from tests.payments.sales import nothing, sale
from tests.payments.service import ADDRESS, SIGNER, Reply
from tests.payments.world import Terms
from tests.support.quiet_server import QuietHandler, serving

TARGET = f"/wrap/{OPERATOR}{PATH}"
SOLD_TO = StoredResponse(200, (), b"")
NOW = datetime(2026, 11, 1, tzinfo=UTC)


def receipt_of(reply: Reply | None) -> str:
    assert reply is not None
    return reply.headers[HEADER].decode()


def bought(folder: Path, settle: str = "after") -> str:
    with sale(folder, Terms(settle), nothing) as made:
        return receipt_of(made.show(made.process()))


def verified(token: str) -> dict[str, Any]:
    """Check it as a stranger's JWT library does."""
    published: Any = SIGNER.jwks(NOW)["keys"]
    (key,) = published
    return jwt.decode(
        token, jwt.PyJWK(key), algorithms=["ES256"], issuer=ADDRESS, options={"verify_iat": False}
    )


@pytest.mark.parametrize("settle", ["after", "before"])
def test_a_paid_answer_binds_request_payment_and_response(folder: Path, settle: str) -> None:
    with sale(folder, Terms(settle), nothing) as made:
        reply = made.show(made.process())
        claims, row = verified(receipt_of(reply)), made.world.row()
    said = json.loads(base64.b64decode(reply.headers[b"payment-response"]))  # type: ignore[union-attr]
    assert claims["payment"] == {
        "protocol": "x402",
        "network": row.network,
        "asset": row.asset,
        "amount": str(PRICE),
        "payTo": PAYEE,
        "payer": made.payer.address,
        "transaction": said["transaction"],
    }
    digest = base64.b64encode(hashlib.sha256(SOLD).digest()).decode()
    assert claims["response"] == {"status": 200, "contentDigest": f"sha-256=:{digest}:"}
    assert claims["request"] == {
        "method": "GET",
        "target": digest_of(TARGET.encode()),
        "contentDigest": digest_of(b""),
    }
    assert (claims["operator"], claims["wrapper"], claims["jti"]) == (
        *(OPERATOR, row.wrapper_id),
        row.id,
    )
    assert "decision" not in claims


def test_the_same_receipt_comes_with_the_answer_that_is_sent_again(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        first = receipt_of(made.show(made.process()))
        made.goes_on(3600)
        assert receipt_of(made.show(made.process())) == first


def test_an_unpaid_and_a_failed_call_have_none_and_no_upstream_can_set_it(folder: Path) -> None:
    with sale(folder, Terms("before"), nothing) as made:
        process = made.process()
        asked = process.call(incoming())
        assert asked is not None
        assert HEADER not in asked.headers
        made.world.upstream.script = [FakeReply(404), FakeReply(200, ((HEADER, b"forged"),))]
        failed = made.show(process)
        assert failed is not None
        assert (failed.status, HEADER in failed.headers) == (404, False)
        assert verified(receipt_of(made.show(process)))


def test_the_body_and_the_query_of_the_request_are_bound(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        sent = incoming(payment(made.signed), query="page=2", content=b"asked")
        claims = verified(receipt_of(made.process().call(sent)))
    assert claims["request"]["contentDigest"] == digest_of(b"asked")
    assert claims["request"]["target"] == digest_of(f"{TARGET}?page=2".encode())


def test_the_decision_is_named_and_the_longest_receipt_fits_a_header(folder: Path) -> None:
    trust = AdmittedAgent("9" * 78, "0x" + "ab" * 20, True, "AAA", 99.5, chain="x" * 64)  # noqa: FBT003
    with sale(folder, Terms(), nothing) as made:
        made.show(made.process())
        entry = made.world.row()
    stored = StoredResponse(200, (), b"body")
    facts = facts_of("POST", TARGET + "?" + "q" * 8000, b"x", stored, trust)
    ((_, token),) = SignedReceipts(SIGNER, "https://" + "h" * 200).header(
        entry, StoredResponse(200, (), b"body", receipt=facts)
    )
    claims = read_receipt(token.decode(), SIGNER.jwks(NOW))
    assert claims["decision"]["tier"] == "AAA"  # type: ignore[index,call-overload]
    assert len(token) < RECEIPT_CHARS_MAX
    assert SignedReceipts(SIGNER, "i" * RECEIPT_CHARS_MAX).header(entry, stored) == ()
    assert "decision" not in facts_of("GET", TARGET, b"", stored, NotRequired(""))


def test_the_decision_is_that_observing_would_have_made(folder: Path) -> None:
    """With `enforce: observe` an agent passes, and the receipt does not say that it may."""
    known = AdmittedAgent("7", PAYEE, proven=True, tier="C", score=5.0)
    with sale(folder, Terms(), nothing) as made:
        made.show(made.process())
        entry = made.world.row()

    def allowed(agent: AdmittedAgent) -> object:
        stored = StoredResponse(200, (), b"", receipt=facts_of("GET", TARGET, b"", SOLD_TO, agent))
        ((_, token),) = SignedReceipts(SIGNER, ADDRESS).header(entry, stored)
        decision: Any = verified(token.decode())["decision"]
        assert (decision["agentId"], decision["tier"]) == ("7", "C")
        return decision["allow"]

    assert allowed(known) is True
    assert allowed(replace(known, would_deny="below_threshold")) is False


def test_a_receipt_is_no_decision_token_and_a_decision_token_no_receipt(folder: Path) -> None:
    receipt, keys = bought(folder), SIGNER.jwks(NOW)
    decision = SIGNER.sign({"iss": ADDRESS, "aud": OPERATOR, "allow": True})
    with key_server(keys) as url, Assay(url) as client:
        with pytest.raises(InvalidToken, match="assay-decision"):
            client.verify_decision(receipt, audience=OPERATOR, issuer=ADDRESS)
        with pytest.raises(InvalidToken, match="assay-receipt"):
            client.verify_receipt(decision, issuer=ADDRESS)
    with pytest.raises(InvalidReceipt, match=RECEIPT_TYPE.replace("+", r"\+")):
        read_receipt(decision, keys)


def test_the_python_client_verifies_it_with_its_bodies(folder: Path) -> None:
    receipt = bought(folder)
    with key_server(SIGNER.jwks(NOW)) as url, Assay(url) as client:
        found = client.verify_receipt(receipt, request=b"", response=SOLD, issuer=ADDRESS)
        assert (found.payment.amount, found.response.status) == (str(PRICE), 200)
        for wrong in ({"request": b"x"}, {"response": b"x"}):
            with pytest.raises(InvalidToken, match="for another"):
                client.verify_receipt(receipt, issuer=ADDRESS, **wrong)
        with pytest.raises(InvalidToken, match="issuer"):
            client.verify_receipt(receipt)
        with pytest.raises(InvalidToken):
            client.verify_receipt(changed(receipt), issuer=ADDRESS)


def test_what_is_changed_is_refused(folder: Path) -> None:
    receipt, keys = bought(folder), SIGNER.jwks(NOW)
    head, payload, signature = receipt.split(".")
    none = base64.urlsafe_b64encode(json.dumps({"alg": "none", "typ": RECEIPT_TYPE}).encode())
    for wrong in (
        *("", "a.b.c", "x" * (RECEIPT_CHARS_MAX + 1), receipt + "é"),
        changed(receipt),
        f"{none.decode().rstrip('=')}.{payload}.",
        f"{head}.{payload}.{signature[::-1]}",
        SIGNER.sign([], RECEIPT_TYPE),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidReceipt):
            read_receipt(wrong, keys)
    bad_key = {"crv": "P-256", "kty": "EC", "x": "!", "y": ""}
    malformed: tuple[Any, ...] = ({"keys": []}, {}, {"keys": [bad_key]})
    for no_keys in malformed:
        with pytest.raises(InvalidReceipt):
            read_receipt(receipt, no_keys)


def test_the_command_says_what_holds_and_what_does_not(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "receipt": bought(folder).encode() + b"\n",
        "keys": json.dumps(SIGNER.jwks(NOW)).encode(),
        "sold": SOLD,
        "other": b"another",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    at = {name: str(tmp_path / name) for name in files}
    asked = ["receipts", "verify", at["receipt"], "--jwks", at["keys"], "--target", TARGET]
    asked += ["--issuer", ADDRESS, "--response"]
    assert build()([*asked, at["sold"]]) == 0
    assert "holds    response" in capsys.readouterr().out
    assert build()([*asked, at["other"]]) == 1
    assert "DIFFERS  response" in capsys.readouterr().out
    assert build()([*asked, at["sold"], "--transaction", "0x00", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["holds"]
    assert found == {**dict.fromkeys(("signature", "response", "target", "issuer"), True)} | {
        "transaction": False
    }
    for name in ("other", "sold"):
        assert build()(["receipts", "verify", at[name], "--jwks", at["keys"]]) == 1
        assert build()(["receipts", "verify", at["receipt"], "--jwks", at[name]]) == 1
    assert "does not hold" in capsys.readouterr().err
    with key_server(SIGNER.jwks(NOW)) as url:
        jwks = f"{url}/.well-known/jwks.json"
        assert build()(["receipts", "verify", at["receipt"], "--jwks", jwks]) == 0
        assert build()(["receipts", "verify", at["receipt"], "--jwks", f"{url}/none"]) == 1


def changed(token: str) -> str:
    head, payload, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    claims["payment"]["amount"] = "1"
    forged = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"{head}.{forged}.{signature}"


def key_server(keys: Any) -> Any:
    body = json.dumps(keys).encode()

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/.well-known/jwks.json" else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return serving(Handler)
