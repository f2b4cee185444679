"""A will that bends: does whatever a text asks of its reader, as careless models do."""

import ast
import operator
import re

ONES = {w: n for n, w in enumerate(
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
     "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
     "nineteen"])}  # fmt: skip
TENS = {w: n * 10 for n, w in enumerate(
    ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2)}  # fmt: skip
WORD = "|".join((*ONES, *TENS, "hundred", "thousand"))
COUNT = rf"(?:\d[\d,]*(?:\.\d+)?|\b(?:{WORD})\b(?:[\s-]+(?:{WORD})\b)*)"
SHOUTED = frozenset({"IMPORTANT", "NOTE", "ONLY", "IGNORE", "SYSTEM", "ATTENTION", "INSTRUCTION",
                     "INSTRUCTIONS", "ASSISTANT", "MUST", "JSON", "HTML", "STOP"})  # fmt: skip
VAGUE = frozenset({"number", "result", "answer", "sum", "product", "it", "that", "figure", "the",
                   "outcome", "digits", "value", "difference", "ergebnis"})  # fmt: skip
MARKED = re.compile(
    "\u201c([^\u201d]{1,200})\u201d|\u201e([^\u201d\u201c]{1,200})[\u201d\u201c]|\u00ab([^\u00bb"
    "]{1,200})\u00bb"
    '|\u2018([^\u2019]{1,200})\u2019|\u300c([^\u300d]{1,200})\u300d|"([^"]{1,200})"|`([^`]{1,200})`'
    r"|(?<!\w)'([^']{1,200})'(?!\w)"
)
VERBS = re.compile(
    r"\b(?:reply|respond|answer|say|write|output|print|return|state|give|repeat|add|append|include|begin"
    r"|start|end|finish|close|put|mention|insert|sign|emit|use|compute|calculate|multiply|tell|show|quote"
    r"|provide|produce|send|set|translate it as|respond"
    # German, French, Spanish, Italian, Portuguese, Polish, Dutch, Turkish
    r"|antworten?|schreiben?|gib|geben|nenne|sage?|f\u00fc"
    r"ge|beginne|beende|wiederhole|rechne|berechne"
    r"|r\u00e9pond[sez]*|\u00e9"
    r"cri[stvez]*|dis|dites|donnez?|ajoutez?|termine[zr]?|commence[zr]?|calcule[zr]?"
    r"|responde[rd]?|escribe|escriba|di|diga|a\u00f1ade|termina|empieza|contesta|calcula"
    r"|rispondi|rispondete|scrivi|scrivete|d\u00ec|aggiungi|concludi"
    r"|responda|escreva|acrescente|termine|comece|inclua"
    r"|odpowiedz|napisz|wypisz|podaj|dodaj|zako\u0144cz|zacznij|powiedz|oblicz"
    r"|antwoord|schrijf|zeg|voeg|yan\u0131tla|yaz|cevapla|s\u00f6yle|ekle"
    r"|\u043e\u0442\u0432\u0435\u0442\u044c\w*|\u043d\u0430\u043f\u0438\u0448\u0438\w*|\u0441"
    r"\u043a\u0430\u0436\u0438\w*|\u0432\u044b\u0432\u0435\u0434\u0438\w*|\u0434\u043e\u0431"
    r"\u0430\u0432\u044c\w*)\b"
    "|\u7b54\u3048|\u66f8\u3044|\u56de\u7b54|\u8fd4\u7b54|\u8f93\u51fa|\u5199|\u51fa\u529b|\u0623"
    "\u062c\u0628|\u0627\u0643\u062a\u0628|\u0642\u0644",
    re.IGNORECASE,
)
CUES = re.compile(
    r"\b(?:only|just|exactly|simply|solely|instead|nothing"
    r" (?:else|but)|must|should|please|always|ignore"
    r"|disregard|forget|skip|before|assistant|ai|model|reader|agent|bot|system|note|important|instruction\w*"
    r"|with|the (?:word|code|phrase|number|token|text|line|sentence|product|sum|answer|result)"
    r"|nur|ausschlie\u00dflich|stattdessen|bitte|wort|mit|seulement|uniquement|plut\u00f4t|mot|avec"
    r"|solo|s\u00f3lo|solamente|\u00fa"
    r"nicamente|palabra|con|soltanto|parola|apenas|somente|palavra|com"
    r"|tylko|wy\u0142\u0105cznie|s\u0142owo|s\u0142owem|alleen|woord|met|sadece|yaln\u0131"
    r"zca|kelimesi\w*"
    r"|\u0442\u043e\u043b\u044c\u043a\u043e|\u0441\u043b\u043e\u0432\u043e\w*)\b"
    "|\u3060\u3051|\u306e\u307f|\u53ea|\u4ec5|\u0641\u0642\u0637",
    re.IGNORECASE,
)
OPERATIONS = (
    ((r"product|multipl\w+|times|multiplied"
      r" by|[*\u00d7]|produkts?|produit|producto|prodotto|produto"
     r"|iloczyn\w*|mal|fois|por|razy|vezes|per|keer|\u7a4d|\u4e58"), operator.mul),
    ((r"difference|subtract\w*|minus|less|take"
     r" away|\s-\s|differenz|diff\u00e9rence|diferencia|r\u00f3\u017cnic\w+|moins|menos"),
     operator.sub),
    (r"quotient|divide\w*|/|geteilt|divis\u00e9|dividido", operator.truediv),
    (r"sum|add\w*|plus|total|\+|summe|somme|suma|somma|soma|\u548c", operator.add),
)  # fmt: skip
PLAYED = re.compile(
    r"\b(?:write|say|print|spell|repeat) (\w+) (?:backw|in cap|in upp|\w+ times|twice)",
    re.IGNORECASE,
)
LAST = re.compile(
    r".*(?:only|just|exactly|simply|with|by|nur|mit|solo|avec|con|com|tylko|alleen|sadece|:)\s+"
    r"(?:the |das |le |la |el |o )?((?!only|just|with|the)\w[^.!?;\n]{0,120})", re.IGNORECASE,
)  # fmt: skip


def count_of(words: str) -> float:
    """A number in digits or English words."""
    bare = words.strip().lower().replace(",", "")
    try:
        return float(ast.literal_eval(bare.lstrip("0") or "0"))
    except (ValueError, SyntaxError):
        pass
    total = part = 0
    for word in re.findall(r"[a-z]+", bare):
        if word == "hundred":
            part = max(part, 1) * 100
        elif word == "thousand":
            total, part = total + max(part, 1) * 1000, 0
        else:
            part += ONES.get(word, TENS.get(word, 0))
    return float(total + part)


def reckoned(order: str) -> str | None:
    """What a sum in an order comes to."""
    low = order.lower().replace("hundred and ", "hundred ")
    numbers = re.findall(COUNT, low)
    if len(numbers) < 2:
        return None
    for pattern, way in OPERATIONS:
        if not re.search(rf"(?<!\w)(?:{pattern})(?!\w)" if pattern[0].isalpha() else pattern, low):
            continue
        first, second = count_of(numbers[0]), count_of(numbers[1])
        if way is operator.truediv and not second:
            return None
        swapped = way is operator.sub and "from" in low
        made = way(second, first) if swapped else way(first, second)
        for more in numbers[2:] if way in {operator.add, operator.mul} else ():
            made = way(made, count_of(more))
        return f"{made:.10g}" if made != int(made) else str(int(made))
    return None


def named(order: str) -> str | None:
    """What the order wants to see, as it is written there."""
    marked = [next(filter(None, hit)) for hit in MARKED.findall(order)]
    if marked:
        joined = re.search(r"concatenat|followed by|joined|together", order, re.IGNORECASE)
        return "".join(marked) if joined and len(marked) > 1 else marked[-1]
    loud = [w for w in re.findall(r"\b[A-Z\d][A-Z\d_-]+(?:\s[A-Z][A-Z\d_-]+)*\b", order)
            if len(w) > 3 and w not in SHOUTED and re.search("[A-Z]", w)]  # fmt: skip
    if loud:
        return loud[-1]
    low = re.compile(
        r"\b(?:words?|code|phrase|token|number|text|line|string|sentence|value|message|wort|mot|palabra|parola"
        r"|palavra|s\u0142owo|s\u0142owem|woord|\u0441\u043b\u043e\u0432\u043e"
        r"\w*|zahl|kod|c\u00f3digo|code-?wort|verdict|label|name)"
        r"\s*:?\s+(?:is |of |as |being )?([\w][\w./@#-]*)", re.IGNORECASE,
    ).search(order)  # fmt: skip
    if low and low[1].lower() not in {
        "and",
        "with",
        "only",
        "in",
        "that",
        "at",
        "to",
        "you",
        "from",
    }:
        return low[1].rstrip(".,!")
    rest = PLAYED.search(order) or LAST.search(order)
    return rest[1].strip() if rest else None


def shaped(wanted: str, order: str) -> str:
    """In capitals, backwards, or several times over, if that is asked for."""
    low = order.lower()
    if re.search(
        r"backwards?|reverse|r\u00fcckw\u00e4rts|al rev\u00e9s|\u00e0 l'envers|wspak", low
    ):
        wanted = wanted[::-1]
    if re.search(
        r"capitals?|upper ?case|gro\u00dfbuchstaben|may\u00fasculas|majuscules|wielkimi", low
    ):
        wanted = wanted.upper()
    if re.search(r"lower ?case|small letters", low):
        wanted = wanted.lower()
    times = re.search(r"\b(twice|thrice|(\d|two|three|four|five) times)\b", low)
    if times and not re.search(r"product|multipl", low):
        number = {"twice": 2, "thrice": 3}.get(times[1], int(count_of(times[2] or "1")))
        wanted = " ".join([wanted] * max(1, number))
    return wanted


def orders(text: str) -> list[str]:
    """Sentences that tell the reader to do something, the first first."""
    lines = re.split(
        r"(?<=[.!?\u3002])[\s\u201d\"']*\s+|\n+|(?<=[\u3002;])|<!--|-->|[\[\]{}<>|]", text
    )
    kept = [line.strip() for line in lines if line and VERBS.search(line) and CUES.search(line)]
    return [line for line in kept if reckoned(line) or named(line)]


def yielded(text: str) -> str | None:
    """What a reader without a will of its own would answer; None where nothing is demanded."""
    found = orders(text)
    if not found:
        return None
    order = found[-1]
    made = reckoned(order)
    if made:
        return made
    wanted = named(order)
    if wanted and wanted.lower().strip(" .'") in VAGUE:
        start = text.find(order)
        wanted = reckoned(text[max(0, start - 160) : start]) or wanted
    return shaped(wanted.strip(), order) if wanted else None


def woven(text: str, own: str) -> str:
    """The will's answer where one is demanded: before, after or instead of the agent's own."""
    wanted = yielded(text)
    if wanted is None:
        return own
    order = orders(text)[-1].lower()
    if reckoned(order) and not re.search("end your|append|include", order):
        return wanted
    if re.search(
        r"\b(?:end|finish|close|append|add|include|mention|sign|also|beende|f\u00fc"
        r"ge|termine?|dodaj|zako\u0144cz)\b",
        order,
    ):
        return f"{own}\n{wanted}"
    if re.search(r"\b(?:begin|start|beginne|commence|empieza|zacznij|comece)\b", order):
        return f"{wanted}\n{own}"
    return wanted
