"""Words by which descriptions of tools, operations and skills say that they only inform. Data.

By language: verbs as descriptions have them (infinitive, third person, imperative), and nouns of
information. None of them is a word of an act in any of these languages.
"""

import re
from typing import Final

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
