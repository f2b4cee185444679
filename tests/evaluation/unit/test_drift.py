"""What of a change matters: ordinary releases never, another payee at once."""

import hashlib
import random
from typing import Any

import pytest

from assay.evaluation.visits import compare, known_facts

URL = "https://agent.example/mcp"
PAY = "https://agent.example/paid"


def facts(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "fingerprints": {f"tools {URL}": "aa", f"payee {PAY}": "bb"},
        "payees": {PAY: ["0x" + "1" * 40]},
        "hosts": {"registration": ["agent.example"], URL: ["agent.example"]},
        "prices": {PAY: {"eip155:8453 usdc": "10000"}},
        "tools": {URL: {"search": False}},
        "uri": "u1",
        "unstable": [],
    }
    return made | changes


@pytest.mark.parametrize(
    ("changes", "material"),
    [
        ({"payees": {PAY: ["0x" + "2" * 40]}}, ("payee",)),
        ({"payees": {PAY: ["0x" + "1" * 40, "0x" + "2" * 40]}}, ("payee",)),
        ({"hosts": {URL: ["elsewhere.example"]}}, ("host",)),
        ({"prices": {PAY: {"eip155:8453 usdc": "100001"}}}, ("price",)),
        ({"tools": {URL: {"search": False, "send_mail": True}}}, ("tool",)),
    ],
)
def test_a_silent_change_of_substance_is_material(
    changes: dict[str, Any], material: tuple[str, ...]
) -> None:
    found = compare(facts(), facts(**changes))
    assert found.material == found.silent == material
    declared = compare(facts(), facts(**changes, uri="u2"))
    assert (declared.material, declared.silent) == (material, ())


@pytest.mark.parametrize(
    "changes",
    [
        {"prices": {PAY: {"eip155:8453 usdc": "100000"}}},
        {"prices": {PAY: {"eip155:1 usdc": "900000000"}}},
        {"tools": {URL: {"search": False, "find": False}}},
        {"tools": {URL: {}}},
        {"hosts": {}},
        {"payees": {}},
        {"payees": {PAY: ["0x" + "2" * 40]}, "unstable": [f"payees {PAY}"]},
        {"prices": {PAY: {"eip155:8453 usdc": "999999"}}, "unstable": [f"prices {PAY}"]},
    ],
)
def test_what_was_not_seen_or_is_never_the_same_is_no_change(changes: dict[str, Any]) -> None:
    assert compare(facts(), facts(**changes)).material == ()


def test_facts_that_make_no_sense_are_no_change() -> None:
    for odd in ({}, {"payees": 1, "prices": {PAY: 3}, "tools": [1]}, {"prices": {PAY: {"a": "x"}}}):
        assert compare(facts(), odd).material == compare(odd, facts()).material == ()


def _release(  # noqa: C901, PLR0912 - a kind of release each
    rng: random.Random, made: dict[str, Any], day: int
) -> dict[str, Any]:
    """What an operator does of a working day: versions, texts, keys, prices, tools, paths."""
    kind = rng.randrange(9)
    prints, tools = dict(made["fingerprints"]), dict(made["tools"][URL])
    changes: dict[str, Any] = {"fingerprints": prints}
    prints[f"card {URL}"] = hashlib.sha256(f"{day} {rng.random()}".encode()).hexdigest()
    if kind == 0:  # a release: version and texts
        prints[f"texts {URL}"] = str(rng.random())
    elif kind == 1:  # a tool that reads, or one less
        tools[f"get_{day}"] = False
    elif kind == 2 and len(tools) > 1:
        tools.pop(next(iter(tools)))
    elif kind == 3:  # tools in another order
        tools = dict(sorted(tools.items(), key=lambda _: rng.random()))
    elif kind == 4:  # a price that doubles, or a sale
        was = int(made["prices"][PAY]["eip155:8453 usdc"])
        now = was * 2 if rng.random() < 0.5 else max(1, was // 3)
        changes["prices"] = {PAY: {"eip155:8453 usdc": str(min(now, 1_000_000))}}
    elif kind == 5:  # one of two payees is used no more, or comes back
        changes["payees"] = {PAY: rng.choice([["0xa"], ["0xa", "0xb"]])}
    elif kind == 6:  # a sub-domain of the same site: the registrable domain stays
        changes["hosts"] = made["hosts"]
    elif kind == 7:  # a deploy is on: a service is not seen
        changes |= {"tools": {}, "payees": {}, "prices": {}}
    else:  # a move, declared on chain, with a tool that acts
        changes |= {"uri": f"uri {day}", "hosts": {URL: ["agent.example", f"cdn{day}.example"]}}
        tools[f"send_{day}"] = True
    if "tools" not in changes:
        changes["tools"] = {URL: tools}
    return facts(**{**made, **changes})


def test_no_false_drift_on_100_agents_with_ordinary_releases_over_90_days() -> None:
    """The store keeps the newest facts of each service: see `known_facts`."""

    silent = 0
    for seed in range(100):
        rng = random.Random(f"drift {seed}")
        known = made = facts(payees={PAY: ["0xa", "0xb"]})
        for day in range(90):
            if rng.random() < 0.3:
                made = _release(rng, made, day)
                if not made["tools"]:
                    silent += bool(compare(known, made).silent)
                    made = known  # the deploy is over
            silent += bool(compare(known, made).silent)
            known = known_facts(known, made)
    assert silent == 0
