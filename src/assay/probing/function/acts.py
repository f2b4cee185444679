"""Decides whether a request or a message asks for an act; in doubt it does. Pure.

Words by which descriptions of tools, operations and skills say that they only inform. Data.

By language: verbs as descriptions have them (infinitive, third person, imperative), and nouns of
information. None of them is a word of an act in any of these languages.

Source: evidence.md#no-acts: no request of a visit buys, sends, books, transfers, deletes, posts,
signs or calls anything, in any language of a card.

Decides whether a message orders an act, or is a question.

Source: evidence.md#no-acts: no request of a visit asks for an act.

Recognises operations that take a message in words, by name and arguments.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.function.words import has_part, words_of

_TEXT: Final = """
returns yields displays reports reads determines decides tests measures evaluates assesses
abbreviates abridges annotates anonymises anonymizes anonymise anonymize capitalises capitalizes
categorises categorizes conjugates condense condenses decode decodes decompose diff digest
digests distill encode encodes expand expands factor factorise factorises factorize factorizes
hash hashes highlight hyphenates infers interpret interprets lemmatizes lint mask masks
normalise normalises normalize normalizes paraphrase paraphrases pluralize proofread proofreads
pseudonymises redact redacts rephrase rephrases reverses rewrite rewrites romanize romanizes
rounds shorten shortens simplify simplifies sorts spell spells stems tokenize tokenizes
transcribes transliterate transliterates word words validates verifies inspects looks names
tells knows lists sums subtracts divides averages converts converter calculator
dictionary glossary lookup encyclopedia code codes meanings synonyms conversion calculation
weekday distance;
gibt liefert zeigt nennt berechnet ermittelt findet sucht übersetzt erklärt beschreibt prüft
vergleicht zählt listet rechnet wandelt bestimmt schätzt fasst sagt kennt erkennt analysiert
misst berechnen ermitteln finden suchen übersetzen erklären beschreiben prüfen vergleichen
zählen umrechnen auskunft wetter preis preise vorwahl einwohner entfernung umrechnung bedeutung
verzeichnis liste;
devuelve muestra calcula convierte busca encuentra traduce explica describe compara indica
informa obtiene lista cuenta verifica comprueba resume analiza dice consulta obtener mostrar
calcular convertir buscar encontrar traducir describir comparar indicar consultar capital código
precios significado distancia;
renvoie retourne affiche montre calcule convertit cherche trouve traduit explique décrit compare
indique donne liste compte vérifie résume analyse afficher calculer convertir chercher trouver
traduire expliquer décrire comparer indiquer donner vérifier résumer analyser prix signification
définition horaires;
restituisce mostra calcola converte cerca trova traduce spiega descrive confronta indica elenca
conta verifica riassume analizza dice calcolare convertire cercare trovare tradurre spiegare
mostrare confrontare prezzo prezzi significato distanza definizione;
retorna devolve mostra calcula converte procura encontra traduz explica descreve compara indica
lista conta verifica resume analisa diz calcular converter procurar encontrar traduzir explicar
mostrar comparar preço preços significado distância definição;
zwraca pokazuje oblicza przelicza znajduje szuka tłumaczy wyjaśnia opisuje porównuje podaje
sprawdza liczy wyświetla streszcza analizuje obliczyć przeliczyć znaleźć wyszukać wyszukuje
przetłumaczyć cena ceny kod pogoda znaczenie odległość definicja;
döndürür gösterir hesaplar bulur arar çevirir açıklar listeler karşılaştırır verir dönüştürür
özetler söyler sayar hesaplamak bulmak fiyat fiyatı anlamı mesafe tanım;
geeft toont berekent zoekt vindt vertaalt verklaart beschrijft vergelijkt controleert telt
rekent samenvat prijs prijzen betekenis afstand definitie;
возвращает показывает вычисляет считает рассчитывает находит ищет объясняет описывает сравнивает
определяет сообщает выводит даёт дает проверяет конвертирует анализирует код коды цена цены
значение расстояние определение справка список;
повертає показує обчислює рахує розраховує знаходить шукає пояснює описує порівнює визначає
повідомляє виводить дає перевіряє перетворює аналізує перекладає код коди телефонний телефонні
ціна ціни значення відстань визначення довідка список погода
"""  # noqa: RUF001 - Turkish
TELLS: Final = frozenset(_TEXT.replace(";", " ").split())

_PARTS_TEXT: Final = (
    "返回 显示 換算 换算 转换 查看 搜索 列出 判断 检查 計算 返します 表示 変換 検索 判定 一覧"
    " 調べる"
    " 求め 확인 변환 계산합니다 검색 보여 반환 목록 يعرض يحسب يعيد يبحث يترجم يشرح يصف يقارن"
    " يوضح قائمة سعر दिखा गणना खोज सूची แสดง คำนวณ ค้นหา แปลง"
)
TELLS_PARTS: Final = tuple(_PARTS_TEXT.split())

_MORE_ACTS_TEXT: Final = """
sendet schickt bucht kauft bestellt zahlt bezahlt überweist löscht veröffentlicht storniert
erstellt anlegen legt speichert ändert startet stoppt schaltet kündigt meldet reserviert envía
compra paga borra elimina publica firma llama cancela crea guarda modifica actualiza envoie
achète paie supprime publie signe annule crée enregistre modifie réserve lance invia paga
elimina firma crea salva modifica aggiorna prenota annulla avvia compra exclui apaga assina liga
cria salva altera atualiza agenda reserva cancela wysyła kupuje płaci usuwa rezerwuje zamawia
anuluje tworzy zapisuje zmienia publikuje dzwoni gönderir satar öder siler oluşturur kaydeder
değiştirir yayınlar iptal başlatır verstuurt koopt betaalt verwijdert boekt bestelt annuleert
maakt bewaart wijzigt plaatst отправляет покупает платит оплачивает удаляет бронирует заказывает
отменяет создает создаёт сохраняет изменяет публикует подписывает переводит звонит запускает
надсилає купує платить оплачує видаляє бронює замовляє скасовує створює зберігає змінює публікує
підписує переказує телефонує запускає надіслати видалити забронювати замовити оплати сплати
видали забронюй замов переказати
"""  # noqa: RUF001 - Turkish
MORE_ACTS: Final = frozenset(_MORE_ACTS_TEXT.split())
MORE_ACT_PARTS: Final = (
    "يرسل",
    "يشتري",
    "يدفع",
    "يحجز",
    "يحذف",
    "ينشر",
    "يلغي",
    "作成",
    "保存",
    "创建",
)

NAMES_THING = re.compile(
    r"(?!(?:requ|inv|dig|t|prot|harv|arr|sugg|cont|att|manif|ing|cong|div|mol|inf|det)est\b)"
    r"[^\W\d_]{3,}(?:est|bility|icity|osity|ality|arity|ness|ology|istics)\b(?! (?:an?|the)\b)",
    re.IGNORECASE,
)
"""A description without a verb: `Nearest station of a place`, `Readability of a text`."""


TEXT_CHARS_MAX = 2_000
_SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-./]")
"""Where names join words."""


_ACTS_TEXT: Final = (
    "saves erases wipes edits modifies appends inserts "
    "buy buys purchase purchases order orders pay pays payment payments send sends mail"
    " mails email sms text tweet post posts publish publishes book books reserve reserves"
    " reservation schedule schedules transfer transfers swap swaps trade trades mint mints"
    " burn bridge deploy deploys delete deletes remove removes cancel cancels create creates"
    " update updates write writes register registers sign signs call calls dial phone notify"
    " notifies invite invites upload uploads submit submits approve approves execute"
    " executes run runs install installs grant grants revoke subscribe unsubscribe withdraw"
    " withdraws deposit deposits stake stakes unstake vote votes hire apply charge charges"
    " refund refunds invoice print turn switch unlock lock open close start stop restart"
    " reset set put save store insert append modify edit change rename move kill drop clear"
    " forget forgets ban block add join leave follow share comment reply forward airtime"
    " topup recharge donate lend borrow claim sell sells bid checkout enable disable upgrade"
    " downgrade commit push merge reboot shutdown wipe erase purge trigger launch rent"
    " comprar compra compre pagar paga pague enviar envía envia envíe envie reservar reserva"
    " reserve transferir transfiere transfira borrar borra eliminar elimina publicar publica"
    " firmar firma llamar llama llame cancelar cancela crear crea cria criar vender vende"
    " ordenar pedir pide ligar apagar apaga excluir assinar agendar agenda comprare acquista"
    " acquistare inviare invia prenotare prenota trasferire trasferisci cancellare cancella"
    " eliminare pubblicare pubblica firmare chiamare chiama ordinare ordina acheter achète"
    " achetez payer payez envoyer envoie envoyez réserver réserve réservez transférer"
    " transfère supprimer supprime supprimez publier publie signer signe appeler appelle"
    " appelez annuler annule créer crée commander commande vendre kaufen kaufe kauf bezahlen"
    " bezahle zahlen zahle senden sende schicken schicke buchen buche reservieren reserviere"
    " überweisen überweise löschen lösche veröffentlichen unterschreiben anrufen rufe"
    " stornieren bestellen bestelle verkaufen kopen koop betalen betaal verzenden stuur"
    " boeken boek overmaken verwijderen satın gönder öde ödeme sil ara rezervasyon kup kupić"  # noqa: RUF001 - Turkish
    " zapłać wyślij zarezerwuj usuń beli bayar kirim pesan hapus mua gửi đặt thanh chuyển"
    " xóa купи купить купите оплати оплатить заплати отправь отправить отправьте забронируй"
    " забронировать переведи удали удалить опубликуй подпиши позвони закажи заказать отмени"
    " продай купити надішли"
)
_ACTS: Final = frozenset(_ACTS_TEXT.split()) | MORE_ACTS
_ACT_PARTS_TEXT: Final = (
    "购买 買 购 支付 付款 发送 發送 寄 预订 预定 預訂 订购 转账 轉帳 删除 刪除 发布 發布"
    " 签名 簽署 打电话 取消 下单 卖 売 送信 送って 送る 予約 支払 注文 削除 投稿 署名 電話"
    " 振込 キャンセル 구매 결제 보내 전송 예약 송금 삭제 게시 서명 전화 주문 취소 اشتر شراء"
    " ادفع أرسل ارسل احجز حجز حول احذف انشر وقع اتصل ألغ खरीद भुगतान भेज बुक हटा कॉल ซื้อ"
    " จ่าย ส่ง จอง โอน ลบ"
)
_ACT_PARTS: Final = (*_ACT_PARTS_TEXT.split(), *MORE_ACT_PARTS)
_ASKS_TEXT: Final = (
    "ما من كم هل ماذا"
    " what whats which who whom whose when where why how is are does do did can explain"
    " explains describe describes summarize summarise summarizes summary translate"
    " translates convert converts calculate calculates compute computes compare compares"
    " list lists find finds search searches lookup look looks define defines definition"
    " meaning analyze analyse analyzes analysis classify classifies extract extracts detect"
    " detects identify identifies tell show shows give get gets fetch read reads query count"
    " counts estimate estimates forecast predict predicts check checks recommend suggest"
    " suggests answer answers solve rank score rate count measure parse parses validate"
    " verify inspect browse view weather price prices quote info information status lookup"
    " sum subtract multiply divide total average retrieve resolve sentiment recipe history"
    " has qué que cuál cual quién cuándo cuando dónde donde cómo como cuánto cuánta cuántos"
    " cuántas explica explicar describe describir resume resumir traduce traducir calcula"
    " calcular compara busca buscar encuentra dime muestra tiempo precio qual quem onde"
    " quanto quanta quantos explique resuma traduza calcule diga mostre che cosa quale chi"
    " quando dove come quanto spiega riassumi traduci calcola dimmi mostra quoi quel quelle"
    " quels quelles qui quand où comment combien pourquoi explique expliquez décris résume"
    " résumez traduis traduisez calcule calculez compare cherche trouve montre météo was wer"
    " wann wo wie warum wieviel welche welcher welches erkläre erklären beschreibe übersetze"
    " berechne vergleiche suche finde zeige nenne wat wie wanneer waar hoe waarom hoeveel"
    " welke leg ne nedir kim nerede nasıl kaç hangi açıkla özetle çevir hesapla co kto kiedy"  # noqa: RUF001 - Turkish
    " gdzie jak ile jaka jaki wyjaśnij przetłumacz oblicz apa siapa kapan mana bagaimana"
    " berapa jelaskan terjemahkan hitung gì ai đâu nào sao bao nhiêu giải dịch что кто когда"
    " где как сколько почему какой какая какие какое объясни опиши сравни найди покажи"
    " расскажи посчитай вычисли погода що хто коли де як скільки яка який"
)
_ASKS: Final = frozenset(_ASKS_TEXT.split())
_ASK_PARTS_TEXT: Final = (
    "什么 什麼 谁 哪 怎么 怎樣 多少 几 为什么 如何 解释 翻译 总结 计算 比较 查询 查找 天气"
    " 何 誰 いつ どこ どう なぜ いくら いくつ 教えて 説明 翻訳 要約 計算 比較 調べ 天気 무엇"
    " 뭐 누구 언제 어디 어떻게 얼마 왜 몇 설명 번역 요약 계산 날씨 알려 متى أين كيف"
    " لماذا اشرح ترجم لخص احسب الطقس क्या कौन कब कहाँ कैसे कितन क्यों बताइए बताओ समझा अनुवाद"
    " मौसम อะไร ใคร เมื่อ ที่ไหน อย่างไร เท่าไร อธิบาย แปล สรุป อากาศ"
)
_ASK_PARTS: Final = tuple(_ASK_PARTS_TEXT.split())


_THINGS_TEXT: Final = (
    "orders payments emails mails posts tweets books schedules transfers swaps trades calls"
    " votes charges refunds deposits stakes runs updates changes reservations moves follows"
    " bids"
)
_THINGS: Final = frozenset(_THINGS_TEXT.split())
"""Plurals that mean an act in a description, and an object of a question in a request."""

_NAMED_THINGS_TEXT: Final = (
    "order payment email mail post tweet book schedule transfer swap trade call vote charge"
    " refund deposit stake run update change reservation invoice phone sms text open close"
    " reply set text stop sign comment"
)
_IN_TEXTS: Final = frozenset(
    {"mail", "mails", "email", "emails", "phone", "text", "sms", "post", "posts", "invoice"}
)
"""Contents or kinds of texts: `Mask phone numbers` makes no phone call."""

_NAMED_THINGS: Final = _THINGS | frozenset(_NAMED_THINGS_TEXT.split())


def asks_for_act(request: str) -> bool:
    """Return whether a request may cause an act.

    True unless a word asks for information and none for an act.
    """
    if names_act(request):
        return True
    cut = request[:TEXT_CHARS_MAX]
    words = frozenset(words_of(_SPLIT.sub(" ", cut)))
    return not (words & _ASKS or has_part(cut, _ASK_PARTS))


_NOUN_PHRASE = re.compile(
    r"(?:an?|the|another|any)\s|[\d#]|[^\W\d_]+ of\s"
    r"|[^\W\d_]{3,}[^\Ws]s (?:for|from|in|between|at)\s",
    re.IGNORECASE,
)
_ONE_WORD = re.compile(r"[^\W\d_]{5,40}")
_QUESTION = re.compile(
    r"(?:is|are|was|were|what|which|who|whose|when|where|why|how)\b[^,;:.?!\n]{2,120}\?",
    re.IGNORECASE,
)
"""A question of one clause: in `Are you open on Monday?` nothing is to be opened."""

_JOINED = re.compile(r"\b(?:and|then|so|please)\b", re.IGNORECASE)
_NO_ACTS = re.compile(
    r"\b(?:signs? of|sets? of|runs? of|calls? for|(?:in|by|word|sort|rank) order|open source"
    r"|the order of|orders of magnitude)\b",
    re.IGNORECASE,
)
"""Phrases in which such a word does not mean an act."""
_A_TEXT = re.compile(
    r"\b(?:an?|the|any|this|that|each|of|in|from|into|as|some|given|plain) (?:\w{1,20} )?texts?\b",
    re.IGNORECASE,
)
"""Something to read; `text me` is an act."""


def names_act(text: str) -> bool:
    """Return whether a text contains a word of an act, other than as a thing or state."""
    cut = _A_TEXT.sub(" ", _NO_ACTS.sub(" ", text[:TEXT_CHARS_MAX]))
    words = frozenset(words_of(_SPLIT.sub(" ", cut)))
    is_question = _QUESTION.fullmatch(cut.strip()) and not _JOINED.search(cut)
    asked_about = _NAMED_THINGS if is_question else _THINGS
    return bool((words & _ACTS) - asked_about) or has_part(cut, _ACT_PARTS)


def tells_of_act(line: str) -> bool:
    """Return whether a line beside a call names an act anywhere, or begins with a possible one."""
    return names_act(line) or (words_of(line[:TEXT_CHARS_MAX]) or [""])[0] in _ACTS


_LEADS_TO_ORDER: Final = frozenset(
    {"please", "kindly", "and", "then", "now", "to", "must", "should"}
)


def orders_act(clause: str) -> bool:
    """Return whether a clause of a text orders its reader to act.

    `When I open the camera` describes an act; in other scripts than Latin, that counts too.
    """
    if not names_act(clause):
        return False
    words = words_of(_SPLIT.sub(" ", clause[:TEXT_CHARS_MAX]))
    before = ["please", *words]
    pairs = list(zip(before, words, strict=False))
    acts = [word in _ACTS for word in words]
    leads = [one in _LEADS_TO_ORDER for one, _ in pairs]
    return not any(acts) or any(a and lead for a, lead in zip(acts, leads, strict=True))


def orders_reader(clause: str) -> bool:
    """Like `orders_act`, for a text that is only read: agreed actions of others do not count."""
    if not names_act(clause):
        return False
    words = words_of(_SPLIT.sub(" ", clause[:TEXT_CHARS_MAX]))
    while words and words[0] in _JOINS:
        words = words[1:]
    pairs = list(zip(["please", *words], words, strict=False))
    acts = [word in _ACTS for word in words]
    descriptions = _LEADS_TO_ORDER - {"to", "and"}
    return not any(acts) or any(
        a and one in descriptions for a, (one, _) in zip(acts, pairs, strict=True)
    )


_JOINS: Final = frozenset({"and", "then", "so", "also", "or"})


def is_question_word(word: str) -> bool:
    """Return whether a word asks for information: what, how much, tell."""
    return word.casefold() in _ASKS


def names_thing(request: str) -> bool:
    """Return whether a request is not a sentence but the name of a thing to ask about."""
    text = request.strip()
    if names_act(text):
        return False
    return bool(_NOUN_PHRASE.match(text) or _ONE_WORD.fullmatch(text))


def does_act(name: str, description: str, *, says_it_reads: bool = False) -> bool:
    """Return whether a skill, tool or operation of that name and description may act.

    `says_it_reads`: its owner declares that it changes nothing, so an unusual name does not count.
    """
    words = words_of(_SPLIT.sub(" ", name[:TEXT_CHARS_MAX]))
    if words[:1] == ["add"] and _ADDS_UP.match(description.strip()):
        words, description = ["sum", *words[1:]], _ADDS_UP.sub("Sums ", description.strip())
    first = _SAYS_IN_OTHER_WORDS.sub("shows ", description[:TEXT_CHARS_MAX]).strip()
    first = _CLAUSE_END.split(first, maxsplit=1)[0]
    began = (words_of(first) or [""])[0]
    is_thing = began in _BEGINS_THING and not names_act(first)
    begins = words[0] if words else ""
    is_statement = not (frozenset(words_of(first)) & _ACTS) - _IN_TEXTS - {began}
    is_asked = (begins in _ASKS and begins not in _ACTS) or (begins in TELLS and is_statement)
    asks = is_thing or is_asked
    is_named = says_it_reads and (begins not in _ACTS or len(words) == 1)
    acts = frozenset(words) & _ACTS
    acts = acts - _NAMED_THINGS if asks or is_named else acts
    if acts or has_part(name + first, _ACT_PARTS):
        return True
    if began in _ACTS:
        return True
    is_named_thing = bool(NAMES_THING.match(first)) and not names_act(f"{name} {first}")
    is_description = asks or says_it_reads or is_named_thing or _tells(first)
    return not (is_description or not asks_for_act(first))


def begins_with_act(name: str, description: str) -> bool:
    """Return whether a skill's name has a word of an act, or its description begins with one."""
    began = (words_of(description[:TEXT_CHARS_MAX]) or [""])[0]
    return names_act(name) or began in _ACTS


def only_asks(name: str, descriptions: Sequence[str]) -> bool:
    """Return whether a name, or one of its descriptions, says that it gives information."""
    words = words_of(_SPLIT.sub(" ", name[:TEXT_CHARS_MAX]))
    if words and f"{words[0]}s" in TELLS and not names_act(name):
        return True
    return not all(does_act(name, line) for line in ("", *descriptions))


_CLAUSE_END = re.compile(r"[.;](?:\s|$)")
"""`Hand in a form; you get its number` begins with the act."""


def _tells(first: str) -> bool:
    """Return whether a description's first sentence names information, and no act."""
    words = frozenset(words_of(first))
    return not names_act(first) and bool(
        words & TELLS or any(part in first for part in TELLS_PARTS)
    )


_BEGINS_THING: Final = frozenset({"the", "a", "an", "whether", "how", "when"})
"""First words of descriptions that name a result, not an act."""

_ADDS_UP = re.compile(
    r"adds? (?:up )?(?:an? |the |any |all |two |three |some |several |given )*(?:\w+ )?"
    r"(?=(?:numbers|integers|decimals|fractions|durations|times|days|weeks|months|vectors|matrices"
    r"|amounts|values|lengths)\b)(?!.{0,60}\b(?:carts?|baskets?|accounts?|ledgers?|lists?|books?"
    r"|files?|tables?|database)\b)",
    re.IGNORECASE,
)
"""`Adds days to a date` computes; `Adds values to the ledger` acts."""

_SAYS_IN_OTHER_WORDS = re.compile(
    r"\b(?:writes?|puts?|turns?|changes?) (?:an? |the |any )?(?:\w+\s)?"
    r"(?:numbers?|dates?|amounts?|sums?|temperature\w?|durations?|digits|letters|numerals?|words?"
    r"|sentences?) (?:in|as|into)\b(?!.{0,60}\b(?:files?|disks?|databases?|tables?|stores?|ledgers?"
    r"|records?|documents?|registers?|accounts?|books?|logs?|lists?|calendars?|channels?|threads?"
    r"|sheets?|repo\w*)\b)",
    re.IGNORECASE,
)
"""`Writes a number in binary` computes; `Writes a number in the ledger` acts."""


_SENTENCE_END = re.compile(r"[.!?;\n]+(?:\s|$)")
_ADDRESS = re.compile(r"[^\d,:]{2,30},\s*")
_COURTESY_TEXT: Final = (
    "please kindly now then and so also hi hello hey dear can would could will you i we want need"
    " to like just go let us me must should ok okay bitte und dann jetzt kannst können könnten"
    " würden du sie ich will möchte mir hallo por favor y luego ahora puede puedes podría quiero"
    " hola plaît vous il s te plait et puis maintenant pouvez peux tu je veux voudrais bonjour e"
    " poi adesso ora puoi può vorrei ciao per favore agora então pode quero olá en dan nu kun kunt"
    " je ik wil i teraz proszę możesz chcę lütfen şimdi ve и затем теперь пожалуйста можешь можете"
    " хочу та потім тепер будь ласка можете"
)
_COURTESY: Final = frozenset(_COURTESY_TEXT.split())
_LEADS_TEXT: Final = (
    "bitte und dann y luego et puis poi agora então en dan lütfen ve и затем та потім"
)
_LEADS: Final = _LEADS_TO_ORDER | frozenset(_LEADS_TEXT.split())
_ASKS_POLITELY = re.compile(
    r"\W*(?:(?:can|could|would|will|won't|may) (?:you|i|we)|(?:kannst|könntest|würdest|willst) du"
    r"|(?:können|könnten|würden|wollen) sie|puedes?|podrías?|quieres?|(?:peux|pourrais|veux)-tu"
    r"|(?:pouvez|pourriez|voulez)-vous|tu peux|vous pouvez|puoi|può|potresti|potrebbe|vuoi|pode"
    r"|podes|poderia|(?:kun|kunt|wil|wilt) (?:je|u)|(?:czy )?możesz|może pan|можешь|можете"
    r"|могли бы|можна|ти можеш|ви можете)\b",
    re.IGNORECASE,
)


def orders(message: str) -> bool:
    """Return whether a sentence of a message orders its reader to act, as far as words tell.

    It does if it begins with a word of an act, after words of courtesy or an addressed name, or has
    one after a word that leads to it (`and send it`). In `a track of 2 m, drop 180 cm` nothing is
    to be dropped. In scripts without such words any word of an act counts.
    """
    cut = message[:TEXT_CHARS_MAX]
    if has_part(cut, _ACT_PARTS):
        return True
    return any(map(_is_order, _SENTENCE_END.split(cut)))


def _is_order(sentence: str) -> bool:
    plain = sentence.strip()
    both = (plain, _ADDRESS.sub("", plain, count=1) if _ADDRESS.match(plain) else plain)
    for text in both:
        words = words_of(_SPLIT.sub(" ", text))
        while words and words[0] in _COURTESY and words[0] not in _ACTS:
            words = words[1:]
        if words and words[0] in _ACTS:
            return True
    words = words_of(_SPLIT.sub(" ", plain))
    return any(a in _LEADS and b in _ACTS for a, b in pairwise(words))


def is_question(text: str) -> bool:
    """Return whether a text is a question that names no act: `Can you ...?` may ask for one."""
    plain = text.strip()
    return (
        plain.endswith(("?", "\uff1f", "\u061f"))
        and not names_act(plain)
        and not _ASKS_POLITELY.match(plain)
    )


_TALKS_TEXT: Final = (
    "chat ask question questions query answer answers talk prompt assistant converse"
    " conversation frage fragen pregunta preguntar demander chiedi pergunta"
)
_TALKS: Final = frozenset({*_TALKS_TEXT.split(), "completions"})
_MESSAGE: Final = re.compile(
    r"^(?:user_?|chat_?)?(?:messages?|question|query|prompt|input|text|content|utterance|msg|q|ask"
    r"|frage|pregunta|domanda|pergunta)$",
    re.IGNORECASE,
)
LIST = "messages"
"""Takes a list of messages with roles, like chat completions."""


def is_for_talk(path: str, about: str) -> bool:
    """Return whether a path ends like one that takes a message, and nothing says that it acts."""
    last = words_of(_SPLIT.sub(" ", path.rstrip("/").rpartition("/")[2]))
    return bool(last) and last[-1] in _TALKS and not names_act(path) and not names_act(about)


def message_in(schema: JsonObject) -> str:
    """Return the required argument that takes the message; empty without one."""
    properties, needed = schema.get("properties"), schema.get("required")
    declared: JsonObject = properties if is_object(properties) else {}
    required = [str(name) for name in needed] if is_array(needed) else []
    texts = [name for name in required if _is_text(declared.get(name), name)]
    named = [name for name in texts if _MESSAGE.match(name)]
    return next(iter(named), texts[0] if len(texts) == len(required) == 1 else "")


def _is_text(declared: JsonValue, name: str) -> bool:
    if not is_object(declared) or declared.keys() & {"enum", "const", "format", "pattern"}:
        return False
    kind = declared.get("type")
    return kind == "string" or (kind == "array" and name == LIST)
