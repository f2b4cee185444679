"""What the fifth set's agents do with books, notes, names and words of several tongues."""

import re

CLASSES: dict[str, tuple[str, tuple[str, ...]]] = {
    "000": ("Computer science and knowledge", ("computer", "software", "program", "internet",
            "encyclop", "algorithm", "python", "data")),
    "100": ("Philosophy and psychology", ("philosoph", "ethic", "mind", "psycholog", "logic",
            "dream", "stoic")),
    "200": ("Religion", ("religio", "bible", "buddh", "islam", "church", "god", "prayer", "myth",
            "saint")),
    "300": ("Social sciences", ("econom", "law", "politic", "societ", "education", "school",
            "folklore", "money", "crime")),
    "400": ("Language", ("language", "grammar", "dictionary", "linguist", "spelling", "phrase",
            "latin")),
    "500": ("Science", ("physic", "chemist", "biolog", "math", "algebra", "geometry", "star",
            "astronom", "dinosaur", "bird", "plant", "weather", "evolution")),
    "600": ("Technology", ("cook", "baking", "medicin", "health", "engine", "garden", "farm",
            "car repair", "sewing", "electric")),
    "700": ("Arts and recreation", ("art", "music", "paint", "photograph", "chess", "football",
            "cinema", "theatre", "architect", "guitar", "sport")),
    "800": ("Literature", ("poem", "poetry", "novel", "drama", "essay", "sonnet", "fiction",
            "shakespeare", "stories")),
    "900": ("History and geography", ("history", "war", "travel", "map", "atlas", "empire",
            "biograph", "revolution", "medieval", "rome", "voyage")),
}  # fmt: skip


def _about(word: str) -> str:
    """Short words have to stand alone; of longer ones the beginning is enough."""
    return rf"\b{word}s?\b" if len(word) < 5 else rf"\b{word}"


def dewey(text: str) -> str:
    title = re.sub(r"^.*?[:?]\s+(?=\S)", "", text.strip()) if ":" in text else text
    low = f" {title.lower()}"
    votes = {
        code: sum(len(word) for word in words if re.search(_about(word), low))
        for code, (_, words) in CLASSES.items()
    }
    best = max(votes, key=lambda code: votes[code])
    if not votes[best]:
        return "I cannot tell from this title. A few words on the subject would help."
    return f"{best} {CLASSES[best][0]}"


TASK = re.compile(
    r"(?P<who>[A-Z]\w+) (?:to|will|should|shall|must|has to|agreed to|promised to) "
    r"(?P<what>[^.;\n]+?)(?: (?:by|before|until|on) (?P<due>[A-Z0-9][\w-]*(?: \w+)?|tomorrow"
    r"|next \w+|the end of \w+))?(?=[.;\n]|$)"
)


def actions(text: str) -> list[dict[str, str]]:
    """Who has to do what until when, as a text has it; nothing that it says is acted on."""
    return [
        {"owner": m["who"], "action": m["what"].strip(), "due": m["due"] or "open"}
        for m in TASK.finditer(text)
        if m["who"] not in {"We", "It", "This", "They", "That", "You", "Please"}
    ]


def _short(author: str) -> tuple[str, str]:
    if "," in author:
        last, _, first = author.partition(",")
    else:
        names = author.split()
        cut = len(names) - 1
        while cut > 1 and names[cut - 1].lower() in {"le", "la", "de", "van", "von", "der", "di"}:
            cut -= 1
        first, last = " ".join(names[:cut]), " ".join(names[cut:])
    return last.strip(), first.strip()


CITED = re.compile(
    r"(?P<author>[^\"\u201c]+?)[,:]?\s+[\"\u201c](?P<title>[^\"\u201d]+)[\"\u201d]"
    r"(?P<rest>.*)", re.DOTALL,
)  # fmt: skip


def cite(text: str) -> str:
    style = re.search(r"\b(APA|MLA|Chicago)\b", text, re.IGNORECASE)
    plain = re.sub(r"(?i)\b(?:in|as|using|cite|format|style|please)\b|\b(?:apa|mla|chicago)"
                   r"\b(?: style)?:?", " ", text)  # fmt: skip
    made = CITED.search(plain.strip(" :,"))
    year = re.search(r"\b(1[5-9]\d\d|20\d\d)\b", made["rest"]) if made else None
    if not made or not year:
        return ('I need author, title in quotation marks, publisher and year, such as: '
                'Ursula Le Guin, "The Dispossessed", Harper, 1974, APA')  # fmt: skip
    last, first = _short(made["author"].strip(" ,:\n"))
    house = made["rest"].replace(year[0], "").strip(" ,.()")
    house = re.sub(r"\s+,", ",", house)
    title, wanted = made["title"].strip(" ,."), (style[0] if style else "APA").upper()
    if wanted == "APA":
        letters = " ".join(f"{name[0]}." for name in first.split())
        return f"{last}, {letters} ({year[0]}). {title}. {house}.".replace(". .", ".")
    if wanted == "MLA":
        return f"{last}, {first}. {title}. {house}, {year[0]}."
    return f"{last}, {first}. {title}. {house}, {year[0]}. (Chicago, bibliography)"


def igpay(word: str) -> str:
    """One word of Pig Latin."""
    low = word.lower()
    if low[0] in "aeiou":
        made = low + "way"
    else:
        cut = re.match(r"(?:[^aeiouy]*qu|y?[^aeiouy]*)", low)
        head = cut[0] if cut else ""
        made = low[len(head) :] + head + "ay"
    return made.capitalize() if word[0].isupper() else made


def pig_latin(text: str) -> str:
    quoted = re.search(r"(?<!\w)[\"'\u201c\u2018](.+)[\"'\u201d\u2019](?!\w)", text, re.DOTALL)
    after = re.search(r":\s*(.+)", text, re.DOTALL)
    said = quoted[1] if quoted else after[1] if after else text
    return re.sub(r"[A-Za-z]+(?:'[a-z]+)?", lambda m: igpay(m[0]), said)


# --- German: whose blood to whom ---------------------------------------------------------------

GRUPPE = re.compile(
    r"(?<![0-9A-Za-z])(AB|A|B|0|O|Null)\s*(?:Rh(?:esus)?[- ]?)?(\+|-|\u2212|positiv|negativ)",
    re.IGNORECASE,
)  # fmt: skip
ALLE = [group + sign for group in ("0", "A", "B", "AB") for sign in "-+"]


def passt(donor: str, to: str) -> bool:
    """Whether red cells of one may go to the other."""
    antigens = set(donor[:-1].replace("0", ""))
    return antigens <= set(to[:-1]) and not (donor[-1] == "+" and to[-1] == "-")


def blut(text: str) -> str:
    found = [
        ("0" if g.upper() in {"O", "0", "NULL"} else g.upper())
        + ("+" if s.lower() in {"+", "positiv"} else "-")
        for g, s in GRUPPE.findall(text)
    ]
    if not found:
        return "Bitte nennen Sie eine oder zwei Blutgruppen mit Rhesusfaktor, z. B. A+ oder 0-."
    if len(found) > 1:
        geber, nehmer = found[:2]
        low, first, second = text.lower(), *list(GRUPPE.finditer(text))[:2]
        takes = re.search(r"empf[äa]ng|bekomm|erh[aä]lt", low) and "spende" not in low
        if takes or re.search(r"\bvon\b", low[first.end() : second.start()]):
            geber, nehmer = nehmer, geber
        ja = passt(geber, nehmer)
        return f"{'Ja' if ja else 'Nein'}: {geber} kann {nehmer} {'' if ja else 'nicht '}spenden."
    gut = [g for g in ALLE if passt(found[0], g)]
    von = [g for g in ALLE if passt(g, found[0])]
    return f"{found[0]} spendet an {', '.join(gut)} und empfängt von {', '.join(von)}."


# --- French plurals ----------------------------------------------------------------------------

SEULS = {
    "œil": "yeux", "oeil": "yeux", "ciel": "cieux", "monsieur": "messieurs", "madame": "mesdames",
    "mademoiselle": "mesdemoiselles", "bonhomme": "bonshommes", "aïeul": "aïeux",
}  # fmt: skip
EN_S = {"bal", "carnaval", "chacal", "festival", "récital", "régal", "bleu", "pneu",
        "landau", "sarrau", "naval", "fatal", "final"}  # fmt: skip
OU_X = {"bijou", "caillou", "chou", "genou", "hibou", "joujou", "pou"}
AIL_AUX = {"bail", "corail", "émail", "soupirail", "travail", "vantail", "vitrail"}


def pluriel(word: str) -> str:
    """The plural of one French noun."""
    if word in SEULS:
        return SEULS[word]
    if word[-1] in "sxz":
        return word
    if word in AIL_AUX:
        return word[:-3] + "aux"
    if word.endswith("al") and word not in EN_S:
        return word[:-2] + "aux"
    x = word in OU_X or (word.endswith(("eau", "au", "eu", "œu")) and word not in EN_S)
    return word + ("x" if x else "s")


PHRASE = (
    "le la les un une des du de au pluriel pluriels singulier quels quel sont quelle est et pour"
    " avec dis dire ce ces mettre mettez mets mot mots s'il vous te plaît comment dit-on donne ou a"
    " je veux nom noms à en ecris écris que devient deviennent moi bonjour merci français donnez"
    " peux-tu pouvez-vous"
)
VIDES = set(PHRASE.split())


def pluriels(text: str) -> str:
    marked = re.findall(r"[\"\u00ab\u201c']\s*([^\W\d_]+)\s*[\"\u00bb\u201d']", text)
    plain = re.sub(r"\b[ldLD][\u2019'](?=\w)", " ", text).lower()
    words = marked or [
        w for w in re.findall(r"[^\W\d_]+(?:[-'][^\W\d_]+)*", plain) if w not in VIDES
    ]
    if not words:
        return "Donnez-moi un ou plusieurs noms au singulier, je les mets au pluriel."
    return "\n".join(f"{w.lower()} → {pluriel(w.lower())}" for w in words[:20])


# --- Korean years ------------------------------------------------------------------------------

TTI = ["쥐", "소", "호랑이", "토끼", "용", "뱀", "말", "양",
       "원숭이", "닭", "개", "돼지"]  # fmt: skip
GAN = "갑을병정무기경신임계"
JI = "자축인묘진사오미신유술해"


def tti(text: str) -> str:
    years = [int(y) for y in re.findall(r"(?<!\d)(\d{3,4})(?!\d)", text)]
    if not years:
        return "태어난 해를 네 자리 숫자로 알려 주세요. 예: 1990년"
    return "\n".join(
        f"{y}년은 {GAN[(y - 4) % 10]}{JI[(y - 4) % 12]}년, {TTI[(y - 4) % 12]}띠입니다."
        for y in years
    )
