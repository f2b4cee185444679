"""/docs: one page of our own, that needs nobody else's server."""

import re

import pytest

from tests.support.live_service import TestService

PAGE = {
    "/docs": "text/html; charset=utf-8",
    "/docs/reference.js": "text/javascript; charset=utf-8",
    "/docs/reference.css": "text/css; charset=utf-8",
}


@pytest.mark.parametrize("path", PAGE)
async def test_200_each_part_is_served_as_what_it_is(service: TestService, path: str) -> None:
    answer = await service.http.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, PAGE[path])
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"].startswith("public")


async def test_the_policy_lets_nothing_in_from_elsewhere(service: TestService) -> None:
    policy = (await service.http.get("/docs")).headers["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("img-src") == "'self' data:"
    assert set(rules.values()) == {"'self'", "'none'"}
    assert rules["default-src"] == rules["frame-ancestors"] == "'none'"


async def test_the_page_names_only_files_of_ours_and_runs_nothing_inline(
    service: TestService,
) -> None:
    page = (await service.http.get("/docs")).text
    for link in re.findall(r"(?:src|href)=\"([^\"]+)\"", page):
        assert (await service.http.get(link)).status_code == 200
    assert re.findall(r"<script(?![^>]*src=)", page) == []
    assert re.findall(r"\son\w+=|style=", page) == []
    for path in PAGE:
        assert "//" not in (await service.http.get(path)).text.replace("// ", "")
