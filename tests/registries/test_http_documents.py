"""Token URIs: every kind, every hop judged, every failure a sentence."""

import base64
import hashlib
from collections.abc import AsyncIterator, Mapping

import pytest

from assay.net.egress.client import GuardedHttp
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.net.egress.url import EgressPolicy
from assay.registries.documents import REDIRECTS_MAX, GuardedDocuments
from assay.registries.ports import DocumentUnavailable
from tests.net.test_http_egress_address import DENIED_ANSWERS
from tests.support.fakes.scripted_resolver import ScriptedResolver
from tests.support.raw_server import keeps_open, plain, serving
from tests.vectors.forbidden_hosts import DENIED_LITERALS, NAMES

QUICK = Limits(connect_s=1.0, total_s=2.0, body_bytes_max=1000)
BODY = b'{"name":"agent"}'
CID = "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
RAW_CID = (
    "b"
    + base64.b32encode(b"\x01\x55\x12\x20" + hashlib.sha256(BODY).digest())
    .decode()
    .rstrip("=")
    .lower()
)


@pytest.fixture
async def http() -> AsyncIterator[GuardedHttp]:
    guarded = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    yield guarded
    await guarded.aclose()


class Web:
    """Fixed pages behind a scripted door, so that no name leaves the machine."""

    def __init__(self, pages: Mapping[str, tuple[int, str | bytes] | Failure]) -> None:
        self._pages = pages
        self.asked: list[str] = []

    async def send(self, request: OutboundRequest, limits: Limits = QUICK) -> EgressResponse:
        del limits
        self.asked.append(request.url)
        page = self._pages[request.url]
        if isinstance(page, Failure):
            raise EgressError(page, "detail with 10.0.0.1 inside")
        status, content = page
        headers = (("location", content),) if isinstance(content, str) else ()
        body = content if isinstance(content, bytes) else b""
        return EgressResponse(status, headers, body, truncated=False, elapsed_ms=1.0)


async def unavailable(documents: GuardedDocuments, uri: str) -> str:
    with pytest.raises(DocumentUnavailable) as raised:
        await documents.fetch(uri)
    return str(raised.value)


async def test_a_document_is_fetched_over_the_guarded_door(http: GuardedHttp) -> None:
    async with serving(keeps_open(plain(BODY))) as server:
        document = await GuardedDocuments(http, None, QUICK).fetch(server.url("/agent.json"))
        assert document.body == BODY
        assert server.requests[0].target == "/agent.json"


async def test_a_large_document_is_refused_and_not_cut(http: GuardedHttp) -> None:
    async with serving(keeps_open(plain(b"x" * 1001))) as server:
        documents = GuardedDocuments(http, None, QUICK)
        assert "larger than 1000 bytes" in await unavailable(documents, server.url())


@pytest.mark.parametrize("status", [204, 304, 400, 401, 404, 500])
async def test_only_a_plain_success_is_a_document(status: int) -> None:
    documents = GuardedDocuments(Web({"https://a.example/": (status, BODY)}), None)
    assert f"status {status}" in await unavailable(documents, "https://a.example/")


async def test_redirects_are_followed_hop_by_hop() -> None:
    web = Web(
        {
            "https://a.example/x": (302, "https://b.example/y"),
            "https://b.example/y": (307, "/z?q=1"),
            "https://b.example/z?q=1": (200, BODY),
        }
    )
    assert (await GuardedDocuments(web, None).fetch("https://a.example/x")).body == BODY
    assert len(web.asked) == 3


async def test_a_chain_of_redirects_ends() -> None:
    web = Web({"https://a.example/": (301, "https://a.example/")})
    documents = GuardedDocuments(web, None)
    assert "too often" in await unavailable(documents, "https://a.example/")
    assert len(web.asked) == REDIRECTS_MAX + 1


@pytest.mark.parametrize(
    "location",
    [
        "http://b.example/",
        "HTTP://b.example/",
        "//[bad",
        "file:///etc/passwd",
        "data:,x",
        "ftp://b",
    ],
)
async def test_a_redirect_never_leaves_https(location: str) -> None:
    web = Web({"https://a.example/": (302, location)})
    await unavailable(GuardedDocuments(web, None), "https://a.example/")
    assert web.asked == ["https://a.example/"]


async def test_a_redirect_without_an_address_is_no_document() -> None:
    web = Web({"https://a.example/": (302, b"")})
    assert "nowhere" in await unavailable(GuardedDocuments(web, None), "https://a.example/")


async def test_a_redirect_to_a_forbidden_address_is_judged_like_any_other() -> None:
    """The first hop is allowed for the test; the second would be a cloud's metadata service."""
    async with serving(
        keeps_open(plain(b"", "302 Found", "Location: http://169.254.169.254/latest"))
    ) as server:
        lax = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
        said = await unavailable(GuardedDocuments(lax, None, QUICK), server.url())
        assert said == "the document's address is not one that is called"
        await lax.aclose()


class Lure:
    """A public page that redirects; every other address goes through the real door."""

    def __init__(self, location: str, door: GuardedHttp) -> None:
        self._location = location
        self._door = door

    async def send(self, request: OutboundRequest, limits: Limits = QUICK) -> EgressResponse:
        if request.url != "https://lure.example/":
            return await self._door.send(request, limits)
        headers = (("location", self._location),)
        return EgressResponse(302, headers, b"", truncated=False, elapsed_ms=1.0)


@pytest.mark.parametrize("host", [*DENIED_LITERALS, *NAMES], ids=ascii)
async def test_no_spelling_of_a_forbidden_address_is_reached_by_a_redirect(host: str) -> None:
    resolver = ScriptedResolver()
    door = GuardedHttp(EgressPolicy(), resolver)
    for location in (f"https://{host}/", f"//{host}/latest", f"https://user@{host}:8443/"):
        documents = GuardedDocuments(Lure(location, door), None, QUICK)
        await unavailable(documents, "https://lure.example/")
    assert resolver.asked == []
    await door.aclose()


@pytest.mark.parametrize("answer", DENIED_ANSWERS)
async def test_a_redirect_to_a_name_of_a_forbidden_address_is_not_followed(answer: str) -> None:
    resolver = ScriptedResolver(inner_example=[[answer], ["93.184.216.34", answer]])
    door = GuardedHttp(EgressPolicy(), resolver)
    documents = GuardedDocuments(Lure("https://inner.example/", door), None, QUICK)
    for _ in range(2):  # each hop is looked up and judged anew, however it was answered before
        said = await unavailable(documents, "https://lure.example/")
        assert said == "the document's address is not one that is called"
    assert resolver.asked == ["inner.example"] * 2
    await door.aclose()


async def test_plain_http_is_fetched_only_where_the_policy_allows_it() -> None:
    strict = GuardedHttp(EgressPolicy())
    documents = GuardedDocuments(strict, None, QUICK)
    assert "not one that is called" in await unavailable(documents, "http://agent.example/")
    await strict.aclose()


@pytest.mark.parametrize("failure", list(Failure))
async def test_every_failure_is_a_sentence_without_internals(failure: Failure) -> None:
    documents = GuardedDocuments(Web({"https://a.example/": failure}), None)
    said = await unavailable(documents, "https://a.example/")
    assert said.startswith("the ")
    assert "10.0.0.1" not in said


@pytest.mark.parametrize(
    ("uri", "target"),
    [
        (f"ipfs://{CID}", f"/ipfs/{CID}"),
        (f"IPFS://{CID}/", f"/ipfs/{CID}"),
        (f"ipfs://ipfs/{CID}/a%20b.json", f"/ipfs/{CID}/a%20b.json"),
        (f"ipfs://{CID}/dir/agent.json?x#y", f"/ipfs/{CID}/dir/agent.json"),
        (f"ipfs:{CID}", f"/ipfs/{CID}"),
    ],
)
async def test_ipfs_goes_through_the_gateway(http: GuardedHttp, uri: str, target: str) -> None:
    async with serving(keeps_open(plain(BODY))) as server:
        documents = GuardedDocuments(http, server.url("").rstrip("/"), QUICK)
        assert (await documents.fetch(uri)).body == BODY
        assert [request.target for request in server.requests] == [target]


@pytest.mark.parametrize(
    "uri",
    ["ipfs://", "ipfs://short", f"ipfs://{CID}/../../api", f"ipfs://{CID}/%2e%2e/x", f"ipfs://@{CID}",
     f"ipfs://{CID}@evil.example", f"ipfs://{CID}%2f..", "ipfs://../../etc/passwd"],
)  # fmt: skip
async def test_a_malformed_ipfs_address_never_reaches_the_gateway(uri: str) -> None:
    web = Web({})
    documents = GuardedDocuments(web, "https://gateway.example")
    assert "well formed" in await unavailable(documents, uri)
    assert web.asked == []


async def test_ipfs_can_be_switched_off() -> None:
    assert "switched off" in await unavailable(GuardedDocuments(Web({}), None), f"ipfs://{CID}")


async def test_a_gateway_cannot_lie_about_a_file_whose_hash_is_its_name() -> None:
    url = f"https://gateway.example/ipfs/{RAW_CID}"
    honest = GuardedDocuments(Web({url: (200, BODY)}), "https://gateway.example/")
    assert (await honest.fetch(f"ipfs://{RAW_CID}")).body == BODY
    lying = GuardedDocuments(Web({url: (200, BODY + b" ")}), "https://gateway.example")
    assert "other content" in await unavailable(lying, f"ipfs://{RAW_CID}")


async def test_a_data_uri_needs_no_network() -> None:
    documents = GuardedDocuments(Web({}), None, QUICK)
    encoded = base64.b64encode(BODY).decode()
    assert (await documents.fetch(f"data:application/json;base64,{encoded}")).body == BODY
    assert "larger than" in await unavailable(documents, "data:application/json," + "x" * 1001)


@pytest.mark.parametrize(
    "uri", ["", "ar://x", "ipns://x", "ftp://x", "file:///etc/passwd", "/x", "x"]
)
async def test_other_kinds_are_refused_in_a_sentence(uri: str) -> None:
    web = Web({})
    assert "not of a kind" in await unavailable(GuardedDocuments(web, "https://g.example"), uri)
    assert web.asked == []


@pytest.mark.parametrize("cid", ["b" + "1" * 58, "Qm" + "a" * 44, "b" + "a" * 58])
async def test_a_cid_that_names_a_tree_is_taken_at_the_gateways_word(cid: str) -> None:
    web = Web({f"https://gateway.example/ipfs/{cid}": (200, BODY)})
    documents = GuardedDocuments(web, "https://gateway.example")
    assert (await documents.fetch(f"ipfs://{cid}")).body == BODY
