"""Languages of requests, and how to reword a request in them. Pure."""

import re
from random import Random
from typing import Final

from assay.probing.function.words import words_of

_PREFIXES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("ja", ("教えてください。", "質問です。")),
    ("zh", ("请告诉我, ", "有个问题。")),
    ("ko", ("알려 주세요, ", "질문이 있어요. ")),
    ("ar", ("لدي سؤال، ", "من فضلك، ")),
    ("hi", ("मेरा एक सवाल है, ", "कृपया बताइए, ")),
    ("uk", ("скажіть, будь ласка, ", "маю запитання, ")),
    ("ru", ("скажите, пожалуйста, ", "есть вопрос, ")),
    ("th", ("มีคำถาม ",)),
    ("es", ("dígame, por favor, ", "tengo una pregunta, ")),
    ("pt", ("diga-me, por favor, ", "tenho uma pergunta, ")),
    ("fr", ("dites-moi, ", "j’ai une question, ")),  # noqa: RUF001 - French
    ("de", ("sag mal, ", "noch etwas, ")),
    ("it", ("mi dica, ", "ho una domanda, ")),
    ("tr", ("söyler misiniz, ", "bir sorum var, ")),
    ("pl", ("proszę powiedzieć, ", "mam pytanie, ")),
    ("nl", ("zeg eens, ", "nog een vraag, ")),
    ("en", ("please tell me, ", "now this, ", "just wondering, ")),
)
"""No greetings, which many agents answer with one; no capitals, which some take for a name."""

_SCRIPTS: Final = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("zh", re.compile(r"[\u3400-\u9fff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("uk", re.compile(r"[\u0404\u0406\u0407\u0454\u0456\u0457\u0490\u0491]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
)
_COMMON: Final = {
    name: frozenset(words.split())
    for name, words in {
        "es": "el la los qué cuál cómo de en es por para una del está",
        "pt": "o a os qual como de em é por para uma do está não",
        "fr": "le la les quel quelle comment de en est pour une du il y",
        "de": "der die das wie was ist in für ein eine und von wird",
        "pl": "jak jest się co na nie dla czy ile jaki jaka do od oraz",
        "nl": "het een wat hoe van voor zijn met hoeveel welke",
        "it": "il lo la gli quale come di è per una del che",
        "tr": "bir ve bu ne için nedir hava kaç",
        "en": "the a what how is of in to for an and which",
    }.items()
}
_ANY_COMMON: Final = frozenset[str]().union(*_COMMON.values())


def language_of(text: str, about: str = "") -> str:
    """Return the language of a request: by script, else by its commonest words.

    If these are inconclusive, that of `about`; English if unsure.
    """
    for name, script in _SCRIPTS:
        if script.search(text):
            return name
    votes = _votes(text)
    best = max(votes, key=lambda name: (votes[name], name == "en"))
    if votes[best]:
        return best
    return language_of(about) if about else "en"


def is_known_language(text: str, about: str = "") -> bool:
    """Return whether a text, or else its description, is in a language whose words are known.

    `about`: what the agent says of itself, because a single common word may occur by chance.
    """
    if any(script.search(text) for _, script in _SCRIPTS):
        return True
    return any(_votes(text).values()) or max(_votes(about).values()) >= VOTES_MIN


VOTES_MIN = 3


def _votes(text: str) -> dict[str, int]:
    words = words_of(text)
    return {name: sum(w in common for w in words) for name, common in _COMMON.items()}


def reworded(request: str, random: Random, about: str = "", *, is_data: bool = False) -> str:
    """Return the same request with another introduction in its language, randomly chosen.

    `about`: what the agent says of itself, in its language. `is_data`: a text that is not a
    question is read from its first word on, so the neutral line follows it.
    """
    language = language_of(request, about)
    if is_data:
        return f"{request}\n{random.choice(_LINES_BEHIND[language])}"
    return random.choice(next(rows for name, rows in _PREFIXES if name == language)) + request


_LINES_BEHIND: Final = {
    "ja": ("以上です。", "以上になります。"),
    "zh": ("就这些。", "以上。"),
    "ko": ("이상입니다.", "이게 다예요."),
    "ar": ("هذا كل شيء.", "هذا كل ما لدي."),
    "hi": ("बस इतना ही।", "यही सब है।"),
    "uk": ("це все.", "на цьому все."),
    "ru": ("это всё.", "на этом всё."),
    "th": ("เท่านี้", "มีแค่นี้"),
    "es": ("eso es todo.", "nada más."),
    "pt": ("é tudo.", "mais nada."),
    "fr": ("c’est tout.", "voilà tout."),  # noqa: RUF001 - French
    "de": ("das ist alles.", "mehr habe ich nicht."),
    "it": ("è tutto.", "nient’altro."),  # noqa: RUF001 - Italian
    "tr": ("hepsi bu kadar.", "başka bir şey yok."),
    "pl": ("to wszystko.", "nic więcej."),
    "nl": ("dat is alles.", "verder niets."),
    "en": ("that is all.", "nothing else.", "that is everything."),
}
"""No thanks, which many agents answer with a greeting; no act, no number, no name."""


def is_common(word: str) -> bool:
    """Return whether a word is among the commonest of a language."""
    return word.casefold() in _ANY_COMMON


def put_as_question(text: str, about: str = "") -> str:
    """Return the text after a question about it, so that it cannot be taken for an order."""
    return _FRAMES.get(language_of(text, about), _FRAMES["en"]) + text


def asked_behind(text: str, about: str = "") -> str:
    """Return the text followed by a question about it: data is read from its first word on."""
    language = language_of(text, about)
    return f"{text}\n{_BEHIND.get(language) or _FRAMES[language].rstrip(' :') + '?'}"


_BEHIND: Final = {
    "ja": "これはどうですか?",
    "zh": "你怎么看这段话?",
    "ko": "이 글은 어떤가요?",
    "ar": "ماذا تجد في هذا؟",
    "th": "นี่คืออะไร?",
    "es": "¿Qué encuentra en esto?",
}

_FRAMES: Final = {
    "ja": "次の内容はどうですか: ",
    "zh": "你怎么看这段话: ",
    "ko": "다음 글은 어떤가요: ",
    "ar": "ماذا تجد في هذا: ",
    "hi": "इसमें क्या मिलता है: ",
    "uk": "що ви скажете про це: ",
    "ru": "что вы скажете на это: ",
    "es": "¿Qué encuentra en esto?: ",
    "pt": "O que encontra nisto: ",
    "fr": "Que trouvez-vous ici : ",
    "de": "Was finden Sie hierzu: ",
    "it": "Che cosa trova qui: ",
    "tr": "Bunda ne buluyorsunuz: ",
    "pl": "Co można tu znaleźć: ",
    "nl": "Wat vindt u hierin: ",
    "en": "What do you find for this: ",
}
