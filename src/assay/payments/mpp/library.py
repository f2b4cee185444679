"""Loads the MPP library when it is first needed, with its state in ours."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

from assay.chains.model import Network
from assay.chains.rpc import Rpc
from assay.common.keyring import SecretRing
from assay.common.numbers import DECIMALS
from assay.common.shared_state import SharedState
from assay.payments.model import PaymentNetwork

MARKER_TTL_S = 7 * 86_400.0
"""Seconds for which the library's own replay markers are kept; the ledger keeps ours for ever."""


class Store:
    """The library's replay store, on the state that every process shares."""

    def __init__(self, state: SharedState) -> None:
        self._state = state

    async def get(self, key: str) -> Any | None:  # noqa: ANN401 - the library's own shape
        found = await self._state.get(_key(key))
        return None if found is None else json.loads(found)

    async def put(self, key: str, value: Any) -> None:  # noqa: ANN401
        await self._state.put(_key(key), json.dumps(value), MARKER_TTL_S)

    async def delete(self, key: str) -> None:
        await self._state.take(_key(key))

    async def put_if_absent(self, key: str, value: Any) -> bool:  # noqa: ANN401
        return await self._state.put_if_absent(_key(key), json.dumps(value), MARKER_TTL_S)


@dataclass(frozen=True, slots=True)
class Library:
    """The parts of the library that are used."""

    server: ModuleType
    errors: ModuleType
    credential: Any
    engines: Mapping[str, Sequence[Any]]
    """One engine for each network and secret of the ring; the one that makes challenges is
    first."""

    async def by_any(self, network: str, act: Callable[[Any], Awaitable[Any]]) -> Any:  # noqa: ANN401
        """Return the result of `act` with the engine whose secret made the challenge.

        Raises like `act`.
        """
        *others, last = self.engines[network]
        for engine in others:
            try:
                return await act(engine)
            except self.errors.InvalidChallengeError:  # nothing was done: the check comes first
                continue
        return await act(last)


class LibraryLoader:
    """Imports the library in a thread, once: its EVM parts take most of a second."""

    def __init__(
        self,
        networks: Mapping[str, PaymentNetwork],
        state: SharedState,
        nodes: tuple[Rpc, Mapping[str, Network]],
        *,
        secrets: SecretRing,
        realm: str,
        timeout_s: float,
    ) -> None:
        self._networks = networks
        self._nodes = nodes
        self._store = Store(state)
        self._secrets = [
            hashlib.sha256(b"assay.mpp|" + secret.encode()).hexdigest() for secret in secrets
        ]
        self._realm = realm
        self._timeout_s = timeout_s
        self._library: Library | None = None
        self._client: Any = None
        self._loading = asyncio.Lock()

    async def aclose(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.aclose()

    async def get(self) -> Library:
        """Return the library with its engines, loading it if necessary."""
        async with self._loading:
            if self._library is None:
                self._library = await asyncio.to_thread(self._load)
            return self._library

    def _load(self) -> Library:
        transport = import_module("assay.payments.mpp.transport")
        httpx = import_module("httpx")
        mpp, server = import_module("mpp"), import_module("mpp.server")
        tempo = import_module("mpp.methods.tempo.server")
        self._client = httpx.AsyncClient(transport=transport.RpcTransport(*self._nodes))
        engines = {
            network.id: [
                self._engine(network, transport.address_of(network.id), secret, server, tempo)
                for secret in self._secrets
            ]
            for network in self._networks.values()
            if network.protocol == "mpp"
        }
        return Library(server, import_module("mpp.errors"), mpp.Credential, engines)

    def _engine(
        self,
        network: PaymentNetwork,
        address: str,
        secret: str,
        server: ModuleType,
        tempo: ModuleType,
    ) -> Any:  # noqa: ANN401
        charge = tempo.charge(
            chain_id=network.chain_id,
            rpc_url=address,
            currencies=[network.asset.address],
            decimals=DECIMALS,
            store=self._store,
            http_client=self._client,
            confirmation_timeout=self._timeout_s,
        )
        return server.Mpp(charge, realm=self._realm, secret_key=secret)


def _key(key: str) -> str:
    return "mpp:" + hashlib.sha256(key.encode()).hexdigest()
