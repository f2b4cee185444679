"""Tools and services that hand one caller's words to another are found, and no others."""

from dataclasses import replace

import pytest
from typing_extensions import override

from assay.common.json import JsonObject
from assay.probing.crossed_answers import PARAMETER
from assay.probing.ports import McpTool, ProbeSession
from assay.probing.session import VisitHttp
from tests.probing.unit.test_probe_collects import Lines, Server, verdict, visit
from tests.probing.unit.test_probe_visiting import Scripted
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.leaking_talk import LEAKS, halves
from tests.support.fakes.leaking_tools import SERVICES, TEXTS, Service, Texts

VISITS = 30
CALLS_MAX = 36
"""Of a tool, by everything that `no_cross_talk` does."""


class Working(Server):
    """A server of one read-only tool that takes a text."""

    def __init__(self, texts: Texts) -> None:
        schema: JsonObject = {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        }
        super().__init__([McpTool("work", texts.about, schema, read_only=True)], None)
        self.work, self.calls = texts.make(), 0

    @override
    async def call_tool(self, name: str, arguments: JsonObject) -> JsonObject:
        self.calls += 1
        return {"content": [{"type": "text", "text": self.work(str(arguments.get("text", "")))}]}


async def judged(texts: Texts, nonce: str, *, announced: bool = True) -> str | None:
    lines = Lines()
    lines.server = server = Working(texts)
    on = replace(visit(lines=lines, mcp="https://words.example/mcp"), nonce=nonce)
    said = await verdict("no_cross_talk", replace(on, announced=announced))
    assert server.calls <= CALLS_MAX
    return said


@pytest.mark.parametrize("name", [name for half in halves([*TEXTS]) for name in half])
async def test_a_tool_gives_one_text_the_result_of_another_or_not(name: str) -> None:
    texts = TEXTS[name]
    said = [await judged(texts, f"visit {n}") for n in range(VISITS)]
    if texts.verdict == LEAKS:  # words of ours may begin alike by chance: then a visit is in vain
        assert said.count("fail") > VISITS * 0.8
    else:
        assert {*said} == {None}


def serving(service: Service, nonce: str) -> tuple[ProbeSession, VisitHttp]:
    http = VisitHttp(Scripted(service.make()), FrozenClock(), 60, 20)
    on = visit(web="https://words.example/")
    return replace(on, http=http, nonce=nonce), http


@pytest.mark.parametrize("name", [name for half in halves([*SERVICES]) for name in half])
async def test_a_service_tells_of_another_request_or_not(name: str) -> None:
    service = SERVICES[name]
    expected = "fail" if service.verdict == LEAKS else None
    for number in range(10):
        on, http = serving(service, f"visit {number}")
        assert await verdict("no_cross_talk", on) == expected
        assert http.sent <= CALLS_MAX


async def test_an_unannounced_visit_makes_up_no_token() -> None:
    scripted = Scripted(SERVICES["is plain"].make())
    http = VisitHttp(scripted, FrozenClock(), 60, 20, pause_s=lambda: 0.0)
    on = replace(visit(web="https://words.example/"), http=http, nonce="visit", announced=False)
    await verdict("no_cross_talk", on)
    assert scripted.asked
    assert not any("authorization" in map(str.lower, one.headers) for one in scripted.asked)
    assert not any(f"{PARAMETER}=" in one.url for one in scripted.asked)


@pytest.mark.parametrize("about", ["Signs the guest book.", "A notice board for all."])
async def test_what_is_there_for_all_to_read_is_not_asked(about: str) -> None:
    lines = Lines()
    lines.server = server = Working(replace(TEXTS["shows the last text in hex"], about=about))
    assert await verdict("no_cross_talk", visit(lines=lines, mcp="https://w.example/mcp")) is None
    assert server.calls == 0
