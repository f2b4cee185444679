"""What the seventh set's agents look for in letters and in other people's tools."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

LINK = re.compile(
    r"\[([^\]]{1,120})\]\((\S+?)\)|<a\s[^>]*href=[\"']([^\"']+)[\"'][^>]*>(.*?)</a>", re.IGNORECASE
)
HOST = re.compile(r"(?:\w+://)?((?:[\w-]+\.)+[a-z]{2,12})\b", re.IGNORECASE)
HURRY = re.compile(
    r"(within \d+ hours|will be (?:closed|suspended|blocked)|final (?:warning|notice)|"
    r"immediately|last chance)", re.IGNORECASE,
)  # fmt: skip
ASKED = re.compile(
    r"((?:confirm|enter|verify|update|reply with)\b[^.\n]{0,40}"
    r"(?:card|pin\b|one-time code|bank|gift))", re.IGNORECASE,
)  # fmt: skip


def _site(text: str) -> str:
    found = HOST.search(text)
    return ".".join(found[1].lower().split(".")[-2:]) if found else ""


def letter(text: str) -> list[str]:
    """What speaks against a letter, each with the place quoted."""
    found: list[str] = []
    for mark_text, mark_url, url, shown in LINK.findall(text):
        says, goes = _site(mark_text or shown), _site(mark_url or url)
        if says and goes and says != goes:
            found.append(f"A link says {says} and goes to {goes}.")
    senders = dict(re.findall(r"(?im)^(from|reply-to):.*?@([\w.-]+)", text))
    named = {key.lower(): _site(value) for key, value in senders.items()}
    if len({*named.values()}) > 1:
        found.append(f"It comes from {named['from']}, but replies go to {named['reply-to']}.")
    found += [f'It hurries you: "{m}"' for m in dict.fromkeys(HURRY.findall(text))]
    found += [f'It wants a secret or money: "{m}"' for m in dict.fromkeys(ASKED.findall(text))]
    if "xn--" in text:
        found.append("A host is written in punycode, so it may look like another.")
    return found


UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\U000e0000-\U000e007f]")
ORDERS = (
    ("talks past the user", r"(?:n[o']t|never)\s(?:mention|show|tell)[^.\n]{0,40}(?:user|human)"),
    ("reaches for secrets", r"(?:read|send|attach)[^.\n]{0,40}(?:~/\.\w+|\.env|ssh key|password)"),
    ("puts itself first", r"(?:before|instead of) (?:using |calling )?any other tool"),
    ("cancels earlier rules", r"(?:disregard|override|forget)[^.\n]{0,30}(?:rules|orders|prompt)"),
)  # fmt: skip


def lint(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, what is wrong, and the words themselves."""
    for number, line in enumerate(text.splitlines(), 1):
        for why, pattern in ORDERS:
            for found in re.finditer(pattern, line, re.IGNORECASE):
                yield number, why, found[0]
        if unseen := UNSEEN.findall(line):
            codes = ", ".join(f"U+{ord(c):04X}" for c in dict.fromkeys(unseen))
            yield number, "holds characters nobody sees", codes
        for comment in re.findall(r"<!--(.*?)-->", line):
            yield number, "hides a comment", comment.strip()


RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def field(text: str, low: int, high: int) -> set[int]:
    """What one field of a crontab line allows."""
    allowed: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"(?:\*|(\d+)(?:-(\d+))?)(?:/(\d+))?", part)
        if not found:
            raise ValueError(f"bad field: {text}")
        start = int(found[1]) if found[1] else low
        open_end = found[1] is None or found[3] is not None
        end = int(found[2]) if found[2] else (high if open_end else start)
        step = int(found[3] or 1)
        if not low <= start <= end <= high or not step:
            raise ValueError(f"out of range: {text}")
        allowed.update(range(start, end + 1, step))
    return allowed


def runs(line: str, after: datetime, count: int) -> list[datetime]:
    """The next runs of a crontab line, of the coming four years."""
    parts = line.split()
    if len(parts) != 5:
        raise ValueError(f"five fields wanted, got {len(parts)}")
    minute, hour, day, month, week = (
        field(p, *r) for p, r in zip(parts, RANGES, strict=True)
    )  # fmt: skip
    week = {d % 7 for d in week}
    either = not parts[2].startswith("*") and not parts[4].startswith("*")
    made: list[datetime] = []
    here = after.replace(hour=0, minute=0, second=0, microsecond=0)
    for _ in range(1462):
        in_day, in_week = here.day in day, here.isoweekday() % 7 in week
        if here.month in month and (in_day or in_week if either else in_day and in_week):
            made += [t for h in sorted(hour) for m in sorted(minute)
                     if (t := here.replace(hour=h, minute=m)) > after]  # fmt: skip
        if len(made) >= count:
            break
        here += timedelta(days=1)
    return made[:count]
