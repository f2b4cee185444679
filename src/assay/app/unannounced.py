"""Unannounced visits, put together from the settings."""

import base64
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import unquote, urlsplit

from assay.common.clock import Clock
from assay.common.json import is_array, is_object
from assay.common.shared_state import SharedState
from assay.db.engine import Database
from assay.evaluation.model import SignalName
from assay.evaluation.ports import EvaluationStore
from assay.evaluation.service import EVER
from assay.evaluation.store_evaluations import SqlEvaluationStore
from assay.evaluation.store_visit_seeds import SqlSeeds
from assay.http1.model import Target
from assay.net.egress.budget_client import EgressBudget
from assay.net.egress.client import GuardedHttp
from assay.net.egress.dial import HttpProxy
from assay.net.egress.ports import EgressClient
from assay.net.egress.url import EgressPolicy, parse_target
from assay.probing.clients.dialers import StockDialers
from assay.probing.unannounced import UnannouncedVisits
from assay.settings import Settings

PROMPTS_MAX = 10_000
PROMPT_CHARS_MAX = 1_000
PROXY_PORT = 8080


def unannounced_visits(  # noqa: PLR0913, PLR0917 - what they are put together from
    settings: Settings,
    state: SharedState,
    budget: EgressBudget,
    direct: EgressClient,
    policy: EgressPolicy,
    stack: AsyncExitStack,
    database: Database,
    clock: Clock,
) -> UnannouncedVisits:
    """Their ways out share the one egress budget. Raises `ValueError` for what is set wrong."""
    ways = [
        GuardedHttp(policy, budget=budget, proxy=http_proxy(url)) for url in settings.visit_proxies
    ]
    for way in ways:
        stack.push_async_callback(way.aclose)
    return UnannouncedVisits(
        state,
        EvaluatedControl(SqlEvaluationStore(database)),
        policy,
        ways,
        direct,
        StockDialers(client_name=None),
        private_prompts(settings.prompts),
        seeds=SqlSeeds(database, clock),
        pause_s=settings.visit_pause_s,
    )


def callback_addresses(
    settings: Settings, policy: EgressPolicy
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where agents deliver results: in announced visits, and in the others.

    Those never name this service: they use canary hosts, and announced ones do so only without an
    address of ours. One that no agent can reach is none.
    """
    is_known = settings.public_url is not None or policy.allow_private
    own = (settings.address,) if is_known else ()
    canary = settings.canary_hosts
    return _reachable(own, policy) or _reachable(canary, policy), _reachable(canary, policy)


def _reachable(addresses: Sequence[str], policy: EgressPolicy) -> tuple[str, ...]:
    return tuple(one for one in addresses if isinstance(parse_target(one, policy), Target))


class EvaluatedControl:
    """Implements `probing.unannounced.ProvenControl`: what the newest evaluation found."""

    def __init__(self, store: EvaluationStore) -> None:
        self._store = store

    async def services(self, subject_key: str) -> frozenset[str]:
        """As the port says."""
        newest = await self._store.newest(subject_key, EVER)
        listed = [
            one.evidence.data.get("control")
            for one in (newest.collected if newest is not None else ())
            if one.signal is SignalName.SANDBOX
        ]
        rows = [row for found in listed if is_array(found) for row in found if is_object(row)]
        return frozenset(
            str(row.get("service")) for row in rows if row.get("proof") and not row.get("conflict")
        )


def http_proxy(url: str) -> HttpProxy:
    """The proxy that a URL names; raises `ValueError` for anything else, without its password."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname or parts.path.strip("/"):
        raise ValueError("ASSAY_VISIT_PROXIES: each is http://user:password@host:port")
    proof = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        proof = "Basic " + base64.b64encode(pair.encode()).decode()
    return HttpProxy(parts.hostname, parts.port or PROXY_PORT, proof)


def private_prompts(path: Path | None) -> tuple[str, ...]:
    """The operator's own requests, one a line; raises `ValueError` where they cannot be read."""
    if path is None:
        return ()
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"ASSAY_PROMPTS: {path} cannot be read") from error
    kept = [line.strip()[:PROMPT_CHARS_MAX] for line in lines if line.strip()]
    return tuple(kept[:PROMPTS_MAX])
