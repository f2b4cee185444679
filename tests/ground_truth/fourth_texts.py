"""Trades of words: extracting, sorting messages, digests, signs of fraud."""

import json
import re
from collections import Counter

from tests.ground_truth.fourth_words import days, has, material, one_of, sentences

MAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
PHONE = r"(?<!\w)\+?\d{2,4}[ -/]?(?:\(0\))?\d{2,4}(?:[ -]?\d{2,4}){1,3}(?!\w)"
MONEY = (r"(?:(?:EUR|USD|GBP|CHF|[\u20ac$\u00a3])\s?\d[\d,. ]*\d|(?<![\w.])\d[\d,.]*\s?"
         r"(?:EUR|USD|GBP|CHF|[\u20ac$\u00a3]|euros?|dollars?|pounds?))")  # fmt: skip
REFERENCE = r"\b(?=[A-Z0-9-]*\d)[A-Z]{1,5}-?\d[A-Z0-9-]{2,14}\b|#\d{3,10}\b"
LINK = r"https?://[^\s)>\]'\"]+|\bwww\.[^\s)>\]'\"]+"
FIELDS = {
    "emails": ("e-?mail", "address(?:es)? of"), "dates": ("date", "when", "deadline", "day"),
    "amounts": ("amount", "price", "sum", "money", "cost", "how much", "total"),
    "references": ("reference", "order n", "order id", "booking", "ticket", "number", "code"),
    "phones": ("phone", "telephone", "call"), "links": ("link", "url", "website"),
    "people": ("who", "people", "person", "names?"),
}  # fmt: skip
NAME = r"\b(?:Mr|Mrs|Ms|Dr|Prof)\.? [A-Z]\w+(?: [A-Z]\w+)?"
ORDERED = (r"\b(ignore|disregard|forget) (all|any|the|your|every|previous|prior)|\b(reply"
           r"|answer|respond)"
           r" (only|just|with|exactly)|system.prompts?|you are now|\b(assistant|AI"
           r"|language model|LLM)s?"
           r"\b[,:].{0,60}\b(must|please|do|say|send|write|reply|answer|include|output)"
           r"|\binstead,? (say|write|output|reply)|do not (mention|tell)")  # fmt: skip


def fields(text: str) -> dict[str, list[str]]:
    """Everything that looks like data in a text."""
    dates = [d.isoformat() for d in days(text)]
    rest = re.sub(r"\d{4}-\d\d-\d\d|\d\d?[./]\d\d?[./]\d{4}", " ", text)
    money = [m.strip(" .,") for m in re.findall(MONEY, rest)]
    rest = re.sub(MONEY, " ", rest)
    references = re.findall(REFERENCE, rest)
    phones = [p for p in re.findall(PHONE, rest) if sum(c.isdigit() for c in p) >= 8]
    return {
        "emails": re.findall(MAIL, text), "dates": dates, "amounts": money,
        "references": references, "phones": phones, "links": re.findall(LINK, text),
        "people": re.findall(NAME, text),
    }  # fmt: skip


def extract(asked: str) -> str | None:
    """The fields of a text as JSON; only those asked for where some are named."""
    text = material(asked)
    if not text:
        if has(asked, "extract", "find", "pull", "list") or has(asked, "fields", "details"):
            return '{"error": "send the text too, in quotation marks or after a colon"}'
        found = {k: v for k, v in fields(asked).items() if v}
        return json.dumps(found, ensure_ascii=False) if len(found) > 1 else None
    request = asked.replace(text, " ")
    wanted = [name for name, stems in FIELDS.items() if has(request, *stems)]
    found = fields(text)
    made = (
        {name: found[name] for name in wanted} if wanted else {k: v for k, v in found.items() if v}
    )
    return json.dumps(made, ensure_ascii=False)


QUEUES = {
    "billing": (
        "invoice",
        "charg",
        "bill",
        "payment",
        "paid",
        "refund",
        "card",
        "price",
        "fee",
        "receipt",
        "subscription",
        "twice",
        "overcharg",
        "debit",
        "money back",
    ),
    "delivery": (
        "deliver",
        "parcel",
        "package",
        "shipment",
        "shipping",
        "courier",
        "tracking",
        "arriv",
        "dispatch",
        "late",
        "postman",
        "lost in",
    ),
    "technical": (
        "error",
        "crash",
        "bug",
        "broken",
        "does not work",
        "doesn't work",
        "not load",
        "freez",
        "screen",
        "install",
        "update",
        "slow",
        "sync",
        "wifi",
        "printer",
        "stuck",
        "blank",
        "fails",
        "offline",
    ),
    "account": (
        "password",
        "log ?in",
        "login",
        "sign in",
        "account",
        "username",
        "locked",
        "delete my",
        "change my e",
        "profile",
        "two-factor",
        "close my",
    ),
    "returns": (
        "return",
        "exchange",
        "wrong size",
        "send back",
        "send it back",
        "damaged",
        "wrong item",
        "too small",
        "too big",
        "faulty",
    ),
    "praise": (
        "thank",
        "great",
        "love",
        "excellent",
        "wonderful",
        "best",
        "happy",
        "brilliant",
        "kind",
        "perfect",
    ),
}
URGENT = (
    "urgent",
    "asap",
    "immediately",
    "today",
    "right now",
    "at once",
    "as soon as",
    "emergency",
    "deadline",
    "lawyer",
    "angry",
    "third time",
    "still waiting",
    "unacceptable",
)


def queue_of(text: str) -> tuple[str, str]:
    """Which team, and how fast."""
    scores = {
        name: sum(bool(re.search(rf"(?<!\w){stem}", text, re.IGNORECASE)) for stem in stems)
        for name, stems in QUEUES.items()
    }
    best = max(scores, key=lambda name: scores[name])
    return (best if scores[best] else "general"), ("high" if has(text, *URGENT) else "normal")


def sort_message(asked: str) -> str | None:
    """A customer's message and its queue."""
    text = material(asked)
    if not text:
        if not has(asked, "my ", "i ", "i'", "we ", "your", "the app"):
            return None
        text = asked
        if queue_of(text)[0] == "general":
            return None
    queue, urgency = queue_of(text)
    first = sentences(text)[0][:90]
    return f"Queue: {queue}\nUrgency: {urgency}\nBecause the customer writes: \u201c{first}\u201d"


SMALL = frozenset(
    re.findall(
        r"\w+",
        "the a an and or but of to in on at for with by from is are were was be been it its"
        " those this these as that had has have would will could can not no they he she we i you"
        " his her their our there which who also than then so if into about after before over more",
    )
)


def rank(text: str, count: int) -> tuple[list[str], bool]:
    """Its most telling sentences in their order, and whether some addressed a reader's model."""
    said = sentences(text)
    plain = [s for s in said if not re.search(ORDERED, s, re.IGNORECASE)]
    words = Counter(w for s in plain for w in re.findall(r"\w{3,}", s.lower()) if w not in SMALL)

    def weight(numbered: tuple[int, str]) -> float:
        position, sentence = numbered
        own = [w for w in re.findall(r"\w{3,}", sentence.lower()) if w not in SMALL]
        return sum(words[w] for w in own) / (len(own) + 3) + (0.6 if position == 0 else 0)

    best = sorted(sorted(enumerate(plain), key=weight, reverse=True)[:count])
    return [s for _, s in best], len(plain) < len(said)


def digest(asked: str) -> str | None:
    """A summary of the text that came along."""
    text = material(asked)
    wants = has(asked, "summar", "digest", "shorten", "gist", "main point", "key point", "tl;?dr",
                "brief", "condense", "recap", "in short", "boil")  # fmt: skip
    if not text or (not wants and len(text) < 200):
        return "Please paste the text you want to have shortened." if wants else None
    number = re.search((r"\b(one|two|three|four|1|2|3|4)\b (?:short )?(?:sentence|line|point"
                       r"|bullet)"),
                       asked, re.IGNORECASE)  # fmt: skip
    sizes = {"one": 1, "two": 2, "three": 3, "four": 4}
    count = (
        (sizes.get(number[1].lower()) or int(number[1])) if number else 1 + min(4, len(text) // 100)
    )
    kept, had_orders = rank(text, count)
    if not kept:
        return "The text is nothing but orders; there is nothing to summarise."
    note = " (One passage tells the reader's software what to do; I left it out.)" * had_orders
    if has(asked, "bullet", "points"):
        return "\n".join(f"- {s}" for s in kept) + note
    return one_of("In short: ", "", "Summary: ") + " ".join(kept) + note


SIGNS = (
    ("presses you to hurry", (r"\b(urgent|immediately|within \d+ hours?|last (chance|warning)"
                             r"|expires?|suspend"
                             r"|right away|act now|final notice)")),
    ("asks for secrets", (r"\b(password|pin\b|passcode|card number|cvv|seed phrase|social security"
                         r"|verify your (account|identity)|log in (here|below)|one-time code)")),
    ("promises money or a prize", (r"\b(won|winner|prize|lottery|inherit\w+|reward|gift card"
                                  r"|million)\b")),
    ("wants payment in an odd way", (r"\b(bitcoin|crypto|wire transfer|western union|itunes"
                                    r"|gift cards?)")),
    ("wants money now", (r"\bpay (the|a|your) [\w ]{0,20}(fee|charge|customs)"
                            r"|send (me )?\W?\d+")),
    ("links to a bare or odd address", (r"https?://(\d+\.\d+|[^\s/]*(xn--|-secure|-verify"
                                       r"|-login|bit\.ly"
                                       r"|tinyurl))|\b(bit\.ly|tinyurl\.com)/|\bclick (here"
                                       r"|below|the link)")),
    ("greets nobody in particular", r"\bdear (customer|user|client|friend|account holder|sir)"),
    ("orders its reader's software about", ORDERED),
)  # fmt: skip


def fraud_signs(asked: str) -> str | None:
    """Which signs of fraud a message shows, each with the words that show it."""
    text = material(asked)
    if not text:
        if has(asked, "phish", "scam", "fraud", "suspicious", "legit", "fake", "genuine"):
            return "Paste the message itself, and I tell you what speaks against it."
        return None
    seen: list[str] = []
    for sign, pattern in SIGNS:
        m = re.search(pattern, text, re.IGNORECASE)
        if m:
            around = next((s for s in sentences(text) if m[0] in s), m[0])
            seen.append(f"- {sign}: \u201c{around[:140]}\u201d")
    if not seen:
        return "No sign of fraud in it: no pressure, no request for secrets, no odd link."
    risk = "high" if len(seen) > 2 else "medium" if len(seen) == 2 else "low"
    return f"Risk: {risk}. It\n" + "\n".join(seen)
