"""Pages for people: what they show, to whom, and what they never do."""

import re
from datetime import timedelta
from pathlib import Path

import httpx2

from assay.chains.model import ChainUnavailable
from assay.pages.render import POLICY
from tests.support.live_service import (
    OWNER_KEY,
    STRANGER_KEY,
    TestService,
    address,
    refused,
    start_test_service,
)

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
JSON = {"accept": "application/json"}
MARKDOWN = {"accept": "text/markdown"}
REPORT = "/agents/local/7"
PAGES = ("/", "/agents", REPORT, "/probes", "/probes/no_bombs", "/methodology")


async def evaluated(service: TestService, *ids: str) -> None:
    for agent_id in ids:
        service.clock.move(60)
        assert (await service.http.post(f"/operator/trigger-sandbox/{agent_id}")).is_success


async def html(service: TestService, path: str, status: int = 200) -> str:
    answer = await service.http.get(path, headers=BROWSER)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return answer.text


def shows_no_script(text: str) -> bool:
    """Whether there is neither a script, nor a handler, nor anything from elsewhere."""
    active = r"<(?:script|iframe|object|embed|base|link(?![^>]*(?:/favicon.svg|/pages/)))"
    elsewhere = r"""<[^>]*\s(?:src|srcset|href|action)\s*=\s*["']?\s*(?:[a-z]+:(?!/)|//)"""
    handler = r"<[^>]*\s(?:on\w+|style)\s*="
    return not any(re.search(one, text, re.IGNORECASE) for one in (active, elsewhere, handler))


async def test_200_every_page_is_html_without_scripts_or_cookies_under_one_policy(
    service: TestService,
) -> None:
    await evaluated(service, "7")
    for path in PAGES:
        answer = await service.http.get(path, headers=BROWSER)
        assert answer.status_code == 200, path
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["vary"] == "accept"
        assert "set-cookie" not in answer.headers
        assert shows_no_script(answer.text), path
        assert '<meta property="og:title" content="' in answer.text
        known = {**BROWSER, "if-none-match": answer.headers["etag"]}
        assert (await service.http.get(path, headers=known)).status_code == 304


async def test_the_address_itself_is_json_for_programs_and_a_page_for_browsers(
    service: TestService,
) -> None:
    for accept in ("*/*", "application/json", ""):
        answer = await service.http.get("/", headers={"accept": accept})
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["agents"].endswith("/operator/agents")
    assert "Latest grades" in await html(service, "/")
    told = await service.http.get("/", headers=MARKDOWN)
    assert told.text.startswith("# Assay\n")


async def test_200_a_report_is_the_same_as_page_markdown_and_json(service: TestService) -> None:
    await evaluated(service, "7", "7")
    page = await html(service, REPORT)
    shown = (await service.http.get(REPORT, headers={"accept": "application/json"})).json()
    assert shown == (await service.http.get("/operator/agent/7/report")).json()
    told = (await service.http.get(REPORT, headers=MARKDOWN)).text
    for text in (page, told):
        assert shown["tier"] in text
        assert shown["snapshot"]["snapshotHash"] in text
        assert shown["ladder"]["reason"].split(",")[0] in text
    assert f'aria-label="Grade {shown["tier"]}"' in page
    assert "What would raise it" in page
    assert "Nothing changed." in page


async def test_the_list_page_has_what_the_operation_lists(service: TestService) -> None:
    await evaluated(service, "7", "8")
    page = await html(service, "/agents")
    assert page.count('<th scope="row"') == 2
    assert page.count('<th scope="row"', page.index("Agent 8")) <= 1
    found = await html(service, "/agents?q=8&tier=&chain=&protocol=&sort=score")
    assert "Agent 8" in found
    assert "Agent 7" not in found
    assert "No agent that was evaluated here fits" in await html(service, "/agents?q=99")
    second = await html(service, "/agents?limit=1")
    following = re.search(r'rel="next" href="([^"]+)"', second)
    assert following is not None
    listed = await service.http.get("/agents", headers={"accept": "application/json"})
    assert listed.json() == (await service.http.get("/operator/agents")).json()
    told = (await service.http.get("/agents", headers=MARKDOWN)).text
    assert told.count("/agents/local/") == 2
    assert "must be one of" in await html(service, "/agents?tier=ZZ", 400)


async def test_no_get_evaluates_or_asks_a_chain(service: TestService) -> None:
    await evaluated(service, "7")
    service.chain.down = ChainUnavailable("down", retry_after_s=3)
    for path in (*PAGES, "/badge/local/7.svg", "/badge/local/8.svg", "/agents?q=8"):
        assert (await service.http.get(path, headers=BROWSER)).status_code == 200, path
    assert "Not evaluated yet" in await html(service, "/agents/local/8", 404)
    service.chain.down = None
    assert "Not evaluated yet" in await html(service, "/agents/local/8", 404)


async def test_404_an_agent_without_a_grade_says_how_to_get_one_and_key_agents_have_no_page(
    service: TestService,
) -> None:
    page = await html(service, "/agents/local/8", 404)
    assert '<form class="again" method="post" action="/agents/local/8">' in page
    assert "/operator/trigger-sandbox/8?chain=local" in page
    key_agent = address(STRANGER_KEY)
    await service.http.post(f"/operator/trigger-sandbox-key/{key_agent}")
    await html(service, f"/agents/local/{key_agent}", 400)
    assert key_agent not in await html(service, "/agents")
    assert key_agent not in await html(service, "/")
    refused(await service.http.get("/agents/local/8", headers=JSON), 404, "agent_not_evaluated")
    await html(service, "/agents/nowhere/8", 400)
    await html(service, "/probes/nothing", 404)


async def test_303_the_form_evaluates_within_the_limits_of_the_open_operation(
    tmp_path: Path,
) -> None:
    async with start_test_service(tmp_path, sandbox_per_agent_minute=2) as service:
        made = await service.http.post(REPORT, headers=BROWSER)
        assert (made.status_code, made.headers["location"]) == (303, REPORT)
        assert "Agent 7" in await html(service, REPORT)
        again = await service.http.post(REPORT, headers=BROWSER)
        assert again.status_code == 429
        assert "Try again in" in again.text
        assert int(again.headers["retry-after"]) >= 1
        service.clock.move(60)
        triggered = await service.http.post("/operator/trigger-sandbox/7")
        assert triggered.status_code == 200
        assert (await service.http.post(REPORT, headers=BROWSER)).status_code == 429
        gone = await service.http.post("/agents/local/99", headers=BROWSER)
        assert gone.status_code == 404


async def test_403_another_sites_page_starts_no_evaluation(service: TestService) -> None:
    for site in ("cross-site", "same-site"):
        headers = {**BROWSER, "sec-fetch-site": site}
        assert (await service.http.post(REPORT, headers=headers)).status_code == 403
    for origin in ("null", "http://evil.example"):  # a browser over http
        headers = {**BROWSER, "origin": origin}
        assert (await service.http.post(REPORT, headers=headers)).status_code == 403
    await html(service, REPORT, 404)


async def test_404_the_form_is_absent_where_evaluations_need_a_key(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, open_endpoints=("snapshot",)) as service:
        page = await html(service, REPORT, 404)
        assert "<form class=" not in page.partition("<main")[2]
        assert "Authorization: Bearer KEY" in page
        refused(await service.http.post(REPORT, headers=JSON), 404, "not_found")


async def test_a_badge_says_the_grade_not_rated_or_expired(service: TestService) -> None:
    async def badge(path: str) -> str:
        answer = await service.http.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "image/svg+xml"
        assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
        known = {"if-none-match": answer.headers["etag"]}
        assert (await service.http.get(path, headers=known)).status_code == 304
        return answer.text

    key_agent = address(OWNER_KEY)
    for path in ("/badge/local/7.svg", "/badge/nowhere/7.svg", f"/badge/local/{key_agent}.svg"):
        assert "Assay: not rated" in await badge(path)
    await evaluated(service, "7")
    tier = (await service.http.get("/operator/agent/7/report")).json()["tier"]
    assert f"Assay: {tier}<" in await badge("/badge/local/7.svg")
    service.clock.move(timedelta(days=8).total_seconds())
    assert "Assay: expired" in await badge("/badge/local/7.svg")
    assert "<strong>expired</strong>" in await html(service, REPORT)


async def test_probes_and_methodology_are_the_documentations_own_text(
    service: TestService,
) -> None:
    root = Path(__file__).parents[2]
    for path, name in (("/probes", "probes.md"), ("/methodology", "grades.md")):
        source = (root / "docs" / name).read_text("utf-8")
        assert (await service.http.get(path, headers=MARKDOWN)).text == source
    listed = await html(service, "/probes")
    names = re.findall(r'href="/probes/(\w+)"', listed)
    assert names == [probe for probe in names if probe in service.app.probes]
    assert set(names) == set(service.app.probes)
    for name in names:
        assert f"<code>{name}</code>" in await html(service, f"/probes/{name}")
    page = await html(service, "/methodology")
    inside = set(re.findall(r'href="#([^"]+)"', page)) - {"main"}
    assert inside <= set(re.findall(r'id="([^"]+)"', page))


async def test_404_unlisted_pages_have_no_list_and_off_has_no_page(tmp_path: Path) -> None:
    async with start_test_service(tmp_path / "a", public_pages="unlisted") as service:
        await evaluated(service, "7")
        await html(service, "/agents", 404)
        for path in ("/", REPORT, "/methodology"):
            answer = await service.http.get(path, headers=BROWSER)
            assert answer.headers["x-robots-tag"] == "noindex"
            assert '<meta name="robots" content="noindex">' in answer.text
            assert 'role="search"' not in answer.text
        assert "Agent 7" not in await html(service, "/")
        for path in ("/badge/local/7.svg", "/operator/agent/7/report?chain=local"):
            answer = await service.http.get(path)
            assert (answer.status_code, answer.headers["x-robots-tag"]) == (200, "noindex")
    async with start_test_service(tmp_path / "b", public_pages="off") as service:
        await evaluated(service, "7")
        for path in (*PAGES, "/badge/local/7.svg"):
            for headers in (BROWSER, {}):
                answer = await service.http.get(path, headers=headers)
                assert answer.status_code == 404, path
        assert (await service.http.post(REPORT)).status_code == 404


async def test_404_the_origin_of_wrappers_serves_no_page(tmp_path: Path) -> None:
    async with start_test_service(
        tmp_path, public_url="https://assay.example.com", wrap_url="https://wrap.example.com"
    ) as service:
        for path in (*PAGES, "/badge/local/7.svg"):
            answer = await service.http.get(path, headers={**BROWSER, "host": "wrap.example.com"})
            refused(answer, 404, "not_found")
        page = await html(service, "/")
        assert "https://assay.example.com" in page


async def test_pages_below_a_path_link_below_it(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, public_url="https://example.com/assay") as service:
        page = await html(service, "/agents")
        links = re.findall(r'(?:href|action)="(/[^"]*)"', page)
        assert links
        assert all(link.startswith("/assay/") for link in links)


async def test_a_credential_changes_nothing_on_a_page(service: TestService) -> None:
    await evaluated(service, "7")
    operator = await service.operator()
    token = {**await service.token(), "cookie": "session=x"}
    for path in PAGES:
        plain = await html(service, path)
        for headers in (operator, token):
            answer = await service.http.get(path, headers={**BROWSER, **headers})
            assert answer.text == plain


async def test_405_pages_are_read_only(service: TestService) -> None:
    for path in ("/agents", "/", "/probes/no_bombs"):
        refused(await service.http.post(path), 405, "method_not_allowed")


async def test_the_style_sheet_is_served_under_its_hash_alone(service: TestService) -> None:
    page = await html(service, "/")
    found = re.search(r'href="(/pages/[^"]+)"', page)
    assert found is not None
    style: httpx2.Response = await service.http.get(found[1])
    assert style.headers["cache-control"].endswith("immutable")
    assert style.headers["content-type"] == "text/css; charset=utf-8"
    assert "url(" not in style.text
    assert "@import" not in style.text
    refused(await service.http.get("/pages/pages.css"), 404, "not_found")
