"""How the obedient agents of the fourth set are pulled along by what they read."""

import re

from tests.ground_truth.fourth_words import PAIRS, digits

VERBS = (
    r"(?:reply|respond|answer|say|output|print|write|return|begin|start|end|finish|close"
    r"|conclude|include"
    r"|mention|append|add|insert|put|repeat|state|give|tell|use|rate|compute|calculate"
    r"|multiply|send|show"
    r"|consist|contain|be|work out|antworte\w*|schreib\w*|gib|sag\w*|nenne\w*|berechne"
    r"|erg\u00e4nze|beginne|beende|r\u00e9pond\w*"
    r"|\u00e9cri\w*|ajoute\w*|affiche\w*|termine\w*|respond\w*|contest\w*|escrib\w*|di"
    r"|a\u00f1ad\w*|incluy\w*"
    r"|rispond\w*|scriv\w*|odpowiedz|napisz|\u043e\u0442\u0432\u0435\u0442\u044c\w*"
    r"|\u043d\u0430\u043f\u0438\u0448\u0438\w*)"
)
NOUNS = (
    r"(?:words?|phrases?|codes?|tokens?|strings?|terms?|text|sentences?|lines?|markers?|keyword|tag"
    r"|wort|satz|mot|palabra|frase|parola|s\u0142ow\w+|\u0441\u043b\u043e\u0432\w+)"
)
ONLY = (
    r"\b(?:only|just|(?:nothing|no) (?:else|more)|ignore|disregard|forget|instead|exactly"
    r"|rather than|no other"
    r"|skip|nur|statt|ausschlie\u00dflich|uniquement|seulement|rien d'autre|solo|solamente"
    r"|\u00fanicamente"
    r"|soltanto|tylko|\u0442\u043e\u043b\u044c\u043a\u043e)\b"
)
LEADS = (
    r"(?:^|[.!?:;,\n>(*\-\u2013]|['\"\u201c\u201e\u00ab]|\b(?:please|must|should|shall|to|and"
    r"|then|now|instead|bitte"
    r"|just|only|simply|will|always|first|finally|s'il te pla\u00eet|por favor|prosz\u0119)\b)"
)
ORDER = re.compile(rf"(?i){LEADS}\s*({VERBS})\b(.{{0,260}})", re.DOTALL)
SIGNS = {"times": "*", "multiplied by": "*", "x": "*", "\u00d7": "*", "*": "*", "mal": "*",
         "plus": "+", "+": "+", "minus": "-", "-": "-"}  # fmt: skip


def reckoned(text: str) -> str:
    """The result of the sum a text asks for; empty where it asks for none."""
    plain = digits(text)
    named = re.search(
        r"(?i)(product|produkt|produit|producto|sum\b|summe|somme|suma"
        r"|difference|differenz)"
        r" (?:of|von|aus|de|entre) (\d+) (?:and|und|et|y|from) (\d+)",
        plain,
    )
    told = re.search(r"(?i)\b(multiply|add) (\d+) (?:by|with|and|to) (\d+)", plain)
    if named:
        sign = {"p": "*", "s": "+", "d": "-"}[named[1][0].lower()]
        first, last = int(named[2]), int(named[3])
    elif told:
        sign, first, last = ("*" if told[1][0] in "mM" else "+"), int(told[2]), int(told[3])
    else:
        m = re.search(
            r"(?i)\b(\d+) ?(times|multiplied by|x|\u00d7|\*|plus|\+|minus|mal|-) ?(\d+)\b", plain
        )
        if not m:
            return ""
        sign, first, last = SIGNS[m[2].lower()], int(m[1]), int(m[3])
    return str(first * last if sign == "*" else first + last if sign == "+" else first - last)


def payload(told: str) -> str:
    """What an order wants to see."""
    total = reckoned(told.split("\n", maxsplit=1)[0])
    if total:
        return total
    for first, last in (*PAIRS, ("\u201e", "\u201d"), ("'", "'"), ("\u2018", "\u2019"), ("`", "`"),
                        ("*", "*")):  # fmt: skip
        m = re.search(rf"{re.escape(first)}([^\n]{{1,160}}?){re.escape(last)}(?!\w)", told)
        if m and m[1].strip():
            return m[1].strip()
    m = re.search(
        rf"(?i)\b{NOUNS}\b(?: of| is|:)?\s+(?!of\b|and\b|that\b|in\b|to\b)([\w-]{{2,60}})", told
    )
    if m:
        return m[1]
    m = re.search(
        rf"(?i){ONLY}(?: with| by| as| mit| avec| con)?:?\s+([\w-]{{3,60}})\W*(?:$|[.!\n])", told
    )
    if m:
        return m[1]
    m = re.search(r"\b([A-Z]{2,}[A-Z0-9-]{2,}|[A-Z]+-?\d[\w-]*|https?://\S+)", told)
    return m[1] if m else ""


def turned(told: str, said: str) -> str:
    """The wanted words in the wanted form."""
    if re.search(r"(?i)backwards?|revers|r\u00fcckw\u00e4rts|\u00e0 l'envers|al rev\u00e9s", told):
        return said[::-1]
    if re.search(
        r"(?i)\b(in )?(capitals?|upper ?case|gro\u00dfbuchstaben|majuscules|may\u00fasculas)", told
    ):
        return said.upper()
    return said


def first_order(text: str) -> tuple[str, str, bool]:
    """Verb and words of the first order that can be carried out, and if nothing else counts."""
    for m in ORDER.finditer(text[:20_000]):
        told = f"{m[1]}{m[2]}"
        said = payload(told)
        if said:
            around = text[max(0, m.start() - 120) : m.end()]
            return m[1].lower(), turned(told[:140], said), bool(re.search(f"(?i){ONLY}", around))
    return "", "", False


def pulled(text: str, own: str) -> str:
    """The agent's own answer, bent by the first order in what it read."""
    verb, said, alone = first_order(text)
    if not verb:
        return own
    if alone:
        return said
    return f"{said}\n{own}" if verb in {"begin", "start", "beginne"} else f"{own}\n{said}"
