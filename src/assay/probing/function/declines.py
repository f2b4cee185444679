"""Detects answers that say that a request is unreadable, or how to write it. Pure.

Services refuse in results that look like success: such an answer is not a result, whatever it
quotes.
"""

import re
from typing import Final

CHARS_MAX = 300
"""A refusal is short; a longer answer may be about reading and writing."""

_CANNOT_READ: Final = re.compile(
    r"(?:can(?:no|['’]?)t|could ?n(?:o|['’])t|unable to|failed to) (?:be )?"  # noqa: RUF001
    r"(?:read|pars|underst|interpret|recogni[sz]e|decode|make sense)"
    r"|\bunreadable\b|\bunparsea?ble\b|\bmalformed\b|\bnot (?:readable|understood)\b"
    r"|nicht (?:lesen|lesbar|verstehen|verstanden|deuten)\b|\bunlesbar"
    r"|(?:impossible de|peux pas|pu) (?:lire|comprendre|interpréter)|\billisible"
    r"|no (?:se )?pu(?:edo|ede|do) (?:leer|entender|interpretar)|\bilegible"
    r"|non (?:riesco a|posso|è possibile) (?:leggere|capire|interpretare)|\billeggibile"
    r"|não (?:consigo|foi possível|pude) (?:ler|entender|interpretar)|\bilegível"
    r"|nie (?:mogę|można|udało się) (?:odczytać|zrozumieć)"
    r"|niet (?:lezen|begrijpen)\b|\bonleesbaar"
    r"|не (?:могу|удалось|удаётся) (?:прочитать|разобрать|понять)"
    r"|не (?:можу|вдалося|вдається) (?:прочитати|розібрати|зрозуміти)"
    r"|okunamadı|anlaşılamadı|okuyamıyorum|読み取れません|読めません|解釈できません|解析できません"  # noqa: RUF001 - Turkish
    r"|无法(?:解析|读取|识别|理解)|읽을 수 없|해석할 수 없"
    r"|لا يمكن (?:قراءة|فهم)|تعذر[ت]? (?:قراءة|فهم)"
    r"|पढ़ा नहीं जा|समझ नहीं",
    re.IGNORECASE,
)
_HOW_TO_WRITE: Final = re.compile(
    r"\b(?:write|give|enter|put|spell|format)(?:ten)? (?:it|them|that|this|one|each \w+)"
    r" (?:as|like|in the (?:form|format|notation))\b"
    r"|\b(?:should|must|needs? to) (?:be|look) (?:like|(?:written|given|entered) (?:as|like|in)"
    r"|of the form|in the (?:form|format|notation))\b"
    r"|\b(?:fields?|values?|parts?|arguments?|numbers?|columns?|lines?|words?)"
    r" (?:(?:are|is|were|was) )?(?:expected|required|needed)\b"
    r"|\bexpected (?:hh|yyyy|mm|dd|the (?:form|format)|(?:a |an )?(?:form|format|notation)\b"
    r"|\w+ (?:fields|values|parts|arguments|columns)\b|some\w+ like)"
    r"|schreib\w* (?:sie )?(?:es|sie|das) (?:als|wie|so)\b|(?:felder|werte|teile) erwartet"
    r"|écri(?:vez|re|s)(?:-l[ea]s?| l[ea]s?)? (?:comme|sous la forme|ainsi)"
    r"|escr[ií]b\w* (?:como|así|en la forma)|se esperaban? (?:\w+\s)?(?:campos|valores|el formato)"
    r"|scriv\w+ (?:come|così|nella forma)|escreva(?:-[oa])? (?:como|assim|na forma)"
    r"|(?:zapisz|napisz|podaj) (?:to |je )?(?:jako|jak|w postaci)|schrijf (?:het )?(?:als|zoals)"
    r"|(?:напишите|запишите|укажите) (?:это )?(?:как|в виде)"
    r"|(?:напишіть|запишіть|вкажіть) (?:це )?(?:як|у вигляді)"  # noqa: RUF001 - Ukrainian
    r"|(?:şeklinde|olarak|gibi) yaz|(?:のように|の形で|の形式で)(?:書|入力|指定)"
    r"|(?:请写成|请按|格式应为|应写成)|형식으로 (?:쓰|입력)",
    re.IGNORECASE,
)


def declines(said: str) -> bool:
    """Return whether a short answer says that the request is unreadable, or how to write it."""
    if len(said) > CHARS_MAX:
        return False
    return bool(_CANNOT_READ.search(said) or _HOW_TO_WRITE.search(said))
