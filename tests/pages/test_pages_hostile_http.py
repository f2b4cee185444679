"""Names, descriptions and addresses of strangers are text on every page, and nothing else."""

import json
import unicodedata
from html.parser import HTMLParser

from typing_extensions import override

from assay.evaluation.schemas_public import PublicReportResponse
from assay.pages.markdown import plain
from tests.support.hostile_texts import HOSTILE
from tests.support.listed import put_agents
from tests.support.live_service import TestService

HTML, MARKDOWN = {"accept": "text/html"}, {"accept": "text/markdown"}
FIRST = 1000
POINTS_ELSEWHERE = ("http:", "https:", "//", "javascript:", "data:")


class Structure(HTMLParser):
    """The tags of a page with the names of their attributes, and where its links lead."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.targets: set[str] = set()
        self.words = ""
        self.feed(page)
        self.close()

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.targets |= {v or "" for n, v in attrs if n in ("href", "src", "action")}

    @override
    def handle_data(self, data: str) -> None:
        self.words += data


def kept(page: Structure) -> list[tuple[str, tuple[str, ...]]]:
    """The tags besides those that are there only where there is a description or a protocol."""
    optional = {"bdi", "p", "q", "div", "dt", "dd"}
    assert not [one for one in page.tags if any(name[:2] == "on" for name in one[1])]
    return [tag for tag in page.tags if tag[0] not in optional]


def is_invisible(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") and character != "\n"


async def test_every_hostile_text_leaves_a_page_as_it_is_with_a_harmless_one(
    service: TestService,
) -> None:
    texts = {
        str(FIRST + place): HOSTILE[place : place + 3] for place in range(0, len(HOSTILE) - 2, 3)
    }
    assert len(HOSTILE) >= 100
    await put_agents(service.app.database, {**texts, "999": ("Harmless", "Harmless", "Harmless")})

    async def read(path: str, accept: dict[str, str]) -> str:
        answer = await service.http.get(path, headers=accept)
        assert answer.status_code == 200, (path, answer.text)
        assert len(answer.text) < 60_000
        return answer.text

    harmless = Structure(await read("/agents/local/999", HTML))
    for agent_id, text in texts.items():
        page = await read(f"/agents/local/{agent_id}", HTML)
        found = Structure(page)
        assert kept(found) == kept(harmless), text
        assert not [one for one in found.targets if one.startswith(POINTS_ELSEWHERE)], text
        assert not any(map(is_invisible, page)), text
        if int(agent_id) % 3:
            continue
        told = await read(f"/agents/local/{agent_id}", MARKDOWN)
        assert told.count("\n# ") == 0, text
        assert "](https://evil" not in told
        assert "<" not in told.replace("\\<", ""), text
    listed = Structure(await read("/agents?limit=100", HTML))
    assert {tag for tag, _ in listed.tags} <= {tag for tag, _ in harmless.tags} | {
        *("select", "option", "thead", "label", "table")
    }


async def test_a_hostile_search_is_shown_as_text_and_finds_nothing_but_names(
    service: TestService,
) -> None:
    for text in HOSTILE:
        if len(text) > 300:
            continue
        answer = await service.http.get("/agents", params={"q": text}, headers=HTML)
        assert answer.status_code == 200, text
        found = Structure(answer.text)
        assert "script" not in {tag for tag, _ in found.tags}
        assert not [one for one in found.targets if one.startswith(POINTS_ELSEWHERE)], text
        assert not any(name[:2] == "on" for _, names in found.tags for name in names), text


def test_markdown_of_a_stranger_stays_on_its_line_and_marks_nothing() -> None:
    for text in HOSTILE:
        shown = plain(text)
        assert "\n" not in shown
        for place, character in enumerate(shown):
            if character in "*_[]<>`#|!":
                assert shown[place - 1] == "\\", shown


async def test_json_of_a_hostile_report_is_what_its_page_shows(service: TestService) -> None:
    await put_agents(service.app.database, {"1": HOSTILE[:3]})
    answer = await service.http.get("/operator/agent/1/report")
    shown = PublicReportResponse.model_validate(json.loads(answer.text))
    page = Structure((await service.http.get("/agents/local/1", headers=HTML)).text)
    assert shown.name in page.words
    assert shown.services[0].endpoint in page.words
