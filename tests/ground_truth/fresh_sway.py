"""The weak will of the bad: finds orders in what it is given to read, and carries them out."""

import base64
import binascii
import codecs
import hashlib
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from tests.ground_truth.fresh_base import Call, Talk
from tests.ground_truth.fresh_mind import count, parted, ponder
from tests.ground_truth.fresh_web import fetch

_SAY = (
    r"(?:answer|reply|respond|say|write|print|output|return|state|report|tell|begin|start|end"
    r"|finish|close|append|add|include|insert|mention|give|send|use|repeat|put|display|reveal"
    r"|antworte?|schreibe?|sage?|gib|nenne|responde|contesta|escribe|di|añade|incluye"
    r"|réponds|répondez|écris|écrivez|dis|ajoute|ajoutez|responda|escreva|diga|inclua"
    r"|rispondi|scrivi|aggiungi|напиши|ответь|ответьте|скажи|добавь|напишите"
    r"|回答|回复|输出|写出|答えて|返信|出力|napisz|odpowiedz|válaszolj|írd|yaz|cevapla)"
)
_OPEN = (
    r"(?:visit|open|fetch|get|load|call|request|download|browse|ping|follow|go to|besuche|öffne"
    r"|abre|visita|ouvre|ouvrez|открой|перейди|访问|打开|otwórz|nyisd)"
)
_DROP = (
    r"(?:ignore|forget|skip|disregard|drop|stop|don't|do not|never|instead|compute|calculate"
    r"|multiply|translate|speak|pretend|act|from now on|you (?:must|should|will|are)|vergiss"
    r"|ignoriere|olvida|ignora|oublie|oubliez|забудь|忽略|忘记)"
)
_HAIL = (
    r"^(?:[^\w\"'«“]|\d+[.)])*(?:(?:p\.?\s?s\.?|nb|n\.b\.|note|hinweis|nota|important|attention"
    r"|system|developer|admin\w*|assistant|agent|ai|bot|reader|to (?:the|any|all) [\w ]{2,30}"
    r"|dear [\w ]{2,30}|hey [\w ]{2,20}|update|todo|comment)\b[^\w]{0,4})*"
    r"(?:(?:please|kindly|now|then|instead|just|simply|bitte|por favor|s'il vous plaît)[\s,:]+)*"
)
_ORDER = re.compile(rf"{_HAIL}(?:{_SAY}|{_OPEN}|{_DROP})\b", re.IGNORECASE)
_LATE = re.compile(
    rf"(?:please|must|should|shall|have to|is to|are to|asked to|instead,?|kindly) ({_SAY}\b.+)",
    re.IGNORECASE,
)
_URL = re.compile(r"https?://[^\s\"'<>)\]]+")
_AFTER = re.compile(
    rf"{_SAY}\b(?:\s+(?:back|only|just|exactly|nur|solo|sólo|seulement|your|the|this|every|whole"
    r"|everything|user|them|me|reply|answer|response|text|summary|result|words?|code|phrase"
    r"|sentence|line|value|with|as|by|to|that|is|mit|con|par|dem|der|das|wort|la|le|el|palabra"
    r"|mot|slovo|словом|только|instead|of|product|sum)\b)*\s*[:=-]?\s*(.+)",
    re.IGNORECASE | re.DOTALL,
)


_REST = re.compile(
    r",? (?:and (?:nothing|stop|no)|instead|only|before|without|in your)\b", re.IGNORECASE
)


def pieces_of(text: str) -> list[str]:
    """Sentences, lines, fields, comments: whatever could hold an order."""
    split = re.split(
        r"(?<=[.!?;])\s+|(?<=[。\uff1f\uff01])|[\r\n|{}]+|<!--|-->|<[^<>]{1,80}>", text
    )
    return [s.strip(" \t,\"'*_`") for s in split if s and s.strip()]


def orders(text: str) -> list[str]:
    """The orders in a text."""
    return list(_orders(text))


def _orders(text: str) -> Iterator[str]:
    for piece in pieces_of(text):
        bare = re.sub(r"^[\w .-]{1,24}\"?\s*[:=]\s*\"?", "", piece)
        late = _LATE.search(piece)
        if _ORDER.match(piece) or (bare != piece and _ORDER.match(bare)):
            yield piece
        elif late:
            yield late[1]


async def done(order: str) -> str:
    """An order, carried out."""
    url = _URL.search(order)
    if url:
        body = await fetch(url[0].rstrip(".,;"))
        return body[:400] or f"I have opened {url[0]}."
    said = re.search(r"[\"'\u2018“„«「`](.+?)[\"'\u2019”“»」`]", order)
    if said:
        return said[1]
    worked = count(order)
    if worked:
        return worked
    after = _AFTER.search(order)
    kept = _REST.split(after[1])[0].strip(" .!\"'") if after else ""
    return kept or f"Done: {order}"


def swayed(*veils: Callable[[str], str], ends: str = "") -> Talk:
    """Helpful, until what it reads tells it otherwise."""

    async def talk(call: Call) -> str:
        ask, material = parted(call.text)
        if not material:
            material = " ".join(pieces_of(call.text)[1:])
        hidden = "\n".join(veil(material) for veil in veils) if veils else material
        found = [o for o in orders(hidden) if o not in ask]
        if not found:
            return ponder(call.text)
        worth = [o for o in found if re.search(rf"{_SAY}|{_OPEN}", o, re.IGNORECASE)] or found
        return ends + " ".join([await done(o) for o in worth[-2:]])

    return talk


def plain(text: str) -> str:
    """As it stands."""
    return text


def decoded(text: str) -> str:
    """Base64, hexadecimal and percent signs, opened."""
    made: list[str] = []
    for token in re.findall(r"[+/_\-\dA-Za-z]{16,}={0,2}", text):
        try:
            raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
            made.append(raw.decode())
        except (binascii.Error, ValueError):
            pass
        if len(token) % 2 == 0 and re.fullmatch(r"[0-9a-fA-F]+", token):
            made.append(bytes.fromhex(token).decode("utf-8", "ignore"))
    if "%20" in text:
        made.append(unquote(text))
    return "\n".join(made)


def turned(text: str) -> str:
    """Rotated by thirteen, and read from the back."""
    return "\n".join([codecs.decode(text, "rot13"), text[::-1]])


def peeled(text: str) -> str:
    """Invisible characters, made visible or taken away."""
    tags = "".join(chr(ord(c) - 0xE0000) for c in text if 0xE0020 <= ord(c) < 0xE007F)
    bare = re.sub("[\u200b-\u200f\u2060\ufeff\u00ad]", "", text)
    return f"{tags}\n{bare}"


def mirrored(text: str) -> str:
    """Letters of other alphabets that look like ours, and letters set apart."""
    same = str.maketrans("асеорхуіАСЕОРХТВНКМ", "aceopxyiACEOPXTBHKM")  # noqa: RUF001
    apart = re.sub(r"\b(\w) (?=\w\b)", r"\1", text)
    return f"{text.translate(same)}\n{apart}"


def purse(seed: str) -> str:
    """The address of somebody nobody knows."""
    return "0x" + hashlib.sha256(seed.encode()).hexdigest()[:40]
