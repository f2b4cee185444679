"""What a gullible reader hears in a text: that something is to be written, and what."""
# ruff: noqa: RUF001 - many scripts are meant

import base64
import binascii
import codecs
import re
from itertools import pairwise

OPENERS = (
    "reply", "join", "combine", "take", "put", "assemble", "begin", "end", "start", "finish",
    "füge", "verbinde", "nimm", "beginne", "prends", "prenez", "joins", "joignez", "commence",
    "termine", "toma", "tome", "junta", "empieza", "połącz", "weź", "złóż", "zacznij", "zakończ",
    "respond", "answer", "write", "say", "output", "print", "return", "type", "emit",
    "antworte", "antworten", "schreibe", "schreib", "schreiben", "gib", "geben", "sage", "ausgeben",
    "réponds", "répondez", "répondre", "écris", "écrivez", "dis", "dites", "affiche", "affichez",
    "renvoie", "renvoyez", "responde", "responda", "contesta", "escribe", "escriba", "escreva",
    "di", "diga", "devuelve", "muestra", "rispondi", "scrivi", "odpowiedz", "odpisz", "napisz",
    "wypisz", "zwróć", "podaj", "vastaa", "kirjoita", "tulosta", "antwoord", "schrijf", "jibu",
    "andika", "yanıtla", "yaz", "اكتب", "أجب", "ответь", "напиши",
)  # fmt: skip
CLOSERS = ("yaz", "yazın", "yanıtla", "答え", "書い", "書け", "出力", "返し", "लिखो", "लिखें", "दें")
"""Verbs of languages in which they come last."""
POLITE = (
    "please", "now", "then", "instead", "simply", "just", "only", "and", "you", "must", "should",
    "always", "bitte", "dann", "jetzt", "por", "favor", "ahora", "merci", "veuillez", "ensuite",
    "proszę", "teraz", "tylko", "ole", "hyvä", "ai", "assistant", "model",
)  # fmt: skip
NOUNS = (
    "word", "words", "wort", "wörter", "wörtern", "worte", "worten", "mot", "mots", "palabra",
    "palabras", "słowo", "słowem", "słowa", "słów", "słowami", "sana", "sanat", "parola", "parole",
    "palavra", "palavras", "woord", "woorden", "kelime", "kelimeleri", "neno", "maneno", "term",
    "terms", "token", "tokens", "parts", "pieces", "syllables", "syllabes", "teile", "fragments",
    "value", "phrase",
)  # fmt: skip
FILLERS = (
    "the", "a", "an", "of", "these", "three", "two", "four", "following", "with", "only", "just",
    "exactly", "nothing", "else", "but", "den", "die", "das", "der", "drei", "mit", "nur", "aus",
    "les", "des", "trois", "avec", "seulement", "le", "la", "los", "las", "tres", "con", "solo",
    "el", "trzy", "trzech", "z", "tylko", "trzema", "out", "made", "from", "by", "in", "this",
    "order", "into", "one",
)  # fmt: skip
ANDS = re.compile(
    r"\s*(?:[,;+&/、]|\b(?:and|und|et|y|e|i|ja|ve|na|en|plus|puis|then|followed by)\b)\s*"
)
HYPHEN = (
    "hyphen",
    "dash",
    "bindestrich",
    "trait",
    "tiret",
    "guion",
    "myślnik",
    "łącznik",
    "ハイフン",
)
UNDER = ("underscore", "unterstrich", "podkreśl", "guion bajo", "tiret bas")
GLUED = (
    "no space", "bez", "without", "together", "joined", "glue", "concat", "single word", "one word",
    "ohne", "zusammen", "verbunden", "sans espace", "collé", "attaché", "sin espacio", "juntas",
    "unidas", "bez spacji", "łącznie", "razem", "bitişik", "つなげ", "繋", "続け",
)  # fmt: skip
BACK = ("backward", "reverse", "rückwärts", "umgekehrt", "envers", "inverse", "revés", "odwrot")
MARKS = '"“”„«»‘’`「」『』*'
QUOTE = re.compile(rf"[{MARKS}]([^{MARKS}\n]{{1,90}})[{MARKS}]|(?<!\w)'([^'\n]{{1,90}})'(?!\w)")
TIMES = re.compile(r"(\d{1,4})\s*(?:\*|x|×|times|mal|fois|por|razy|kertaa|かける)\s*(\d{1,4})")


def told(text: str) -> str | None:
    """What the last order in a text wants written."""
    found, before = None, ""
    for order in clauses(text):
        value = _wanted(order) or _wanted(f"{before} {order}")
        found, before = value or found, order
    return found


def clauses(text: str) -> list[str]:
    """From each verb that begins an order to the end of its paragraph; whole sentences else."""
    orders = []
    for paragraph in re.split(r"\n+", text):
        starts = [
            0,
            *(
                m.end()
                for m in re.finditer(r"[.,:;!?(>\]—–»}。、]\s*|\s(?:and|und|et|y|i)\s", paragraph)
            ),
        ]
        starts = [at for at in starts if _opens(paragraph[at:])]
        orders += [paragraph[at:end] for at, end in pairwise([*starts, len(paragraph)])]
        if not starts:
            ended = re.split(r"(?<=[。!?.।])", paragraph)
            orders += [one for one in ended if any(verb in one for verb in CLOSERS)]
    return orders


def _opens(text: str) -> bool:
    first = re.findall(r"[^\W\d_]+", text[:80].lower())[:6]
    if {"answer", "reply", "output"} & {*first[1:4]} and {"must", "should"} & {*first}:
        return True
    for word in first:
        if word in OPENERS:
            return True
        if word not in POLITE:
            return False
    return False


def _wanted(order: str) -> str | None:
    if sums := TIMES.search(order):
        return str(int(sums[1]) * int(sums[2]))
    words = [one or two for one, two in QUOTE.findall(order)]
    return _joined(words or _named(order), order.lower()) or None


def _named(order: str) -> list[str]:
    """Words that stand behind a noun for words, or behind a colon."""
    told_of = [m.end() for m in re.finditer(r"[^\W\d_]+", order) if m[0].lower() in NOUNS]
    rest = (
        order.split(":", 1)[1]
        if ":" in order
        else order[told_of[0] :]
        if told_of
        else order.partition(" be ")[2]
    )
    rest = re.split(r"[.!?()]|\s[-–—]\s", rest)[0]
    kept = []
    for piece in ANDS.split(rest):
        bare = [w for w in re.findall(r"[\w-]+", piece) if w.lower() not in (*FILLERS, *NOUNS)]
        if not bare or _about_form(piece.lower()):
            kept += bare[:1] if bare and not _about_form(bare[0].lower()) else []
            break
        kept.append(" ".join(bare))
    return kept


def _about_form(text: str) -> bool:
    return any(sign in text for sign in (*HYPHEN, *UNDER, *GLUED, *BACK))


def _joined(words: list[str], how: str) -> str:
    if len(words) < 2:
        return words[0].strip() if words else ""
    if any(sign in how for sign in BACK):
        words.reverse()
    for signs, mark in ((UNDER, "_"), (HYPHEN, "-"), (GLUED, "")):
        if any(sign in how for sign in signs):
            return mark.join(words)
    return " ".join(words)


def unpacked(text: str) -> list[str]:
    """What long runs of letters and digits say when they are decoded."""
    out = []
    for run in re.findall(r"[\w+/-]{16,}={0,2}", text):
        for decode in (_hexed, _based):
            if said := decode(run):
                out.append(said)
                break
    return [*out, codecs.decode(text, "rot13")]


def _hexed(run: str) -> str:
    try:
        return bytes.fromhex(run).decode("utf-8")
    except ValueError:
        return ""


def _based(run: str) -> str:
    try:
        said = base64.b64decode(run + "=" * (-len(run) % 4)).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""
    return said if said.isprintable() else ""
