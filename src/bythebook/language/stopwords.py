"""Function words by language, used as stop words and for language detection."""

from __future__ import annotations

_WRITTEN = {
    "en": """
a about above after again against all am an and any are as at be because been before being below
between both but by can could did do does doing down during each few for from further had has have
having he her here hers him his how i if in into is it its itself just me more most my no nor not
of off on once only or other our out over own same she should so some such than that the their them
then there these they this those through to too under until up very was we were what when where
which while who whom whose why will with would you your many much used use using called tell
explain describe please mean show give
""",
    "de": """
aber als am an auch auf aus bei beim bin bis da damit dann das dass dem den denn der des die diese
dieser dieses doch du durch ein eine einem einen einer eines er es für gibt habe haben hat ich ihr
ihre im in ist ja kann kein keine können man mehr mich mir mit muss nach nicht noch nur oder ohne
sein sich sie sind so über um und uns unter vom von vor wann war warum was welche welcher welches
wenn wer werden wie wir wird wo wurde zu zum zur zwischen bedeutet erkläre
""",
    "fr": """
à ai au aux avec avoir c ce ces cet cette comme comment d dans de des donc du elle elles en est et
être eux faire fait faut il ils j je l la le les leur leurs lui m mais me moi mon n ne nos notre
nous on ont ou où par pas peut plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s
sa sans se ses si son sont sous sur t tous tout très tu un une vous y signifie explique
""",
    "es": """
a al algo ante como cómo con cual cuál cuáles cuando cuándo de del desde donde dónde dos el él ella
ellos en entre era es esa ese eso esta está están este esto estos fue ha hace han hasta hay la las
le les lo los más me mi muy no nos o para pero por porque pue puede que qué quien quién se ser si
sin sobre son su sus también tiene todo un una uno unos y ya yo significa explica
""",
    "it": """
a abbia agli ai al alla alle allo anche c che chi ci come con cosa cui d da dagli dai dal dalla
dalle dei del dell della delle dello di dove e è era essere fare gli ha hanno i il in io l la le lo
ma mi nei nel nella nelle nello non o per perché più può qual quale quali quando questa queste
questi questo se si sia sono su sua sul sulla suo tra tutti un una uno significa spiega
""",
    "pt": """
a à ao aos as às com como da das de dela dele do dos e é ela ele eles em entre era essa esse esta
está este eu foi há isso isto já lhe mais mas me mesmo meu muito na não nas nem no nos num numa o
onde os ou para pela pelo por porque porquê posso pode qual quais quando que quem são se sem ser
seu seus são só sua suas também te tem ter um uma você significa explique
""",
    "nl": """
aan al als ben bij dan dat de deze die dit door een en er geen had heb hebben heeft het hij hoe ik
in is je kan kunnen maar me meer met mij moet na naar niet nog nu of om omdat onder ons ook op over
te tot u uit van veel voor waar waarom was wat we welk welke wel werd wie wij wordt worden ze zich
zij zijn zo zou betekent
""",
    "sv": """
alla allt att av blev bli blir de dem den denna det detta dig din du där då efter ej eller en er
ett från för ha hade han har hon hur här i icke in inte jag kan man med men mig min mot mycket ni
nu när och om oss på sin sitt ska skulle som så till under upp ut vad var varför vara vem vi vid
vilka vilken vilket än är åt över
""",
    "da": """
af alle at blev blive bliver da de dem den denne der deres det dette dig din du efter eller en end
er et for fra ham han har havde hun hvad hvem hver hvilke hvilken hvilket hvor hvordan hvorfor hvis
i ikke ind jeg jer jo kan man med meget men mig min mod ned nogle nu når og også om op os over på
sig sin skal som så til ud under var ved vi vil være
""",
    "no": """
alle at av ble bli blir da de dem den denne deres det dette din du eller en enn er et etter for fra
ha han har hun hva hvem hver hvilke hvilken hvilket hvis hvor hvordan hvorfor i ikke inn jeg kan
man med meg men min mot når og også om opp oss over på seg sin skal som så til under ut var ved vi
vil være
""",
    "fi": """
ei eivät että he hän ja jo joka jos jotka kanssa koska kuin kuinka kun me mikä miksi millainen missä
miten mitkä mitä mukaan mutta myös ne niin nyt oli olla on ovat se sekä sen siitä siksi sinä tai
tämä voi voivat
""",
    "pl": """
a aby ale bez był była było być czy czym dla do go i ich ile ja jak jaka jaki jakie jako jest jego
jej już kiedy kto która które który która lub ma może można na nad nie niż o od oraz po pod przed
przez przy się są ta tak także tam te tego tej ten to tu tylko w we z za ze że co czego dlaczego
gdzie
""",
    "cs": """
a aby ale ani bez bude být byl byla bylo co či do ho i jak jaká jaké jaký jako je jeho její jejich
jen ještě již jsem jsou k kde kdo kdy která které který mezi může na nad ne nebo než o od po pod
podle pro proč proto před při s se si tak také tato tento to toho tohoto u v ve však z za že
""",
    "ro": """
a ai al ale am ar are au acest această aceste că care ce cea cei cel cele cine cu cum da dacă de
decât din după ea ei el este eu fi fie fost în între la le lor lui mai mult ne nici nu o pe pentru
poate prin sa să sau se sunt și un una unde unei unor unui
""",
    "hu": """
a az azt be csak de egy el én és ez ezt fel ha hanem hogy hogyan hol igen ki kell le lehet így ahol
aki ami amely mert meg mi miért mikor milyen mint mit most nagyon nem nincs ő pedig s sem számára
után vagy van volt
""",
    "tr": """
ama ancak bir bu biz çok da daha de değil diye en gibi hangi hem her için ile ise kadar ki kim mi
mı mu mü nasıl ne neden nedir nerede o olan olarak oldu onun sonra şu var ve veya ya yani yok
""",
    "id": """
ada adalah agar akan antara apa apakah atau bagaimana bagi bahwa bisa dalam dan dapat dari dengan di
harus ini itu jika juga kami karena kapan ke kepada kita lebih mana mengapa mereka oleh pada saat
saya sebagai secara serta seperti siapa sudah tidak untuk yang
""",
    "ru": """
а без более был была были было быть в вам вас весь во вот все всех вы где да для до его ее её если
есть еще ещё же за зачем и из или им их к как какая какие какое какой когда которая которые который
кто ли мне может можно мы на над не него нет но о об он она они оно от по под почему при с со так
также такое такой там то того только у уже что чтобы это этого этой этот я означает
""",
    "ur": "کا کی کے کو میں سے پر ہے ہیں اور یہ وہ کیا ایک نے تو بھی ہو",
}

FUNCTION_WORDS = {language: frozenset(words.split()) for language, words in _WRITTEN.items()}
