"""Trades in other languages: German days, French VAT, Spanish shoes, Japanese tax, Russian text."""
# ruff: noqa: RUF001 - Cyrillic and full-width signs are meant

import datetime as dt
import re

from tests.ground_truth.fourth_words import NUMBER, has, material, one_of, short, value

MONATE = re.findall(
    r"\w+",
    "januar februar märz april mai juni juli august september oktober november dezember",
)
TAGE = ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag")
ZAHLEN = {w: str(n) for n, w in enumerate(
    ("null", "eine?[nrm]?", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun",
     "zehn", "elf", "zwölf"))}  # fmt: skip


def tage_im(text: str) -> list[dt.date]:
    """Die Daten im Text."""
    namen = "|".join(MONATE)
    funde = [(m.start(), int(m[3]), int(m[2]), int(m[1]))
             for m in re.finditer(r"\b(\d\d?)\.\s?(\d\d?)\.\s?(\d{4})", text)]  # fmt: skip
    funde += [
        (m.start(), int(m[3]), MONATE.index(m[2].lower()) + 1, int(m[1]))
        for m in re.finditer(rf"\b(\d\d?)\.\s?({namen})\s(\d{{4}})", text, re.IGNORECASE)
    ]
    funde += [(m.start(), int(m[1]), int(m[2]), int(m[3]))
              for m in re.finditer(r"\b(\d{4})-(\d\d)-(\d\d)\b", text)]  # fmt: skip
    gemacht: list[dt.date] = []
    for _, jahr, monat, tag in sorted(funde):
        try:
            gemacht.append(dt.date(jahr, monat, tag))
        except ValueError:
            continue
    return gemacht


def deutsch(tag: dt.date) -> str:
    return f"{TAGE[tag.weekday()]}, {tag.day}. {MONATE[tag.month - 1].capitalize()} {tag.year}"


def _verschoben(text: str, tag: dt.date) -> dt.date | None:
    for wort, zahl in ZAHLEN.items():
        text = re.sub(rf"(?i)\b{wort}\b(?= (?:tag|woche|monat|jahr))", zahl, text)
    m = re.search(r"(\d+)\s*(werktag|arbeitstag|tag|woche|monat|jahr)\w*", text, re.IGNORECASE)
    if not m:
        return None
    zahl, wort = int(m[1]), m[2].lower()
    if has(text, "vor (?!allem)", "zuvor", "früher", "minus", "zurück"):
        zahl = -zahl
    if "rbeits" in wort or "werk" in wort:
        schritt = 1 if zahl > 0 else -1
        for _ in range(min(abs(zahl), 1000)):
            tag += dt.timedelta(days=schritt)
            while tag.weekday() > 4:
                tag += dt.timedelta(days=schritt)
        return tag
    if wort in {"tag", "woche"}:
        return tag + dt.timedelta(days=zahl * (7 if wort == "woche" else 1))
    monate = tag.year * 12 + tag.month - 1 + zahl * (12 if wort == "jahr" else 1)
    erster = dt.date(monate // 12, monate % 12 + 1, 1)
    folgender = dt.date((monate + 1) // 12, (monate + 1) % 12 + 1, 1)
    return erster + dt.timedelta(days=min(tag.day, (folgender - erster).days) - 1)


def rechne_tage(frage: str) -> str | None:
    """Wochentage, Abstände, Fristen."""
    tage = tage_im(frage)
    if not tage:
        if has(frage, "wochentag", "frist", "wie viele tage", "kalenderwoche", "datum"):
            return "Für welches Datum? Am besten so: 24.12.2026."
        return None
    if len(tage) > 1:
        lang = abs((tage[1] - tage[0]).days)
        wochen = f" ({lang // 7} Wochen und {lang % 7} Tage)" if lang > 13 else ""
        return one_of("Das sind", "Dazwischen liegen") + f" {lang} Tage{wochen}."
    return _ein_tag(frage, tage[0])


def _ein_tag(frage: str, tag: dt.date) -> str:
    try:
        neu = _verschoben(frage, tag)
    except (ValueError, OverflowError):
        return "So weit reicht mein Kalender nicht."
    if neu:
        return one_of("Das ist ", "Dann ist ") + deutsch(neu) + f" ({neu.strftime('%d.%m.%Y')})."
    if has(frage, "kalenderwoche", r"kw\b", r"woche\b"):
        return f"{tag.strftime('%d.%m.%Y')} liegt in Kalenderwoche {tag.isocalendar().week}."
    return f"{tag.strftime('%d.%m.%Y')} ist ein {TAGE[tag.weekday()]}."


def tva(demande: str) -> str | None:
    """Du hors taxes au TTC, et retour."""
    if not has(demande, "ttc", "ht", "tva", "hors tax", "toutes tax", "taxe"):
        return None
    texte = re.sub(r"(?<=\d)[ \u202f\u00a0](?=\d{3}\b)", "", demande)
    taux = re.search(rf"{NUMBER}\s*%|(?:taux|tva)(?: de| à)? {NUMBER}", texte, re.IGNORECASE)
    reste = texte.replace(taux[0], " ") if taux else texte
    part = value(taux[1] or taux[2]) if taux else 20.0
    if not taux and has(texte, "livre", "restaurant", "aliment", "réduit"):
        part = 10.0 if has(texte, "restaurant") else 5.5
    somme = re.search(NUMBER, reste)
    if not somme:
        return "Quel montant, et à quel taux (20, 10, 5,5 ou 2,1 %) ?"
    argent = value(somme[1])
    envers = re.search((rf"{NUMBER}\s*(?:€|euros?|eur)?\s*(?:ttc|toutes tax)|(?:ttc|du ttc"
                       rf"|en ht)"),
                       reste, re.IGNORECASE)  # fmt: skip
    vers_ttc = re.search(rf"{NUMBER}\s*(?:€|euros?|eur)?\s*(?:ht|hors)", reste, re.IGNORECASE)
    ht = argent / (1 + part / 100) if envers and not vers_ttc else argent
    ttc = ht * (1 + part / 100)

    def euros(n: float) -> str:
        return f"{n:.2f}".replace(".", ",") + " €"

    return one_of("Voici : ", "", "Bien sûr : ") + (
        f"{euros(ht)} HT + {euros(ttc - ht)} de TVA ({short(part).replace('.', ',')} %)"
        f" = {euros(ttc)} TTC."
    )


def talla(pregunta: str) -> str | None:
    """Tallas de zapato entre EU, US, UK y centímetros."""
    systems = r"(eu|europ\w+|us|uk|eeuu|brit\w+|american\w|ingles\w|cm|cent\w+)\b"
    m = re.search(rf"{NUMBER}\s*(?:de |talla |del? )?{systems}", pregunta, re.IGNORECASE)
    before = re.search(rf"\b{systems}\s*(?:talla |es |del? |:)?{NUMBER}", pregunta, re.IGNORECASE)
    alone = re.search(r"\b(3[4-9]|4\d|5[0-2])(?:[.,]5)?\b", pregunta)
    if alone and not m and not before:
        return talla(pregunta.replace(alone[0], alone[0] + " EU", 1))
    if not m and not before:
        return ("¿Qué talla es, y de qué sistema (EU, US, UK o cm)?"
                if has(pregunta, "talla", "zapat", "número", "calz") else None)  # fmt: skip
    sistema, numero = (m[2], m[1]) if m else (before[1], before[2]) if before else ("", "0")
    s, n = sistema.lower()[:2], value(numero)
    mujer = has(pregunta, "mujer", "dama", "chica", "señora", "femenin")
    eu_off, uk_off, cm_off = (31, 2, 17) if mujer else (33, 1, 18)
    offsets = {
        "eu": -eu_off,
        "uk": uk_off,
        "br": uk_off,
        "in": uk_off,
        "cm": -cm_off,
        "ce": -cm_off,
    }
    us = n if sistema.lower() == "eeuu" else round((n + offsets.get(s, 0)) * 2) / 2
    eu, uk = us + eu_off, us - uk_off
    if not 15 <= eu <= 55:
        return "Esa talla no existe en mis tablas (EU 15 a 55)."
    return (f"{'Mujer' if mujer else 'Hombre'}: EU {short(eu, 1)}, US {short(us, 1)}, UK"
            f" {short(uk, 1)},"
            f" unos {short(us + cm_off, 1)} cm.")  # fmt: skip


def shouhizei(asked: str) -> str | None:
    """税込と税抜."""
    text = asked.translate(str.maketrans("０１２３４５６７８９％，", "0123456789%,"))
    text = re.sub(r"([0-9]),(?=[0-9]{3})", r"\1", text).replace("万", "0000")
    if not re.search(r"税|円|tax", text, re.IGNORECASE):
        return None
    rate = re.search(r"(\d+)\s*(?:%|パーセント)", text)
    percent = (
        int(rate[1])
        if rate
        else 8
        if re.search(r"軽減|食品|飲料|食べ物|新聞|持ち帰り", text)
        else 10
    )
    rest = text.replace(rate[0], " ") if rate else text
    price = re.search(r"\d+", rest)
    if not price:
        return "金額を教えてください。例えば「税抜1,000円」のように。"
    yen = int(price[0])
    if re.search(
        r"税込(?:み)?(?:価格)?(?:で|の|が)?\s*\d|\d+\s*円?(?:\(|（)?税込|税抜.{0,6}(?:は|を|いくら|に)",
        rest,
    ) and not re.search(r"税抜(?:き)?(?:価格)?(?:で|の|が)?\s*\d|\d+\s*円?税抜", rest):
        net = -(-yen * 100 // (100 + percent))
        return f"税抜{net:,}円、消費税{yen - net:,}円です（税率{percent}%）。"
    tax = yen * percent // 100
    return (
        one_of("", "はい、") + f"税込{yen + tax:,}円です（うち消費税{tax:,}円、税率{percent}%）。"
    )


def schitat(asked: str) -> str | None:
    """Слова, буквы, предложения."""
    text = material(asked)
    if not text:
        return (
            "Пришлите текст в кавычках, и я его посчитаю."
            if has(asked, "посч", "сколько")
            else None
        )
    words = re.findall(r"\w+(?:-\w+)*", text)
    letters = sum(c.isalpha() for c in text)
    ends = max(1, len(re.findall(r"[.!?…]+", text)))
    longest = max(words, key=len, default="")
    return (
        f"Слов: {len(words)}; букв: {letters}; предложений: {ends}; самое длинное слово: {longest}."
    )
