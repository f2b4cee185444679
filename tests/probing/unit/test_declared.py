"""Which declared services are visited, and as what they are probed."""

from assay.probing.declared_services import SERVICES_MAX, as_spoken, declared_services
from assay.registries.model import OnchainAgent, RegistrationFile, Service, Subject
from tests.support.fakes.trust import NETWORK, OWNER, WALLET

BASE = "https://agent.example"


def declaring(*names: str) -> Subject:
    listed = tuple(Service(name, f"{BASE}/{place}") for place, name in enumerate(names))
    file = RegistrationFile(name="Words", services=listed)
    agent = OnchainAgent(NETWORK, "7", OWNER, WALLET, "data:,", file, None)
    return Subject(NETWORK, "7", WALLET, agent)


def test_a_service_is_visited_under_any_name() -> None:
    visited, ignored = declared_services(declaring("chat", "A2A", "trading", "my-mcp", "web"))
    assert [(v.service.name, v.kind, v.is_known) for v in visited] == [
        ("chat", "http", False),
        ("A2A", "a2a", True),
        ("trading", "http", False),
        ("my-mcp", "mcp", True),
        ("web", "http", True),
    ]
    assert ignored == []


def test_names_that_say_what_is_spoken_are_not_displaced_by_others() -> None:
    visited, ignored = declared_services(declaring(*["site"] * SERVICES_MAX, "A2A", "MCP"))
    assert [v.kind for v in visited[-2:]] == ["a2a", "mcp"]
    assert (len(visited), ignored) == (SERVICES_MAX, ["site"])


def test_a_service_is_probed_as_what_it_speaks() -> None:
    visited, _ = declared_services(declaring("chat", "site", "dead", "A2A", "web"))
    chat, site, _, card, web = (v.service.endpoint for v in visited)
    spoken = {chat: "a2a", site: "page", web: "page", card: "http"}
    probed = as_spoken(visited, spoken)
    assert [(v.service.name, v.kind) for v in probed] == [
        ("chat", "a2a"),
        ("A2A", "a2a"),  # declared as what it does not speak: that is for the probes to find
        ("web", "http"),
    ]


def test_with_nothing_else_to_ask_what_was_not_heard_is_asked() -> None:
    visited, _ = declared_services(declaring("chat", "site"))
    assert as_spoken(visited, {visited[1].service.endpoint: "page"}) == (visited[0],)
