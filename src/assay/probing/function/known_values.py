"""Values that most services know, by kind: for examples, arguments and questions. Pure."""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from assay.probing.function.kinds import NARROW
from assay.probing.function.languages import language_of

KNOWN_FIRST = 8
"""Values of a row that are tried: rows begin with those that most services of their kind know."""

_KINDS_TEXT: Final = """
London|Tokyo|Paris|New York|Berlin|Madrid|Rome|Sydney|Oslo|Cairo|Mumbai|Singapore|Lima|Nairobi|
Lisbon|Vienna|Prague|Boston|Chicago|Toronto|Seattle|Dublin|Athens|Warsaw|Helsinki|Bogota|Santiago|
Denver|Budapest|Brussels|Copenhagen|San Francisco;
France|Germany|Japan|Brazil|India|Spain|Italy|Canada|Egypt|Mexico|Kenya|Norway|Australia|Peru|
Portugal|Austria|Ireland|Greece|Poland|Finland|Chile|Sweden;
French|German|Spanish|Italian|Japanese|Portuguese|Norwegian|Dutch|Polish|Finnish|Swedish;
EUR|USD|JPY|GBP|CHF|CAD|AUD|SEK|NOK|PLN|BRL|INR|MXN;
BTC|ETH|SOL|ADA|DOT|AVAX|LINK|LTC|XRP|ATOM|UNI|AAVE;
Bitcoin|Ethereum|Solana|Cardano|Polkadot|Litecoin|Chainlink;
AAPL|MSFT|GOOGL|AMZN|TSLA|NVDA|IBM|ORCL|INTC|NFLX;
Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday;
January|February|March|April|June|July|August|September|October|November|December;
red|green|blue|yellow|purple|orange|black|white;
apple|banana|cherry|lemon|grape|peach|mango|plum|pear|tomato|potato|carrot|onion|chicken|
rice|pasta|salmon|mushroom;
dog|cat|horse|rabbit|tiger|elephant|whale|eagle|penguin|dolphin|fox|wolf;
hello|goodbye|bread|friend|house|winter|river|bridge|garden|kitchen|mountain|lamp;
gold|iron|copper|silver|oxygen|carbon|tin|zinc|helium|nickel|sodium|mercury|neon;
pancakes|risotto|omelette|lasagne|goulash|ratatouille|paella|hummus|pesto|curry|carbonara|ramen;
quick|happy|calm|cold|strong|bright|sad|brave|quiet|clever|warm|loud;
seven|nine|twelve|fifteen|eleven|eight|fourteen|sixteen|thirteen|nineteen|six|five|four|three|two;
chairs|ladders|tables|shelves|tents|trestles|barrels|cables|bicycles|helmets;
Mars|Venus|Saturn|Jupiter|Neptune|Mercury|Uranus|Earth;
rose|tulip|fern|basil|lavender|ivy|mint|orchid|cactus|sunflower|daffodil|lily;
oak|birch|maple|beech|willow|spruce|ash|elm;
piano|violin|guitar|flute|trumpet|cello|drums|harp;
Python|Java|Rust|JavaScript|Ruby|Kotlin|Haskell|Perl;
football|tennis|hockey|basketball|cricket|rugby|golf|volleyball;
Aries|Taurus|Gemini|Leo|Virgo|Libra|Scorpio|Pisces;
JFK|LHR|CDG|FRA|AMS|MAD|SFO|NRT|SIN|LAX;
km|miles|meters|feet|inches|yards;
kg|pounds|grams|ounces;
litres|gallons|pints;
Madrid|Lima|Bogotá|Sevilla|Quito|Valencia|Montevideo|Barcelona|Caracas|Granada;
Lyon|Marseille|Bordeaux|Genève|Bruxelles|Montréal|Lille|Toulouse|Nice|Nantes;
München|Hamburg|Köln|Wien|Zürich|Frankfurt|Stuttgart|Dresden|Leipzig|Bremen;
Lisboa|Porto|Braga|Recife|Salvador|Coimbra|Fortaleza|Curitiba;
Roma|Milano|Torino|Napoli|Firenze|Venezia|Bologna|Palermo;
Москва|Киев|Минск|Казань|Сочи|Новосибирск|Екатеринбург|Самара;
Москве|Киеве|Минске|Казани|Сочи|Новосибирске|Екатеринбурге|Самаре;
İstanbul|Ankara|İzmir|Bursa|Antalya|Konya|Adana;
東京|大阪|京都|名古屋|札幌|福岡|仙台|広島|横浜|神戸;
北京|上海|广州|深圳|成都|杭州|武汉|南京|西安|重庆;
서울|부산|인천|대구|대전|광주|제주|수원;
القاهرة|بغداد|دبي|الرياض|بيروت|دمشق|تونس|عمان;
दिल्ली|मुंबई|कोलकाता|चेन्नई|जयपुर|लखनऊ|पटना;
"""
"""Values of one kind in each row, by which the agent's values are recognised and replaced."""

_BROAD: Final = tuple(
    tuple(row.replace("\n", "").split("|")) for row in _KINDS_TEXT.strip().rstrip(";").split(";")
)
_LOCALS = 13
KINDS: Final = (*_BROAD[:-_LOCALS], *NARROW, *_BROAD[-_LOCALS:])
_BEGINNINGS: Final = tuple(
    frozenset(re.findall(r"\w+", value)[0] for value in row)
    if row[0] < "\u3040" or "\uac00" > row[0] > "\u9fff"
    else None
    for row in KINDS
)


def kinds_in(text: str) -> list[Sequence[str]]:
    """Return the rows of values of which one may occur in a text, the narrower first."""
    words = frozenset(re.findall(r"\w+", text))
    return [
        row
        for row, begin in zip(reversed(KINDS), reversed(_BEGINNINGS), strict=True)
        if (bool(begin & words) if begin is not None else any(value in text for value in row))
    ]


IN_KINDS: Final = frozenset(value for row in KINDS for value in row)
CITIES, COUNTRIES, _, _, COINS, _, TICKERS, *_ = KINDS
_, _, THINGS, ELEMENTS, DISHES, ADJECTIVES = KINDS[10:16]
PLANETS, PLANTS = KINDS[18:20]
_TOPICS_TEXT: Final = (
    "glacier violin compass harvest lighthouse saffron telescope monsoon origami turbine"
    " cathedral parchment vineyard submarine lantern orchard avalanche chimney"
)
_TOPICS: Final = tuple(_TOPICS_TEXT.split())


_LOCAL_TOPICS_TEXT: Final = """
de Zeitung Flasche Batterie Apfel Brot Glas Lampe Schuhe Tisch Baum Karton Milch;
es libro casa perro agua pan mesa árbol gato sol leche;
fr livre maison chien eau pain table arbre chat soleil lait;
it libro casa cane acqua pane tavolo albero gatto sole latte;
pt livro casa cachorro água pão mesa árvore gato sol leite;
pl książka dom pies woda chleb stół drzewo kot słońce mleko;
nl boek huis hond water brood tafel boom kat zon melk;
tr kitap ev köpek su ekmek masa ağaç kedi güneş süt;
ru книга дом собака вода хлеб стол дерево кот солнце молоко;
uk книга дім собака вода хліб стіл дерево кіт сонце молоко;
ja 本 家 犬 水 パン 机 木 猫 太陽 牛乳;
zh 书 房子 狗 水 面包 桌子 树 猫 太阳 牛奶;
ko 책 집 개 물 빵 책상 나무 고양이 태양 우유;
ar كتاب بيت كلب ماء خبز طاولة شجرة قط شمس حليب;
hi किताब घर कुत्ता पानी रोटी मेज पेड़ बिल्ली सूरज दूध;
"""
_LOCAL_TOPICS: Final = {
    row.split()[0]: row.split()[1:] for row in _LOCAL_TOPICS_TEXT.strip().rstrip(";").split(";")
}


def topics(random: Random, count: int, about: str = "") -> list[str]:
    """Return topics to ask about if an agent gives no example, in the language of `about`."""
    return random.sample(_LOCAL_TOPICS.get(language_of(about), _TOPICS), count)


def named_value(name: str, random: Random, about: str = "") -> str | None:
    """Return a value for an argument or placeholder, if its name tells what it is.

    `about` is the owner's description: cities are those of its language.
    """
    plain = name.casefold()
    parts = frozenset(re.split(r"[^a-z]+", plain))
    for words, known in _NAMED:
        if any(word in (parts if len(word) < 5 else plain) for word in words):  # noqa: PLR2004 - `to`
            local = _LOCAL.get(language_of(about), known) if known is CITIES else known
            return random.choice(local[:KNOWN_FIRST])
    return None


_SPANISH, _FRENCH, _GERMAN, _PORTUGUESE, _ITALIAN, _RUSSIAN, _, *_FURTHER = KINDS[-_LOCALS:]
_LOCAL: Final[Mapping[str, Sequence[str]]] = {
    "es": _SPANISH,
    "fr": _FRENCH,
    "de": _GERMAN,
    "pt": _PORTUGUESE,
    "it": _ITALIAN,
    "ru": _RUSSIAN,
    **dict(zip(("tr", "ja", "zh", "ko", "ar", "hi"), _FURTHER, strict=True)),
}
"""Cities as spelled in each language."""

_NAMED: Final[tuple[tuple[tuple[str, ...], Sequence[str]], ...]] = (
    (("city", "location", "place", "town", "destination", "origin"), CITIES),
    (("country", "nation"), COUNTRIES),
    (("language", "lang"), KINDS[2]),
    (("coin", "crypto"), KINDS[4]),
    (("currency", "base", "quote", "from", "to"), KINDS[3]),
    (("symbol", "ticker", "stock"), KINDS[6]),
    (("colour", "color"), KINDS[9]),
    (("element",), KINDS[13]),
    (("dish", "recipe", "meal"), KINDS[14]),
    (("adjective",), KINDS[15]),
    (("ingredient", "food", "fruit"), KINDS[10]),
    (("animal", "species"), KINDS[11]),
    (("month",), KINDS[8]),
    (("weekday",), KINDS[7]),
    (("planet",), PLANETS),
    (("plant", "flower"), PLANTS),
    (("isbn",), ("9780140449136", "9780679783275", "9780553213119", "9780199535569")),
    (("zip", "zipcode", "postal"), ("10001", "94103", "60601", "73301")),
    (("timezone", "tz", "zone"), ("Europe/Paris", "Asia/Tokyo", "America/New_York", "UTC")),
    (("year", "anno", "jahr", "jaar", "annee"), ("1996", "2003", "2024", "1987", "2012", "1900")),
    (("expression", "formula"), ("17 * 23", "(4 + 9) * 12", "144 / 12", "96 - 35")),
    (("number", "integer", "quantity", "amount"), ("48", "305", "1024", "77", "260", "731")),
    (("word", "term"), ("cold", "bright", "happy", "quick", "strong", "sad", "calm", "loud")),
)
