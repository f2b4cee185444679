"""Arabic, Hindi and Turkish of the sixth set: a glossary, amounts in words, parcels."""

# ruff: noqa: RUF001 - Turkish has a dotless letter

import re
import unicodedata
from decimal import Decimal

from tests.ground_truth.a2a_parts import Heard
from tests.ground_truth.fifth_base import Outcome

MARKET = {
    "خبز": ("pain", "bread"), "جبن": ("fromage", "cheese"), "حليب": ("lait", "milk"),
    "سمك": ("poisson", "fish"), "لحم": ("viande", "meat"), "دجاج": ("poulet", "chicken"),
    "بيض": ("œufs", "eggs"), "أرز": ("riz", "rice"), "عدس": ("lentilles", "lentils"),
    "زيتون": ("olives", "olives"), "تمر": ("dattes", "dates"), "عسل": ("miel", "honey"),
    "بصل": ("oignon", "onion"), "ثوم": ("ail", "garlic"), "طماطم": ("tomates", "tomatoes"),
    "خيار": ("concombre", "cucumber"), "جزر": ("carottes", "carrots"), "تفاح": ("pommes", "apples"),
    "برتقال": ("oranges", "oranges"), "عنب": ("raisin", "grapes"), "تين": ("figues", "figs"),
    "نعناع": ("menthe", "mint"), "ملح": ("sel", "salt"), "سكر": ("sucre", "sugar"),
}  # fmt: skip


def souk(heard: Heard) -> str:
    """كلمات السوق بالفرنسية والإنجليزية."""
    text = "".join(c for c in unicodedata.normalize("NFKC", heard.text)
                   if not unicodedata.combining(c))  # fmt: skip
    words = re.findall(r"[\u0621-\u064a]+|[a-zœ]+", text.lower())
    english = "نجليزي" in text
    lines: list[str] = []
    for word in words:
        stem = re.sub(r"^و?ال|^و(?=ال)", "", word)
        if stem in MARKET:
            french, other = MARKET[stem]
            lines.append(f"{stem}: {other if english else french}")
            continue
        back = next((arabic for arabic, pair in MARKET.items() if word in pair), None)
        if back:
            lines.append(f"{word}: {back}")
    if lines:
        return "\n".join(dict.fromkeys(lines))
    return "عذرا، هذه الكلمة ليست في معجمي. أعرف كلمات السوق مثل خبز وسمك وعسل."


TO_99 = (  # noqa: SIM905 - a hundred words
    "शून्य एक दो तीन चार पाँच छह सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह सोलह सत्रह अठारह उन्नीस "
    "बीस इक्कीस बाईस तेईस चौबीस पच्चीस छब्बीस सत्ताईस अट्ठाईस उनतीस तीस इकतीस बत्तीस तैंतीस चौंतीस "
    "पैंतीस छत्तीस सैंतीस अड़तीस उनतालीस चालीस इकतालीस बयालीस तैंतालीस चौवालीस पैंतालीस छियालीस "
    "सैंतालीस अड़तालीस उनचास पचास इक्यावन बावन तिरपन चौवन पचपन छप्पन सत्तावन अट्ठावन उनसठ साठ इकसठ "
    "बासठ तिरसठ चौंसठ पैंसठ छियासठ सड़सठ अड़सठ उनहत्तर सत्तर इकहत्तर बहत्तर तिहत्तर चौहत्तर पचहत्तर "
    "छिहत्तर सतहत्तर अठहत्तर उनासी अस्सी इक्यासी बयासी तिरासी चौरासी पचासी छियासी सत्तासी अट्ठासी "
    "नवासी नब्बे इक्यानवे बानवे तिरानवे चौरानवे पचानवे छियानवे सत्तानवे अट्ठानवे निन्यानवे"
).split()
STEPS = ((10_000_000, "करोड़"), (100_000, "लाख"), (1000, "हज़ार"), (100, "सौ"))


def in_hindi(number: int) -> str:
    """A number below a thousand crore in words."""
    if number == 0:
        return TO_99[0]
    said: list[str] = []
    for size, name in STEPS:
        count, number = divmod(number, size)
        if count:
            said.append(f"{in_hindi(count)} {name}")
    if number:
        said.append(TO_99[number])
    return " ".join(said)


def rupees(text: str, _talk: list[str]) -> Outcome:
    """राशि शब्दों में, जैसे चेक पर लिखी जाती है।"""
    plain = unicodedata.normalize("NFKC", text).translate(str.maketrans("०१२३४५६७८९", "0123456789"))
    hit = re.search(r"\d[\d,]*(?:\.\d{1,2})?", plain)
    if not hit:
        return Outcome("कृपया राशि अंकों में लिखें, जैसे ₹1,52,000 या 740.50", state="input-required")
    amount = Decimal(hit[0].replace(",", ""))
    if amount >= 10_000_000_000:
        return Outcome("यह राशि मेरी सीमा (एक हज़ार करोड़) से बाहर है।", state="failed")
    whole, paise = int(amount), int(amount * 100 % 100)
    said = f"{in_hindi(whole)} रुपये"
    if paise:
        said += f" और {in_hindi(paise)} पैसे"
    return Outcome(said + " मात्र")


PARCELS = {
    "KG-20417": ("yolda", "Ankara aktarma merkezinden çıktı", "yarın 12.00-15.00"),
    "KG-20418": ("teslim edildi", "Bornova, kapıda imza ile", ""),
    "KG-20433": ("dağıtımda", "Kadıköy kuryesinde", "bugün 17.00'ye kadar"),
    "KG-20460": ("şubede bekliyor", "Çankaya şubesi, 3 gün saklanır", ""),
    "KG-20502": ("gümrükte", "fatura bekleniyor", ""),
    "KG-20517": ("hazırlanıyor", "göndericiden alınacak", "iki iş günü"),
}


def kargo(heard: Heard) -> str:
    """Koli nerede."""
    numbers = re.findall(r"\bKG[- ]?(\d{5})\b", heard.text.upper())
    if not numbers:
        return "Takip numaranızı yazar mısınız? KG ile başlar, ardından beş rakam gelir."
    lines: list[str] = []
    for number in dict.fromkeys(numbers):
        row = PARCELS.get(f"KG-{number}")
        if row is None:
            lines.append(f"KG-{number}: Bu numarayla kayıtlı gönderi yok.")
            continue
        state, where, when = row
        lines.append(
            f"KG-{number}: {state}. {where}." + (f" Tahmini teslim: {when}." if when else "")
        )
    return "\n".join(lines)
