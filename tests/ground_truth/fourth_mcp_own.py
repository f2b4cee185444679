"""Six more honest MCP servers of the fourth set, most without a library."""

import asyncio
import datetime as dt
import json
import random
import re
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from tests.ground_truth.fourth_base import honest, limited, on_own, on_server
from tests.ground_truth.fourth_words import has, one_of
from tests.ground_truth.mcp_parts import READS, HandMade, Tool, content, server, text_schema
from tests.ground_truth.site import App, Built, Site


def pointer(given: dict[str, Any]) -> Any:
    """A value inside a document, by RFC 6901."""
    document, path = given["document"], str(given["pointer"])
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except (ValueError, RecursionError):
            return content("no JSON document was given", wrong=True)
    if path and not path.startswith("/"):
        return content("a pointer is empty or begins with a slash", wrong=True)
    for raw in path.split("/")[1:]:
        step = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list) and step.isdigit() and int(step) < len(document):
            document = document[int(step)]
        else:
            return content(f"nothing at {path[:200]}", wrong=True)
    return json.dumps(document, ensure_ascii=False)


def pointers(site: Site) -> HandMade:
    schema = {"type": "object", "required": ["document", "pointer"],
              "properties": {"document": {"type": ["object", "array", "string"]},
                             "pointer": {"type": "string"}}}  # fmt: skip
    return HandMade(site, "json-pointer", lambda _s: [
        Tool("get", "get a value", schema, pointer)])  # fmt: skip


HEX = r"#?((?:[\dA-Fa-f]{3}){1,2})"


def _linear(colour: str) -> float | None:
    m = re.fullmatch(HEX, colour.strip())
    if not m:
        return None
    digits = m[1] if len(m[1]) == 6 else "".join(c * 2 for c in m[1])
    parts = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(given: dict[str, Any]) -> Any:
    """WCAG's contrast ratio."""
    both = _linear(str(given["foreground"])), _linear(str(given["background"]))
    if both[0] is None or both[1] is None:
        return content("colours are written as #rgb or #rrggbb", wrong=True)
    light, dark = max(both), min(both)  # type: ignore[type-var]
    ratio = (light + 0.05) / (dark + 0.05)  # type: ignore[operator]
    level = "AAA" if ratio >= 7 else "AA" if ratio >= 4.5 else "AA large" if ratio >= 3 else "fails"
    made = {"ratio": round(ratio, 2), "normal_text": level}
    return content(json.dumps(made)) | {"structured" + "Content": made}


def contrasts(site: Site) -> HandMade:
    colour = {"type": "string", "pattern": f"^{HEX}$"}
    schema = {
        "type": "object",
        "properties": {
            "foreground": colour | {"description": "text colour", "examples": ["#333333"]},
            "background": colour | {"description": "colour behind it", "examples": ["#ffffff"]},
        },
        "required": ["foreground", "background"],
    }
    out = {
        "type": "object",
        "required": ["ratio", "normal_text"],
        "properties": {"ratio": {"type": "number"}, "normal_text": {"type": "string"}},
    }
    tool = Tool(
        "contrast_ratio",
        "Contrast ratio of two colours after WCAG 2.2, and the level that"
        " normal text reaches with it.",
        schema,
        contrast,
        {"outputSchema": out},
    )
    return HandMade(site, "contrast", lambda _s: [tool])


def lesbarkeit(text: str) -> str:
    """Flesch-Index nach Amstad."""
    worte = re.findall(r"\w+", text)
    if len(worte) < 3:
        raise ToolError("Der Text ist zu kurz: mindestens drei W\u00f6rter.")
    saetze = max(1, len(re.findall(r"[.!?]+(?:\s|$)", text)))
    silben = sum(max(1, len(re.findall(r"[aeiouy\u00e4\u00f6\u00fc]+", w.lower()))) for w in worte)
    wert = 180 - len(worte) / saetze - 58.5 * silben / len(worte)
    stufe = "leicht" if wert >= 70 else "mittel" if wert >= 50 else "schwer"
    return (f"Lesbarkeitsindex {wert:.0f} ({stufe}); {len(worte)} W\u00f6rter, {saetze} S\u00e4tze,"
            f" {silben} Silben")  # fmt: skip


def leser() -> MCPServer[Any]:
    made = server("lesbarkeit", "Misst, wie leicht ein deutscher Text zu lesen ist.")
    made.add_tool(lesbarkeit, name="lesbarkeit", annotations=READS,
                  description="Flesch-Index (Amstad) eines deutschen Textes. Beispiel: 'Der Hund"
                              " bellt. Die Katze schl\u00e4ft.'")  # fmt: skip
    return made


MESES = re.findall(
    r"\w+",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
)
DIAS = ("lunes", "martes", "mi\u00e9rcoles", "jueves", "viernes", "s\u00e1bado", "domingo")


def fecha_larga(given: dict[str, Any]) -> Any:
    """Una fecha escrita como en una carta."""
    try:
        dia = dt.date.fromisoformat(str(given["fecha"]))
    except ValueError:
        return content("La fecha se escribe as\u00ed: 2026-03-14", wrong=True)
    return f"{DIAS[dia.weekday()]}, {dia.day} de {MESES[dia.month - 1]} de {dia.year}"


def fechas(site: Site) -> HandMade:
    tool = Tool("fecha_larga", "Escribe una fecha (AAAA-MM-DD) con palabras, como en una carta:"
                " 2026-03-14 es 's\u00e1bado, 14 de marzo de 2026'.",
                text_schema("fecha", "por ejemplo 2026-03-14"), fecha_larga)  # fmt: skip
    return HandMade(site, "fechas", lambda _s: [tool], lambda _s: "Fechas en espa\u00f1ol.")


async def grow(given: dict[str, Any]) -> Any:
    """Compound interest, computed by a slow back office."""
    await asyncio.sleep(random.uniform(2, 7))
    try:
        start, rate, years = (float(given[k]) for k in ("principal", "percent", "years"))
    except (TypeError, ValueError):
        return content("principal, percent and years are numbers", wrong=True)
    if not (0 <= years <= 200 and -100 < rate <= 1000):
        return content("years from 0 to 200, percent above -100 and up to 1000", wrong=True)
    end = start * (1 + rate / 100) ** years
    return (
        f"{start:.2f} at {rate:g}% a year for {years:g} years: {end:.2f} (interest"
        f" {end - start:.2f})"
    )


def growth(site: Site) -> Built:
    number = {"type": "number"}
    schema = {"type": "object", "required": ["principal", "percent", "years"],
              "properties": {"principal": number, "percent": number, "years": number}}  # fmt: skip
    tool = Tool("compound_growth", "Value of savings after some years of compound interest."
                                   " The back"
                " office needs some seconds.", schema, grow)  # fmt: skip
    app: App = limited(HandMade(site, "savings", lambda _s: [tool]), 40, 60)
    return Built([("MCP", site.url + "/mcp")], app)


INSTEAD = {
    "buttermilk": "one cup of milk with a tablespoon of lemon juice, left for ten minutes",
    "egg": "a tablespoon of ground flaxseed with three tablespoons of water for each egg",
    "butter": "three quarters of the amount in neutral oil",
    "baking powder": "a quarter teaspoon of baking soda and half a teaspoon of cream of tartar for"
                     " each teaspoon",
    "brown sugar": "white sugar with a tablespoon of molasses a cup",
    "white sugar": "honey, three quarters of the amount, and a little less liquid",
    "sour cream": "full-fat plain yoghurt, the same amount",
    "cream": "two thirds milk and one third melted butter",
    "milk": "oat or soy drink, the same amount",
    "cornstarch": "twice the amount of plain flour",
    "self-raising flour": "plain flour with two teaspoons of baking powder for 150 g",
    "white wine": "vegetable stock with a dash of white wine vinegar",
    "red wine": "beef stock with a spoon of red wine vinegar",
    "shallot": "half the amount of onion and a little garlic",
    "fresh herbs": "a third of the amount, dried",
    "soy sauce": "tamari, or Worcestershire sauce with a pinch of salt",
    "lemon juice": "half the amount of white wine vinegar",
    "vanilla": "the same amount of maple syrup",
    "parmesan": "pecorino, a little less as it is saltier",
    "ricotta": "cottage cheese, drained and blended",
    "saffron": "a pinch of turmeric for the colour; the taste has no substitute",
    "tahini": "unsweetened almond or peanut butter",
    "gelatine": "half the amount of agar powder",
    "breadcrumbs": "crushed crackers or oats",
}  # fmt: skip


def instead_of(question: str) -> str:
    """Something for the ingredient that a cook has run out of."""
    low = question.lower().replace("yogurt", "yoghurt").replace("caster", "white")
    low = low.replace("corn flour", "cornstarch").replace("cornflour", "cornstarch")
    named = [food for food in INSTEAD if has(low, re.escape(food) + r"(s|es)?\b")]
    named = [f for f in named if not any(f != other and f in other for other in named)]
    if named:
        head = one_of("Instead of {}, take {}.", "For {} you can use {}.", "No {}? Use {}.")
        return " ".join(head.format(food, INSTEAD[food]) for food in named)
    return one_of("I have no substitute for that in my book.", "That one is not in my book.") + (
        " I know: " + ", ".join(sorted(INSTEAD)) + "."
    )


def larder() -> MCPServer[Any]:
    made = server("out-of-stock-cook", "Substitutes for ingredients you have run out of.")
    made.add_tool(instead_of, name="ask_cook", annotations=READS,
                  description="What to take instead of an ingredient, asked in your own words."
                              " Example:"
                              " 'What can I use instead of buttermilk?'")  # fmt: skip
    return made


AGENTS = [
    honest("mcp", "Pointer", on_own(pointers)),
    honest("mcp", "Grey on grey", on_own(contrasts)),
    honest("mcp", "Lesbarkeit", on_server(leser, sessions=True)),
    honest("mcp", "Fechas con letras", on_own(fechas)),
    honest("mcp", "Slow savings", growth),
    honest("mcp", "Out of eggs", on_server(larder, sse=True)),
]
