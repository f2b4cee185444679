"""Finds attestations on chain by recipient and trusted attester.

Source: interface.md#attestation-context.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.chains.evm.abi import BadAnswer, address_word
from assay.chains.evm.eas import (
    ATTESTED,
    AttestationField,
    OnchainAttestation,
    get_attestation,
    parse_schema,
    read_attestation,
    read_fields,
)
from assay.chains.evm.logs import EventLog, read_logs
from assay.chains.model import ChainUnavailable, Network, is_address
from assay.chains.networks import Networks
from assay.chains.rpc import ContractCall, Returned, Rpc
from assay.common.cache import Cache
from assay.common.clock import Clock
from assay.common.json import is_array
from assay.common.numbers import NotANumber, hex_number
from assay.evaluation.model import Attestation, Handle

TTL_S = 300.0
BUDGET_S = 2.5
LOOKED_AT = 10
"""Attestations read of one address, newest first."""

TEXT_CHARS_MAX = 200

_KNOWN = frozenset({"source", "sources", "handle", "handles", "owner", "organization"})
_URLS = frozenset({"profileurl", "credentialurl"})
_WORD_CHARS = 66


@dataclass(frozen=True, slots=True)
class EasSource:
    """A schema on a chain, and its trusted attesters."""

    network: Network
    eas: str
    schema: str
    fields: tuple[tuple[str, str], ...]
    attesters: tuple[str, ...]
    since_block: int


def eas_source(row: Mapping[str, object], networks: Networks) -> EasSource:
    """Parse a configured source; raises `ValueError` with a plain sentence."""
    names = {"chain", "eas", "schema", "fields", "attesters", "sinceBlock"}
    if unknown := sorted(row.keys() - names):
        raise ValueError(f"an attestation source has an unknown member {unknown[0]!r}")
    slug, eas, schema = str(row.get("chain")), str(row.get("eas")), str(row.get("schema"))
    attesters = row.get("attesters")
    if slug not in networks.rows:
        raise ValueError(f"an attestation source names the unknown chain {slug!r}")
    if not is_address(eas):
        raise ValueError("an attestation source needs `eas`, the contract's address")
    if len(schema) != _WORD_CHARS or not schema.startswith("0x"):
        raise ValueError("an attestation source needs `schema`, 0x and 64 hexadecimal digits")
    listed = [str(one) for one in attesters] if is_array(attesters) else []
    if not listed or not all(is_address(one) for one in listed):
        raise ValueError("an attestation source needs `attesters`, a list of addresses to believe")
    since = row.get("sinceBlock", 0)
    return EasSource(
        network=networks.rows[slug],
        eas=eas.lower(),
        schema=schema.lower(),
        fields=parse_schema(str(row.get("fields"))),
        attesters=tuple(one.lower() for one in listed),
        since_block=since if isinstance(since, int) else 0,
    )


class EasAttestations:
    """Reads attestations from EAS; implements `evaluation.ports.AttestationSource`."""

    def __init__(self, rpc: Rpc, sources: Sequence[EasSource], clock: Clock) -> None:
        self._rpc = rpc
        self._sources = sources
        self._clock = clock
        self._known: Cache[Attestation | None] = Cache(clock, TTL_S)

    async def newest(self, address: str) -> Attestation | None:
        return await self._known.get(address, lambda: self._find(address))

    async def _find(self, address: str) -> Attestation | None:
        """Return the attestation of the first source that has one; all are queried at once."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._of_source(s, address)) for s in self._sources]
        answers = [task.result() for task in tasks]
        for answer in answers:
            if isinstance(answer, Attestation):
                return answer
        for answer in answers:
            if isinstance(answer, ChainUnavailable):
                raise answer
        return None

    async def _of_source(
        self, source: EasSource, address: str
    ) -> Attestation | ChainUnavailable | None:
        """Query one source; return a fault as a value: it must not hide another source's answer."""
        try:
            return await self._read(source, address)
        except ChainUnavailable as error:
            return error
        except BadAnswer as error:
            return _unreadable(source, str(error))

    async def _read(self, source: EasSource, address: str) -> Attestation | None:
        network = source.network
        head = await self._rpc.request(network, "eth_blockNumber", [])
        topics = [
            ATTESTED,
            "0x" + address_word(address).hex(),
            ["0x" + address_word(one).hex() for one in source.attesters],
            source.schema,
        ]
        try:
            newest_block = hex_number(head, 64)
        except NotANumber:
            raise BadAnswer("no block number") from None
        logs = await read_logs(
            self._rpc, network, source.eas, [*topics], newest_block, self._clock, BUDGET_S,
            source.since_block,
        )  # fmt: skip
        newest = sorted(logs.found, key=lambda log: -log.block)[:LOOKED_AT]
        found = await self._rpc.call(network, [_call(source, log) for log in newest])
        read = [read_attestation(a.data) for a in found if isinstance(a, Returned)]
        now_s = int(self._clock.now().timestamp())
        for one in read:
            if _holds(one, source, address, now_s):
                return _attestation(one, source)
        if logs.since is None or logs.since > source.since_block:
            raise BadAnswer("not all blocks could be read")
        return None


def _call(source: EasSource, log: EventLog) -> ContractCall:
    return get_attestation(source.eas, log.data[:32])


def _holds(one: OnchainAttestation, source: EasSource, address: str, now_s: int) -> bool:
    """Validate the attestation: the contract's `isAttestationValid` only checks its existence.

    Source: eas.md#attestations.
    """
    return (
        one.schema == source.schema
        and one.attester in source.attesters
        and one.recipient == address
        and one.revoked_s == 0
        and (one.expires_s == 0 or one.expires_s > now_s)
    )


def _attestation(one: OnchainAttestation, source: EasSource) -> Attestation:
    fields = {name.lower(): v for name, v in read_fields(source.fields, one.data).items()}
    return Attestation(
        uid=one.uid,
        attester=one.attester,
        chain=source.network.slug,
        handles=_handles(fields),
        owner=_one(fields.get("owner")),
        organization=_one(fields.get("organization")),
        profile_url=_url(fields.get("profileurl")),
        credential_url=_url(fields.get("credentialurl")),
    )


def _handles(fields: Mapping[str, AttestationField]) -> tuple[Handle, ...]:
    """Return `source` and `handle` (or lists of them), else each text under its own name."""
    handles = _many(fields.get("handle") or fields.get("handles"))
    if handles:
        sources = _many(fields.get("source") or fields.get("sources"))
        return tuple(Handle(s, h) for s, h in zip(sources, handles, strict=False) if s and h)
    named = (n for n, v in fields.items() if isinstance(v, str) and n not in _KNOWN | _URLS)
    return tuple(Handle(name, text) for name in named if (text := _one(fields[name])))


def _many(field: AttestationField | None) -> tuple[str, ...]:
    texts = (field,) if isinstance(field, str) else field or ()
    return tuple(_clean(text) for text in texts)


def _one(field: AttestationField | None) -> str | None:
    return _clean(field) or None if isinstance(field, str) else None


def _url(field: AttestationField | None) -> str | None:
    """Return the URL only if it is safe for a browser: a dashboard will show it as a link."""
    text = _one(field)
    return text if text is not None and text.startswith("https://") else None


def _clean(text: str) -> str:
    return "".join(c for c in text if c.isprintable())[:TEXT_CHARS_MAX].strip()


def _unreadable(source: EasSource, detail: str) -> ChainUnavailable:
    return ChainUnavailable(
        f"Attestations on {source.network.slug} cannot be read now.",
        detail=detail,
        retry_after_s=10,
    )
