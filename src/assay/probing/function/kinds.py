"""Values of narrower kinds, for specialised services. One kind per row, the commonest first.

Data.
"""

from typing import Final

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
