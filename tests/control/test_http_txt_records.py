"""TXT records over the wire, from a name server that answers what a test says."""

import asyncio
from collections.abc import AsyncGenerator

import dns.asyncresolver
import dns.message
import dns.rcode
import dns.rrset
import pytest
from typing_extensions import override

from assay.control.ports import LookUpUnavailable
from assay.control.txt_records import DnsTxtRecords

NAME = "_agent-registration.h.example"


class NameServer(asyncio.DatagramProtocol):
    """Answers TXT questions from `zone`; `*.x` there is a wildcard. Silent where a test says so."""

    def __init__(self) -> None:
        self.zone: dict[str, list[str]] = {}
        self.rcode = dns.rcode.NOERROR
        self.is_silent = False
        self.asked: list[str] = []
        self._transport: asyncio.DatagramTransport | None = None

    @override
    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    @override
    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        question = dns.message.from_wire(data)
        name = question.question[0].name.to_text(omit_final_dot=True)
        self.asked.append(name)
        if self.is_silent:
            return
        answer = dns.message.make_response(question)
        answer.set_rcode(self.rcode)
        texts = self.zone.get(name, self.zone.get("*." + name.partition(".")[2]))
        if texts is None and self.rcode == dns.rcode.NOERROR:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        elif texts:
            quoted = [f'"{text}"' for text in texts]
            answer.answer.append(dns.rrset.from_text(f"{name}.", 60, "IN", "TXT", *quoted))
        assert self._transport is not None
        self._transport.sendto(answer.to_wire(), addr)


@pytest.fixture
async def server() -> AsyncGenerator[tuple[NameServer, DnsTxtRecords]]:
    transport, answering = await asyncio.get_running_loop().create_datagram_endpoint(
        NameServer, local_addr=("127.0.0.1", 0)
    )
    resolver = dns.asyncresolver.Resolver(configure=False)
    resolver.nameservers = ["127.0.0.1"]
    resolver.port = transport.get_extra_info("sockname")[1]
    resolver.timeout = 0.3
    yield answering, DnsTxtRecords(resolver)
    transport.close()


async def test_the_records_of_a_name_are_found(server: tuple[NameServer, DnsTxtRecords]) -> None:
    answering, records = server
    answering.zone[NAME] = ["one", "two"]
    assert sorted(await records.find(NAME)) == ["one", "two"]


async def test_a_name_that_does_not_exist_has_none(
    server: tuple[NameServer, DnsTxtRecords],
) -> None:
    answering, records = server
    assert list(await records.find(NAME)) == []
    answering.zone[NAME] = []
    assert list(await records.find(NAME)) == []


async def test_what_a_wildcard_answers_was_not_published_for_the_host(
    server: tuple[NameServer, DnsTxtRecords],
) -> None:
    answering, records = server
    answering.zone["*.h.example"] = ["agent-registration=eip155:1:0x1/7"]
    assert list(await records.find(NAME)) == []
    answering.zone[NAME] = ["agent-registration=eip155:1:0x1/8"]
    assert list(await records.find(NAME)) == ["agent-registration=eip155:1:0x1/8"]


@pytest.mark.parametrize("rcode", [dns.rcode.SERVFAIL, dns.rcode.REFUSED])
async def test_a_server_that_fails_says_nothing_of_the_host(
    server: tuple[NameServer, DnsTxtRecords], rcode: dns.rcode.Rcode
) -> None:
    server[0].rcode = rcode
    with pytest.raises(LookUpUnavailable):
        await server[1].find(NAME)


async def test_a_server_that_is_silent_is_not_waited_for_longer_than_the_bound(
    server: tuple[NameServer, DnsTxtRecords],
) -> None:
    server[0].is_silent = True
    with pytest.raises(LookUpUnavailable):
        await server[1].find(NAME)


@pytest.mark.parametrize(
    "name",
    ["a" * 64 + ".example", ".".join(["a" * 60] * 6), "..", "printer.local", "\\999.example"],
)
async def test_names_that_no_zone_has_are_asked_of_nobody(
    server: tuple[NameServer, DnsTxtRecords], name: str
) -> None:
    assert list(await server[1].find(name)) == []
    assert server[0].asked == []


async def test_without_a_configured_name_server_nothing_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> None:
        raise dns.resolver.NoResolverConfiguration

    monkeypatch.setattr(dns.asyncresolver, "Resolver", refuse)
    assert list(await DnsTxtRecords().find(NAME)) == []
