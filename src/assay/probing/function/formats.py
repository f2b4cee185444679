"""Values of the formats that documents name, by JSON Schema or in words. Pure data.

Source: JSON Schema Validation 2020-12, section 7.3; RFC 3339.
"""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from assay.common.json import JsonObject

FORMATS: Final[Mapping[str, Sequence[str]]] = {
    "date": ("2024-03-14", "2023-11-05", "2022-07-21", "2021-02-28"),
    "date-time": ("2024-03-14T09:30:00Z", "2023-11-05T18:45:00Z", "2022-07-21T12:00:00Z"),
    "local-date-time": ("2024-03-14T09:30", "2023-11-05T18:45", "2022-07-21T12:15"),
    "time": ("09:30:00", "18:45:00", "12:15:00"),
    "minutes": ("09:30", "18:45", "12:15"),
    "ipv4": ("8.8.8.8", "1.1.1.1", "9.9.9.9"),
}

_NAMED: Final = (
    (re.compile(r"YYYY-MM-DD[T ]HH:MM(?!:)", re.IGNORECASE), "local-date-time"),
    (re.compile(r"YYYY-MM-DD[T ]HH|RFC 3339", re.IGNORECASE), "date-time"),
    (re.compile(r"YYYY-MM-DD", re.IGNORECASE), "date"),
    (re.compile(r"\bHH:MM:SS\b", re.IGNORECASE), "time"),
    (re.compile(r"\bHH:MM\b", re.IGNORECASE), "minutes"),
)


def named_format(text: str) -> str | None:
    """Return the format that a description or a refusal spells out; None without one."""
    return next((form for words, form in _NAMED if words.search(text)), None)


_NOTATIONS: Final = (
    (r"semantic\s+version|\bsemver\b|MAJOR\.MINOR", ("1.4.2", "2.0.0", "0.9.13", "3.11.7")),
    (r"version range|range of versions", ("^1.2.0", ">=1.0.0 <2.0.0", "~2.3.1", ">=0.9.0")),
    (r"\bTOML\b", ('title = "Tide"\ncount = 4', "[box]\nwide = 3\nhigh = 8", "on = true\nn = 12")),
    (r"\bYAML\b", ("title: Tide\ncount: 4", "box:\n  wide: 3\n  high: 8", "names:\n- Ada\n- Ben")),
    (r"\bCSV\b", ("hat,size\nbow,36\nfez,41", "day,rain\nMon,4\nTue,0\nWed,11", "a,b\n1,2\n7,9")),
    (r"\bXML\b", ("<box><wide>3</wide></box>", "<tide h='4'/>", "<a><b>1</b><b>2</b></a>")),
    (r"\bJSON\b", ('{"wide": 3, "high": 8}', "[4, 9, 16]", '{"name": "Ada", "age": 36}')),
    (r"\bMarkdown\b", ("# Tide\n\nIt *rises*.", "- one\n- two", "A **bold** word, a `code`.")),
    (r"\bHTML\b", ("<p>The tide <b>rises</b>.</p>", "<ul><li>one</li></ul>", "<h1>Rain</h1>")),
    (r"\bSQL\b", ("SELECT name FROM boats", "SELECT a, b FROM t WHERE a > 3", "SELECT 17 * 3")),
    (r"\bDNA\b|nucleotide|\bcodons?\b", ("ATGGCCTTTAAGTAA", "ATGTGGCATTAG", "ATGAAACGCGATTGA")),
    (r"\bRNA\b", ("AUGGCCUUUAAGUAA", "AUGUGGCAUUAG", "AUGAAACGCGAUUGA")),
    (r"amino acid|protein sequence", ("MKTAYIAK", "GAVLIPF", "MSTNPKPQR")),
    (r"\bcron(?:tabs?)?\b", ("*/15 * * * *", "0 9 * * 1-5", "30 4 1 * *", "0 0 * * 0")),
    (r"regular expression|\bregex", (r"\d+", "[a-c]+", "^T.*s$", "(ab)+")),
    (r"\bglob\b|wildcard", ("*.py", "src/*.txt", "docs/**", "*.md")),
    (r"file ?names?|\bpaths?\b", ("src/main.py", "docs/index.md", "notes.txt", "src/tide.txt")),
    (r"\bbase ?64\b", ("SGVsbG8=", "VGlkZQ==", "UmFpbg==")),
    (r"\bMorse\b", ("... --- ...", "- .. -.. .", ".-. .- .. -.")),
    (r"\bbinary\b", ("101101", "11001", "1110", "100000")),
    (r"\bhexadecimal\b", ("ff", "1a4", "7e0", "c3")),
    (r"\bRoman\s+numerals?\b", ("XIV", "MCMXC", "XLII", "CDXC")),
    (r"\bCIDR\b|\bsubnets?\b", ("10.0.0.0/24", "10.9.0.0/16", "172.16.8.0/30")),
    (r"MAC address", ("00:1a:2b:3c:4d:5e", "a4:5e:60:c8:11:02")),
    (r"\bUUIDs?\b", ("5f0c3a52-6d1b-4a77-9c1e-1b2f3c4d5e6f",)),
    (r"MIME type|media type", ("image/png", "text/html", "application/json")),
    (r"\bISO 8601 duration|\bdurations?\b", ("PT45M", "P3DT4H", "P2W", "PT1H30M")),
    (r"chess ?board|\bsquares? (?:such|from a1)|a1 to h8", ("e4", "b1", "h8", "c6", "d5")),
    (r"\bFEN\b", ("8/8/4k3/8/8/4K3/4P3/8 w - - 0 1", "8/5k2/8/8/3Q4/8/8/6K1 w - - 0 1")),
    (r"\bedges?\b.{0,40}\bA-B", ("A-B:4", "B-C:2", "A-C:9", "C-D:1")),
    (r"algebraic|\bpolynomial", ("x^2 - 5x + 6", "2x^2 + 3x - 2", "x^3 - 1")),
    (r"\bfractions?\b", ("3/8", "7/12", "22/7", "5/6")),
    (r"\bmatri(?:x|ces)\b", ("[[1, 2], [3, 4]]", "[[2, 0], [1, 5]]", "[[4, 7], [2, 6]]")),
    (r"time of day", ("09:30", "18:45", "23:05")),
    (r"coordinates", ("48.2, 16.4", "-33.9, 151.2", "59.9, 10.7")),
    (r"blood (?:group|type)s?|Blutgruppen?", ("A+", "0-", "B+", "AB-", "0+", "A-")),
    (r"chemical equation", ("H2 + O2 -> H2O", "Fe + O2 -> Fe2O3", "CH4 + O2 -> CO2 + H2O")),
    (r"\bISRC\b|\bISSN\b", ("0317-8471", "2049-3630", "1050-124X")),
    (r"\bboolean expression|propositions?|truth table", ("p and not q", "p or q", "not (p and q)")),
    (r"\bemojis?\b", ("🌧️", "🍎", "🚲")),
)  # fmt: skip
_NOTATION_PATTERNS: Final = tuple(
    (re.compile(words, re.IGNORECASE), values) for words, values in _NOTATIONS
)


def notation_values(text: str, random: Random) -> tuple[str, list[str]]:
    """Return the notation that a text names first, and values in it; else empty."""
    found = [
        (m.start(), m[0], values)
        for words, values in _NOTATION_PATTERNS
        if (m := words.search(text[:600]))
    ]
    if not found:
        return "", []
    _, named, values = min(found, key=lambda one: one[0])
    return named.casefold(), random.sample(values, len(values))


_ENDS: Final = (
    ("start", "end"), ("begin", "end"), ("from", "to"), ("since", "until"), ("min", "max"),
    ("low", "high"), ("check_in", "check_out"), ("checkin", "checkout"), ("opens", "closes"),
)  # fmt: skip


def in_order(given: JsonObject) -> JsonObject:
    """Return the same arguments, with the end of a range not before its beginning."""
    put = dict(given)
    for first, last in _ENDS:
        low = next((name for name in put if first in name.casefold()), None)
        high = next((name for name in put if last in name.casefold()), None)
        one, other = put.get(low or ""), put.get(high or "")
        if low and high and isinstance(one, str | int) and type(one) is type(other):
            put[low], put[high] = sorted((one, other), key=lambda v: (str(type(v)), v))
    return put
