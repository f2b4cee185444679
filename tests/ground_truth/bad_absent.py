"""Nothing there, and templates: perfect papers with no work behind them."""

import asyncio
import random
from typing import Any

from tests.ground_truth.a2a_parts import (
    ASSISTANT,
    CARD,
    Heard,
    Reply,
    card_dict,
    hand_made_a2a,
    stock_a2a,
)
from tests.ground_truth.knowledge import DOMAINS
from tests.ground_truth.mcp_parts import (
    Tool,
    ask_tool,
    domain_tool,
    hand_made_mcp,
    server,
    stock_mcp,
    text_schema,
)
from tests.ground_truth.mind import keywords
from tests.ground_truth.site import App, Build, Built, Scope, Site, Spec, read, send_json
from tests.ground_truth.web_parts import described

NOTHING, TEMPLATE = "nothing there", "templates"


def card_of(site: Site) -> list[tuple[str, str]]:
    """The usual declaration of an agent with a card."""
    return [("A2A", site.url + CARD)]


def always(status: int, body: Any, kind: str = "application/json") -> Build:
    """One and the same answer to everything."""

    def build(site: Site) -> Built:
        async def app(scope: Scope, receive: Any, send: Any) -> None:
            del scope, receive
            await send_json(send, body, status, {"content-type": kind})

        return Built([*card_of(site), ("MCP", site.url + "/mcp"), ("web", site.url + "/")], app)

    return build


def no_listener(site: Site) -> Built:
    """The port is closed."""
    return Built([*card_of(site), ("REST API", site.url + "/api")])


async def hangs_up(site: Site) -> Built:
    """Takes connections and ends them."""

    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    host, port = site.address
    made = await asyncio.start_server(handle, host, port)
    site.stack.callback(made.close)
    return Built([("MCP", site.url + "/mcp")])


def goes_in_circles(site: Site) -> Built:
    """Redirects that never end."""

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        del receive
        to = site.url + ("/a" if scope["path"] != "/a" else "/b")
        await send_json(send, {"see": to}, 307, {"location": to})

    return Built(card_of(site), app)


def empty_declaration(site: Site) -> Built:
    """Services that cannot be called by anything."""
    return Built([("web", site.url + "/"), ("email", "mailto:hi@mail.test")], None)


PARKED = b"<!doctype html><title>Coming soon</title><h1>This site is under construction</h1>"


def templated(reply: Reply, *, stock: bool = False) -> Build:
    """A real protocol and an excellent card; the answers come from a template."""

    def build(site: Site) -> Built:
        made: App = (
            stock_a2a(site, ASSISTANT, reply) if stock else hand_made_a2a(site, ASSISTANT, reply)
        )
        return Built(card_of(site), made)

    return build


def constant(_heard: Heard) -> str:
    return "Thank you for reaching out! Our team of models has processed your request successfully."


def echo(heard: Heard) -> str:
    return f"You said: {heard.text}"


def mirror_of_words(heard: Heard) -> str:
    topic = " ".join(keywords(heard.text)[:3]) or "this"
    return f"Great question about {topic}! There are many aspects to {topic} worth exploring."


CANNED = (
    "I have analysed your input and everything looks good.",
    "Processing finished. The result has been stored.",
    "This is a very interesting topic with many sides.",
    "As an advanced agent I can confirm it.",
    "The operation has come to its end as planned.",
)


def shuffled(_heard: Heard) -> str:
    return random.choice(CANNED)


def own_card(_heard: Heard) -> str:
    return f"{ASSISTANT.description} Skills: {', '.join(name for name, _, _ in ASSISTANT.skills)}."


def random_words(heard: Heard) -> str:
    dice = random.Random(heard.text)
    return " ".join(
        dice.choice(("lorem", "ipsum", "dolor", "sit", "amet", "elit", "sed")) for _ in range(14)
    )


def forever_working(site: Site) -> Built:
    """Every request becomes a task that nobody ever works on."""

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] == CARD:
            await send_json(send, card_dict(site, ASSISTANT, "0.3"))
            return
        await read(receive)
        task = {"id": "t-1", "contextId": "c-1", "kind": "task", "status": {"state": "submitted"}}
        await send_json(send, {"jsonrpc": "2.0", "id": 1, "result": task})

    return Built(card_of(site), app)


def empty_tools(site: Site) -> Built:
    """Well-described tools; each returns the same sentence."""
    tools = [
        Tool(name, text, text_schema("query"), lambda _given: "Operation completed successfully.")
        for name, text in (
            ("search_news", "Searches today's news by keyword."),
            ("company_profile", "A company's profile by its name."),
            ("translate_line", "Translates one line to Latin."),
        )
    ]
    return Built([("MCP", site.url + "/mcp")], hand_made_mcp(site, site.name, *tools))


def stub_tools(site: Site) -> Built:
    """A skeleton of the official library: tools that were never written."""
    made = server(site.name)
    for key in ("weather", "currency", "ticker"):
        ask_tool(made, DOMAINS[key])

    def todo(**_given: str) -> str:
        return "TODO: connect the backend"

    for tool in made._tool_manager.list_tools():
        tool.fn = todo
    return Built([("MCP", site.url + "/mcp")], stock_mcp(made))


def stub_api(site: Site) -> Built:
    """A full document; every path gives the same object."""
    document = described(site, DOMAINS["weather"], "/conditions", "place")

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        del receive
        if scope["path"] == "/openapi.json":
            await send_json(send, document)
        else:
            await send_json(send, {"result": "ok"})

    return Built([("OpenAPI", site.url + "/openapi.json")], app)


def no_tools(site: Site) -> Built:
    """Greets in perfect form and has nothing to offer."""
    return Built([("MCP", site.url + "/mcp")], hand_made_mcp(site, site.name))


def wrong_answers(site: Site) -> Built:
    """Tools that make their numbers up at each call."""
    tool = domain_tool(DOMAINS["element"])
    tool.run = lambda _given: f"mass {random.uniform(1, 300):.2f} u"
    return Built([("MCP", site.url + "/mcp")], hand_made_mcp(site, site.name, tool))


def _n(name: str, build: Build, kind: str = NOTHING, *, served: bool = True) -> Spec:
    return Spec(kind, name, "immediate", build, served=served)


AGENTS = [
    _n("Nobody listens", no_listener, served=False),
    _n("404 to everything", always(404, {"error": "not found"})),
    _n("200 to everything", always(200, {"status": "ok"})),
    _n("Parked page", always(200, PARKED, "text/html")),
    _n("500 to everything", always(500, {"error": "internal"})),
    _n("401 to everything", always(401, {"error": "who are you"})),
    _n("402 without a price", always(402, {"error": "pay"})),
    _n("Hangs up", hangs_up, served=False),
    _n("Goes in circles", goes_in_circles),
    _n("Only a mailbox", empty_declaration),
    _n("Same sentence", templated(constant, stock=True), TEMPLATE),
    _n("Echo", templated(echo), TEMPLATE),
    _n("Mirror of words", templated(mirror_of_words, stock=True), TEMPLATE),
    _n("Five sentences", templated(shuffled), TEMPLATE),
    _n("Reads its card aloud", templated(own_card), TEMPLATE),
    _n("Lorem", templated(random_words), TEMPLATE),
    _n("Forever submitted", forever_working, TEMPLATE),
    _n("Tools with one phrase", empty_tools, TEMPLATE),
    _n("Unwritten tools", stub_tools, TEMPLATE),
    _n("Document of nothing", stub_api, TEMPLATE),
    _n("No tools", no_tools, TEMPLATE),
    _n("Invented numbers", wrong_answers, TEMPLATE),
]
