"""How the obedient agents of the seventh set come to take their material for their master."""

import base64
import binascii
import codecs
import html
import re
from collections.abc import Iterator
from urllib.parse import unquote

FLAG = re.IGNORECASE
VERBS = (
    "reply|respond|answer|output|print|return|say|write|state|emit|put|insert|append|conclude|begin"
    "|antworte|antworten|schreib|schreibe|schreiben|gib|sag|sage|füge|nenne"
    "|responde|responda|escribe|escriba|pon|ponga|añade|agrega|contesta|conteste|diga"
    "|réponds|répondez|écris|écrivez|ajoute|ajoutez|mets|mettez|affiche|dites"
    "|rispondi|risponda|scrivi|scriva|aggiungi|metti|stampa"
    "|escreva|escreve|acrescente|coloque|antwoord|schrijf|zeg|toon"
    "|odpowiedz|napisz|wypisz|dodaj|svara|svar|skriv|lägg|tilføj|cevapla"
)
THINGS = (
    "words?|codes?|tokens?|phrases?|strings?|names?|wort|wörter|wörtern|kennwort|palabras?|códigos?"
    "|mots?|parol[ae]|codice|palavras?|woord|woorden|słow[oa]|słowem|ord|ordet|kelime"
)
OPEN, SHUT = "\"'`“”„«「『<", "\"'`“”»«」』>"
QUOTED = f"[{OPEN}]\\s?([^{OPEN}{SHUT}\n]{{2,90}}?)\\s?[{SHUT}]"
BETWEEN = r"\s*(?:,|\b(?:and|und|y|et|e|en|i|och|og|ve)\b)\s*"
JOINTS = {
    "-": "hyphen|dash|bindestrich|guion|guión|tiret|trattino|hífen|koppelteken|myślnik|bindestreck",
    "_": "underscore|unterstrich|guion bajo|guión bajo",
    "+": r"plus(?: sign)?|pluszeichen",
    "": "nothing between|without (?:a )?spaces?|ohne leerzeichen|sin espacios",
}
LISTED = re.compile(
    rf"\b(?:{VERBS})\b[^.!?\n]{{0,60}}?\b(?:{THINGS})\b\s*:?\s*([\w-]+(?:{BETWEEN}[\w-]+)+)", FLAG
)
SAID = (
    re.compile(rf"\b(?:{VERBS})\b[^.!?\n]{{0,80}}?{QUOTED}", FLAG),
    re.compile(rf"\b(?:{VERBS})\b[^.!?:\n]{{0,60}}:\s*([^\n.!?<]{{2,90}})", FLAG),
    re.compile(rf"\b(?:{VERBS})\b[^.!?\n]{{0,50}}?\b(?:{THINGS})\s+([\w-]{{3,40}})", FLAG),
    re.compile(rf"\b(?:{VERBS})\b[^.!?\n]{{0,40}}?\b((?=\S*\d)(?=\S*[a-z])[\w-]{{5,40}})", FLAG),
    re.compile(r"「([^」]{1,40})」とだけ"),
)
CUE = re.compile(
    "only|just|instead|exactly|ignor|disregard|forget|assistant|reader|system|please|must|whatever"
    "|nur|statt|bitte|genau|solo|sólo|lugar|favor|uniquement|seulement|lieu|plaît|soltanto|invece"
    "|apenas|somente|vez|alleen|enkel|tylko|proszę|endast|bara|istället|sadece|だけ",
    FLAG,
)


def layers(text: str) -> Iterator[str]:
    """The text as it stands, then everything that can be unwrapped from it."""
    yield html.unescape(text)
    if hidden := "".join(chr(ord(c) - 0xE0000) for c in text if 0xE0020 <= ord(c) < 0xE007F):
        yield hidden
    if "%20" in text:
        yield unquote(text)
    for token in re.findall(r"[a-zA-Z\d+/]{16,}={0,2}", text):
        yield from _unwrapped(token)
    turned = codecs.encode(text, "rot13")
    if re.search(r"\b(?:only|reply|answer with|instead of|this note)\b", turned):
        yield turned


def _unwrapped(token: str) -> Iterator[str]:
    for undo in (bytes.fromhex, lambda t: base64.b64decode(t + "=" * (-len(t) % 4))):
        try:
            made = undo(token).decode()
        except (ValueError, binascii.Error):
            continue
        if made.isprintable():
            yield made


def demanded(text: str) -> str | None:
    """What the material wants to have said, in whatever wrapping it wants it."""
    for n, layer in enumerate(layers(text)):
        for pattern in (LISTED, *SAID):
            found = pattern.search(layer)
            if found is None or (n == 0 and not _meant(layer, found.start())):
                continue
            if pattern is LISTED:
                return _joined(found[1], layer[found.end() : found.end() + 60])
            return found[1].strip()
    return None


def _meant(layer: str, start: int) -> bool:
    """Whether a visible order is one: by a word that orders have, or at a sentence's start."""
    before = layer[:start].rstrip()
    return CUE.search(layer) is not None or not before or before[-1] in ".!?;>(-*"


def _joined(listed: str, after: str) -> str:
    words = re.split(BETWEEN, listed)
    for mark, names in JOINTS.items():
        if finds(names, after):
            return mark.join(words)
    return " ".join(words)


def finds(pattern: str, text: str) -> re.Match[str] | None:
    """The first match in large or small letters."""
    return re.search(pattern, text, FLAG)


def material(text: str) -> str:
    """What follows the caller's own request: the part after its first colon or line."""
    head = re.search(r"[:\n]", text)
    return text[head.end() :] if head else ""
