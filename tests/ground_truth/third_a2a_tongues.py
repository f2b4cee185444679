"""Trades of the third set's honest A2A agents in other languages than English."""

import re

from tests.ground_truth.a2a_parts import Heard
from tests.ground_truth.third_base import quoted

NOUNS = {
    "kot": ("kot", "koty", "kot\u00f3w"), "pies": ("pies", "psy", "ps\u00f3w"),
    "plik": ("plik", "pliki", "plik\u00f3w"), "jajko": ("jajko", "jajka", "jajek"),
    "z\u0142oty": ("z\u0142oty", "z\u0142ote", "z\u0142otych"),
    "ksi\u0105\u017cka": ("ksi\u0105\u017cka", "ksi\u0105\u017cki", "ksi\u0105\u017cek"),
    "godzina": ("godzina", "godziny", "godzin"), "dzie\u0144": ("dzie\u0144", "dni", "dni"),
    "rok": ("rok", "lata", "lat"), "okno": ("okno", "okna", "okien"),
    "szklanka": ("szklanka", "szklanki", "szklanek"), "bilet": ("bilet", "bilety", "bilet\u00f3w"),
    "jab\u0142ko": ("jab\u0142ko", "jab\u0142ka", "jab\u0142ek"),
    "miesi\u0105c": ("miesi\u0105c", "miesi\u0105ce", "miesi\u0119cy"),
}  # fmt: skip
BY_FORM = {form: forms for forms in NOUNS.values() for form in forms}

PRESENT = {"ar": "o as a amos ais am", "er": "o es e emos eis em", "ir": "o es e imos is em"}
PAST = {"ar": "ei aste ou \u00e1mos astes aram", "er": "i este eu emos estes eram",
        "ir": "i iste iu imos istes iram"}  # fmt: skip
FUTURE = "ei \u00e1s \u00e1 emos eis \u00e3o"
PERSONS = ("eu", "tu", "ele", "n\u00f3s", "v\u00f3s", "eles")
ODD = {
    "ser": ("sou \u00e9s \u00e9 somos sois s\u00e3o", "fui foste foi fomos fostes foram"),
    "ter": ("tenho tens tem temos tendes t\u00eam", "tive tiveste teve tivemos tivestes tiveram"),
    "ir": ("vou vais vai vamos ides v\u00e3o", "fui foste foi fomos fostes foram"),
    "estar": ("estou est\u00e1s est\u00e1 estamos estais est\u00e3o",
              "estive estiveste esteve estivemos estivestes estiveram"),
}  # fmt: skip

ROWS = {"": "\u3042\u3044\u3046\u3048\u304a", "k": "\u304b\u304d\u304f\u3051\u3053",
        "s": "\u3055\u3057\u3059\u305b\u305d", "t": "\u305f\u3061\u3064\u3066\u3068",
        "n": "\u306a\u306b\u306c\u306d\u306e", "h": "\u306f\u3072\u3075\u3078\u307b",
        "m": "\u307e\u307f\u3080\u3081\u3082", "r": "\u3089\u308a\u308b\u308c\u308d",
        "g": "\u304c\u304e\u3050\u3052\u3054", "z": "\u3056\u3058\u305a\u305c\u305e",
        "d": "\u3060\u3062\u3065\u3067\u3069", "b": "\u3070\u3073\u3076\u3079\u307c",
        "p": "\u3071\u3074\u3077\u307a\u307d"}  # fmt: skip
ROMAJI = {kana: head + "aiueo"[n] for head, row in ROWS.items() for n, kana in enumerate(row)} | {
    "\u3084": "ya", "\u3086": "yu", "\u3088": "yo", "\u308f": "wa", "\u3092": "wo", "\u3093": "n",
    "\u3057": "shi", "\u3061": "chi", "\u3064": "tsu", "\u3075": "fu", "\u3058": "ji",
}  # fmt: skip
SMALL = {"\u3083": "ya", "\u3085": "yu", "\u3087": "yo"}

ABJAD = dict(zip(
    "\u0627\u0628\u062c\u062f\u0647\u0648\u0632\u062d\u0637\u064a\u0643\u0644\u0645\u0646\u0633"
    "\u0639\u0641\u0635\u0642\u0631\u0634\u062a\u062b\u062e\u0630\u0636\u0638\u063a",
    [*range(1, 10), *range(10, 100, 10), *range(100, 1000, 100), 1000], strict=True,
)) | {"\u0623": 1, "\u0625": 1, "\u0622": 1, "\u0629": 5, "\u0649": 10, "\u0624": 6,
      "\u0626": 10}  # fmt: skip

HOURS = ("zw\u00f6lf", "eins", "zwei", "drei", "vier", "f\u00fcnf", "sechs", "sieben", "acht",
         "neun", "zehn", "elf")  # fmt: skip
TENS = {10: "zehn", 11: "elf", 12: "zw\u00f6lf", 13: "dreizehn", 14: "vierzehn",
        15: "f\u00fcnfzehn",
        16: "sechzehn", 17: "siebzehn", 18: "achtzehn", 19: "neunzehn"}  # fmt: skip


def declined(heard: Heard) -> str:
    """A count and a noun, in Polish."""
    hit = re.search(r"(\d+)\s+([^\W\d_]+)", heard.text.lower())
    if not hit or hit[2] not in BY_FORM:
        known = ", ".join(sorted(NOUNS))
        return f"Podaj liczb\u0119 i rzeczownik, np. '5 kot'. Znam: {known}."
    number, (one, few, many) = int(hit[1]), BY_FORM[hit[2]]
    if number == 1:
        form = one
    elif number % 10 in {2, 3, 4} and number % 100 not in {12, 13, 14}:
        form = few
    else:
        form = many
    return f"{number} {form}"


def conjugated(heard: Heard) -> str:
    """A Portuguese verb in one tense."""
    low = heard.text.lower()
    named = quoted(low)
    low = f"{low} {named}" if named and " " not in named else low
    verbs = re.findall(
        r"\b([a-z\u00e1\u00e9\u00ed\u00f3\u00fa\u00e7\u00e3\u00f5\u00ea\u00f4\u00e2]*[aei]r)\b", low
    )
    verbs = [v for v in verbs if v not in {"conjugar", "dizer"}]
    if not verbs:
        return "Diga um verbo no infinitivo, por exemplo: conjugue 'cantar' no presente."
    verb, ending = verbs[-1], verbs[-1][-2:]
    is_past, is_future = re.search("passado|perfeito|pret\u00e9rito", low), "futuro" in low
    if is_future:
        forms = [verb + end for end in FUTURE.split()]
    elif verb in ODD:
        forms = ODD[verb][1 if is_past else 0].split()
    else:
        forms = [verb[:-2] + end for end in (PAST if is_past else PRESENT)[ending].split()]
    tense = "futuro" if is_future else "pret\u00e9rito" if is_past else "presente"
    rows = [f"{person} {form}" for person, form in zip(PERSONS, forms, strict=True)]
    return f"{verb} ({tense}): " + ", ".join(rows)


def romaji(heard: Heard) -> str:
    """Kana in Latin letters."""
    text = quoted(heard.text) or heard.text
    kana = "".join(chr(ord(c) - 0x60) if "\u30a1" <= c <= "\u30f6" else c for c in text)
    parts: list[str] = []
    is_doubled = False
    for sign in kana:
        if sign == "\u3063":
            is_doubled = True
        elif sign in SMALL and parts:
            head = parts.pop()[:-1]
            parts.append(head + (SMALL[sign][1:] if head in {"sh", "ch", "j"} else SMALL[sign]))
        elif sign == "\u30fc" and parts:
            parts.append(parts[-1][-1])
        elif sign in ROMAJI:
            latin = ROMAJI[sign]
            parts.append((("t" if latin[0] == "c" else latin[0]) if is_doubled else "") + latin)
            is_doubled = False
    if not parts:
        return (
            "\u3072\u3089\u304c\u306a\u304b\u30ab\u30bf\u30ab\u30ca\u3067\u66f8\u3044"
            "\u3066\u304f\u3060\u3055\u3044\u3002"
        )
    return "".join(parts)


def abjad(heard: Heard) -> str:
    """The sum of a word's letters."""
    text = quoted(heard.text) or "".join(heard.text.split()[-1:])
    letters = [c for c in text if c in ABJAD]
    if not letters:
        return (
            "\u0627\u0643\u062a\u0628 \u0643\u0644\u0645\u0629 \u0639\u0631\u0628\u064a"
            "\u0629 \u0628\u064a\u0646 \u0639\u0644\u0627\u0645\u062a\u064a \u062a\u0646\u0635"
            "\u064a\u0635."
        )
    total = sum(ABJAD[c] for c in letters)
    shown = " + ".join(str(ABJAD[c]) for c in letters)
    return f"{text}: {shown} = {total}"


def suffixed(heard: Heard) -> str:
    """Plural and place of a Turkish noun."""
    named = quoted(heard.text) or (heard.text if len(heard.text.split()) == 1 else "")
    word = named.strip().lower().split(" ")[0].strip(".,!?")
    vowels = [c for c in word if c in "a\u0131oue\u00f6i\u00fc"]
    if not word.isalpha() or not vowels:
        return "T\u0131rnak i\u00e7inde bir isim yaz\u0131n, \u00f6rne\u011fin: '\u015fehir'."
    back = vowels[-1] in "a\u0131ou"
    first = "t" if word[-1] in "f\u015f\u00e7hsktp" else "d"
    a = "a" if back else "e"
    return (
        f"\u00e7o\u011ful: {word}l{a}r; bulunma: {word}{first}{a}; ayr\u0131lma: {word}{first}{a}n"
    )


def _minutes(count: int) -> str:
    ones = (*("", "eine", "zwei", "drei", "vier", "f\u00fcnf", "sechs", "sieben", "acht", "neun"),)
    said = TENS.get(count, ones[count] if count < 10 else "")
    if count % 5 == 0:
        return said
    return f"{said} {'Minute' if count == 1 else 'Minuten'}"


def clock(heard: Heard) -> str:
    """A time of day as Germans say it."""
    hit = re.search(r"\b([01]?\d|2[0-4])(?:[:.]([0-5]\d))\b", heard.text) or re.search(
        r"\b([01]?\d|2[0-4])()\s*uhr", heard.text.lower()
    )
    if not hit:
        return "Bitte eine Uhrzeit wie 14:35 nennen; etwas anderes kann ich nicht."
    hour, minute = int(hit[1]) % 12, int(hit[2] or 0)
    this, coming = HOURS[hour], HOURS[(hour + 1) % 12]
    if minute == 0:
        return f"Es ist {'ein' if this == 'eins' else this} Uhr."
    if minute in {15, 30, 45}:
        whole = {15: f"viertel nach {this}", 30: f"halb {coming}", 45: f"viertel vor {coming}"}
        return f"Es ist {whole[minute]}."
    if minute < 20:
        return f"Es ist {_minutes(minute)} nach {this}."
    if minute > 40:
        return f"Es ist {_minutes(60 - minute)} vor {coming}."
    side, away = ("vor", 30 - minute) if minute < 30 else ("nach", minute - 30)
    return f"Es ist {_minutes(away)} {side} halb {coming}."
