"""Values that most services know, and the languages of requests that name them. Pure.

Languages of requests, and how to reword a request in them.

Values of narrower kinds, for specialised services. One kind per row, the commonest first.

Data.

Values that most services know, by kind: for examples, arguments and questions.
"""

import re
from collections.abc import Mapping, Sequence
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


_TEXT: Final = """
C7|Em|Dm7|G7|Bb7|Ebm7|F#m|Cmaj7|Fm|Dm|Gm|A7|E7|Bm|Cm7;
ionian|dorian|phrygian|lydian|mixolydian|aeolian|locrian;
C major|G major|A minor|D major|E minor|F major|D minor|B flat major;
H2O|CO2|NaCl|NH3|CH4|H2SO4|HCl|NaOH|CaCO3|C6H12O6|HNO3|Fe2O3|C2H5OH|KMnO4|SO2|H2O2;
Fe|Cu|Ag|Na|Zn|Pb|Hg|Cl|Ca|Mg|Sn;
ammonia|methane|ethanol|benzene|glucose|acetone|propane|butane;
Sicilian Defence|French Defence|Ruy Lopez|Caro-Kann|King's Indian|English Opening|Scotch Game;
bishop|knight|rook|pawn;
halyard|bowsprit|starboard|mainsail|jib|keel|rudder|bilge|galley|stern|bow|ballast|cleat|windward|
leeward|tiller|hull|rigging|spinnaker|mast;
bowline|reef knot|clove hitch|sheet bend|sheepshank|square knot|half hitch|cat's paw;
cirrus|cumulus|stratus|nimbus|cumulonimbus|altocumulus|nimbostratus|altostratus;
granite|basalt|marble|limestone|sandstone|slate|quartzite|gneiss|obsidian|pumice;
ruby|sapphire|emerald|diamond|topaz|opal|amethyst|garnet|turquoise|pearl;
quartz|feldspar|mica|calcite|gypsum|talc|fluorite|pyrite|halite|hematite;
robin|sparrow|blackbird|swallow|kingfisher|heron|owl|wren|magpie|finch|starling|cuckoo;
Labrador|poodle|beagle|dachshund|bulldog|boxer|greyhound|collie|terrier|husky;
cheddar|brie|gouda|feta|mozzarella|parmesan|camembert|gruyere|roquefort|stilton|emmental|manchego;
merlot|chardonnay|riesling|pinot noir|syrah|malbec|zinfandel|sauvignon blanc|tempranillo;
espresso|cappuccino|latte|macchiato|americano|mocha|cortado|ristretto;
sencha|assam|darjeeling|oolong|matcha|earl grey|rooibos|lapsang souchong|chamomile;
margarita|mojito|negroni|martini|daiquiri|manhattan|cosmopolitan|old fashioned|pina colada;
spaghetti|penne|farfalle|fusilli|rigatoni|tagliatelle|linguine|ravioli|orzo;
cinnamon|turmeric|cumin|paprika|ginger|nutmeg|saffron|cardamom|cloves|pepper;
parsley|thyme|rosemary|sage|oregano|dill|chives|tarragon|coriander;
tomatoes|garlic|potatoes|carrots|onions|beans|peas|lettuce|spinach|leeks|cabbage|beetroot|radishes|
courgettes|cucumbers|pumpkins|kale|parsnips|broccoli|raspberries;
slugs|snails|aphids|blackfly|greenfly|caterpillars|mice|moles|wasps|ants;
cotton|linen|silk|wool|denim|velvet|polyester|cashmere|nylon|flannel;
apple|pear|cherry|plum|lemon|peach|apricot|fig|quince|grape|banana|mango|pineapple|melon;
hammer|chisel|screwdriver|spanner|pliers|mallet;
femur|tibia|humerus|ulna|skull|scapula|clavicle|sternum|patella|fibula|pelvis;
biceps|triceps|deltoid|quadriceps|hamstring|gastrocnemius|trapezius;
heart|liver|lung|kidney|brain|stomach|pancreas|spleen;
vitamin C|vitamin D|vitamin A|vitamin B12|vitamin E|vitamin K|folate|niacin;
Orion|Cassiopeia|Ursa Major|Lyra|Cygnus|Andromeda|Perseus|Pegasus|Draco|Scorpius;
Sirius|Vega|Rigel|Betelgeuse|Polaris|Arcturus|Antares|Aldebaran|Deneb|Altair|Capella;
Everest|Kilimanjaro|Mont Blanc|Denali|Matterhorn|Fuji|Etna|Aconcagua|K2|Elbrus;
Nile|Amazon|Danube|Rhine|Mississippi|Thames|Volga|Ganges|Yangtze|Seine|Loire|Elbe|Mekong;
California|Texas|Florida|Ohio|Alaska|Oregon|Nevada|Utah|Maine|Colorado|Arizona|Virginia;
Zeus|Hera|Apollo|Athena|Poseidon|Hermes|Artemis|Ares|Aphrodite|Hades|Dionysus;
Odin|Thor|Loki|Freyja|Baldur|Tyr|Heimdall;
Mozart|Bach|Beethoven|Chopin|Vivaldi|Brahms|Schubert|Haydn|Verdi|Wagner|Debussy;
Shakespeare|Dickens|Austen|Tolstoy|Goethe|Kafka|Cervantes|Homer|Dante|Orwell|Hemingway;
Hamlet|Macbeth|Othello|King Lear|Romeo and Juliet|The Tempest|Twelfth Night;
Monet|Picasso|Rembrandt|Van Gogh|Vermeer|Klimt|Goya|Turner|Cezanne|Matisse;
Einstein|Newton|Darwin|Galileo|Marie Curie|Faraday|Maxwell|Kepler|Bohr|Pascal;
Lincoln|Jefferson|Roosevelt|Kennedy|Eisenhower|Truman|Reagan;
waltz|tango|salsa|foxtrot|rumba|polka|samba|quickstep|cha-cha;
downward dog|warrior|cobra pose|tree pose|child's pose|mountain pose;
Helvetica|Times New Roman|Garamond|Futura|Arial|Verdana|Bodoni|Courier;
A4|A3|A5|A0|A2|A1|A6|B5|B4;
SSH|HTTP|HTTPS|FTP|SMTP|DNS|IMAP|POP3|NTP|LDAP;
grep|sed|awk|tar|curl|chmod|ls|xargs|ssh|rsync;
git rebase|git merge|git stash|git bisect|git cherry-pick|git reset;
png|jpg|pdf|csv|json|svg|gif|txt|zip|mp3|html|xml|docx|mp4;
application/json|text/html|image/png|application/pdf|text/csv|image/jpeg|text/plain;
bubble sort|quicksort|merge sort|heap sort|insertion sort|binary search;
USB-C|HDMI|Ethernet|Bluetooth|DisplayPort|Thunderbolt;
alpha|beta|gamma|delta|epsilon|omega|sigma|lambda|theta;
DE|FR|US|ES|JP|BR|NL|SE|PL;
EUR/USD|GBP/USD|USD/JPY|USD/CHF|AUD/USD|EUR/GBP;
uniswap|aave|lido|makerdao|sushiswap;
ethereum|polygon|arbitrum|solana|avalanche;
ERC-20|ERC-721|ERC-1155|ERC-4626|ERC-8004;
Tower Bridge|Eiffel Tower|Colosseum|Big Ben|Taj Mahal|Louvre|Statue of Liberty|Alhambra;
Lufthansa|Ryanair|KLM|Emirates|Qantas|Iberia|Air France|Delta Air Lines|British Airways;
BA|LH|AF|KL|EK|QF|IB|DL|UA|AA;
Heathrow|Gatwick|Schiphol|Frankfurt Airport|Charles de Gaulle|Barajas;
flu|asthma|diabetes|migraine|measles|anaemia|malaria|pneumonia|arthritis;
aspirin|ibuprofen|paracetamol|penicillin|amoxicillin|insulin|metformin|warfarin;
photosynthesis|osmosis|mitosis|meiosis|respiration|evolution|diffusion;
gravity|friction|inertia|momentum|velocity|entropy|acceleration;
inflation|recession|deflation|GDP|monopoly;
noun|verb|adjective|adverb|pronoun|preposition|conjunction;
metaphor|simile|alliteration|irony|hyperbole|onomatopoeia|oxymoron;
sonnet|haiku|limerick|villanelle|ballad|sestina;
cube|sphere|cylinder|cone|pyramid|prism;
Christmas|Easter|Halloween|Thanksgiving|New Year|Pentecost|Good Friday|Ascension;
Diwali|Hanukkah|Ramadan|Passover|Holi|Eid;
aluminium|plastic bottle|newspaper|battery|glass bottle|cardboard|light bulb|milk carton|tin can;
passport|driving licence|visa|birth certificate|identity card|work permit;
hola|gracias|adiós|casa|perro|gato|libro|mesa;
bonjour|merci|maison|chien|livre|fenêtre;
Hund|Katze|Baum|Buch|Brot|Tisch|Fenster|Schule|Garten|Freund;
Zeitung|Glasflasche|Batterie|Karton|Eierschale|Kaffeesatz|Glühbirne|Windel|Bananenschale|
Milchkarton|Pizzakarton|Altkleider|Teebeutel|Plastikflasche|Apfelrest;
Bayern|Hessen|Sachsen|Brandenburg|Thüringen|Niedersachsen|Saarland;
perro|gato|caballo|vaca|oveja|gallina|pato;
tortilla|paella|gazpacho|empanada|ceviche|churros;
Київ|Львів|Одеса|Харків|Дніпро|Полтава|Чернігів|Вінниця|Запоріжжя|Луцьк|Рівне|Суми|Житомир|Ужгород;
Києві|Львові|Одесі|Харкові|Дніпрі|Полтаві|Чернігові|Вінниці;
Warszawa|Kraków|Gdańsk|Wrocław|Poznań|Łódź|Lublin|Katowice|Szczecin;
Praha|Brno|Ostrava|Plzeň|Olomouc;
Amsterdam|Rotterdam|Utrecht|Den Haag|Eindhoven|Groningen;
Stockholm|Göteborg|Malmö|Uppsala|København|Aarhus;
Франция|Германия|Италия|Испания|Япония|Китай|Польша|Россия;
Франція|Німеччина|Італія|Іспанія|Японія|Китай|Польща|Україна;
Allemagne|Espagne|Italie|Japon|Belgique|Suisse;
Francia|Alemania|España|Italia|Japón|Canadá|México|Perú;
Frankreich|Deutschland|Spanien|Italien|Österreich|Schweiz|Polen|Norwegen;
França|Alemanha|Espanha|Itália|Japão|Brasil;
フランス|ドイツ|日本|イタリア|スペイン|中国|アメリカ|カナダ;
法国|德国|日本|意大利|西班牙|中国|美国|加拿大;
فرنسا|ألمانيا|مصر|اليابان|إيطاليا|إسبانيا|المغرب|الأردن|العراق|لبنان;
भारत|फ्रांस|जापान|जर्मनी|इटली|चीन|नेपाल;
平成|昭和|令和|大正|明治;
"""

NARROW: Final = tuple(
    tuple(row.replace("\n", "").split("|")) for row in _TEXT.strip().rstrip(";").split(";")
)


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
