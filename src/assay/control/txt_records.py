"""Reads TXT records of untrusted names by the configured name servers (control proofs).

Only the system's name servers are asked, never those that another party names. Look-ups have shares
by domain, like those of addresses.
"""

import asyncio
import re
import secrets
from collections.abc import Sequence

import dns.asyncresolver
import dns.name
import dns.resolver

from assay.control.ports import LookUpUnavailable
from assay.net.egress.ports import EgressError
from assay.net.egress.request_slots import Slots, SlotShare, new_holder
from assay.net.egress.url import domain_of, is_inside_name

LOOKUPS = SlotShare(32, 16)
DOMAIN = SlotShare(4, 2)
"""Concurrent look-ups: of all names, and of names of one domain."""

LOOKUP_S = 2.0
WAIT_S = 2.0
"""Time limit of one look-up, and of its wait for a slot."""

RECORDS_MAX = 100
RECORD_CHARS_MAX = 1024

_NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63}){1,20}")
"""Names as targets have them; in other names the library reads escapes, and some break it."""


class DnsTxtRecords:
    """Reads TXT records by DNS; implements `control.ports.TxtRecords`.

    What a wildcard of the zone answers, also for a random name, is left out: it was not published
    for this host.
    """

    def __init__(self, resolver: dns.asyncresolver.Resolver | None = None) -> None:
        """Use `resolver`, or the system's configuration; without either, DNS is never used."""
        self._resolver = resolver or _configured()
        self._slots = Slots()

    async def find(self, name: str) -> Sequence[str]:
        if self._resolver is None or not _NAME.fullmatch(name) or is_inside_name(name):
            return ()
        places = {"all": LOOKUPS, f"domain {domain_of(name)}": DOMAIN}
        holder, ends_s = new_holder(), asyncio.get_running_loop().time() + WAIT_S
        try:
            await self._slots.take(places, holder, ends_s)
        except EgressError as error:
            raise LookUpUnavailable from error
        try:
            return await self._published(self._resolver, name)
        finally:
            self._slots.give_back(places, holder)

    async def _published(self, resolver: dns.asyncresolver.Resolver, name: str) -> list[str]:
        found = await _look_up(resolver, name)
        if not found:
            return []
        label, _, parent = name.partition(".")
        nobodys = f"{label[:20]}-{secrets.token_hex(8)}.{parent}"
        of_wildcard = set(await _look_up(resolver, nobodys))
        return [record for record in found if record not in of_wildcard]


def _configured() -> dns.asyncresolver.Resolver | None:
    try:
        return dns.asyncresolver.Resolver()
    except dns.resolver.NoResolverConfiguration:
        return None


async def _look_up(resolver: dns.asyncresolver.Resolver, name: str) -> list[str]:
    try:
        asked = dns.name.from_text(name)
        answer = await resolver.resolve(
            asked, "TXT", search=False, raise_on_no_answer=False, lifetime=LOOKUP_S
        )
    except (dns.resolver.NXDOMAIN, dns.name.LabelTooLong, dns.name.NameTooLong):
        return []
    except Exception as error:  # Hostile answers raise errors that the library does not declare.
        raise LookUpUnavailable(str(error)) from error
    records: list[str] = []
    for rdata in list(answer)[:RECORDS_MAX]:
        strings: Sequence[bytes] = rdata.strings
        records.append(b"".join(strings).decode("utf-8", "replace")[:RECORD_CHARS_MAX])
    return records
