"""English word tables for claim verification.

Synonyms, scales of mutually exclusive words, numbers, units, and words that carry no claim.
"""

from __future__ import annotations

from bythebook.language.text import word_set

# Each line: synonyms that are interchangeable in any context.
SAME = """
use employ utilise utilize apply
provide offer supply give deliver
contain include comprise hold
begin start commence
end finish stop conclude terminate
need require demand
show demonstrate display exhibit
help assist aid support
allow permit let enable
prevent stop avoid
make create produce generate build construct form
get obtain receive acquire gain
buy purchase
choose select pick
happen occur arise
remain stay keep
change modify alter adjust
try attempt
tell inform report
say state write mention note
explain describe
compute calculate
find discover locate detect
join combine merge unite
send transmit
store save
run execute operate
ensure guarantee
cause lead result
mean signify denote
consist compose
depend rely
reach arrive attain
think believe consider
name term
founded establish
big large
small little tiny
fast quick rapid swift
quickly rapidly swiftly
slow slowly
hard difficult
easy simple straightforward
important significant crucial essential vital key
many numerous
whole entire complete full
approximately about roughly around nearly almost
often frequently
usually normally typically generally commonly
mainly primarily mostly chiefly largely
also additionally too
because since
therefore thus hence so
different distinct separate various
same identical equal
kind type sort
part component piece portion
way method manner approach
goal aim purpose objective
task job
error mistake
area region
people person human
people persons
several multiple
per each every
purpose intention
picture image
speed velocity
path route
movie film
car vehicle automobile
war conflict
king monarch
near close
"""

# Each line: positions on one scale, separated by "|". A claim and a passage with different
# positions on a scale contradict each other.
SCALES = """
more | less fewer | equal same
most | least fewest
higher taller upper | lower bottom
high tall | low short
larger bigger greater wider | smaller narrower tinier
large big great huge wide | small little tiny narrow
longer | shorter
long | short brief
faster quicker | slower
fast quick rapid quickly rapidly | slow slowly
earlier sooner | later
early | late
before prior | after | during
above over exceed | below under beneath underneath
increase raise rise grow gain boost | decrease reduce lower drop fall decline shrink lose loss
maximum maximal maximise maximize | minimum minimal minimise minimize
first initial initially | last final finally
begin start open opening | end stop close finish
always | never | sometimes | often frequently | usually normally typically generally | rarely
all every each any entirely | some several | many numerous | most mostly majority | few | none
must has-to obliged | may can could might optionally | should ought
required mandatory necessary obligatory | optional unnecessary
only solely exclusively | also
allow permit enable let | prevent forbid prohibit block disable deny ban
accept | refuse decline
include | exclude
improve better best enhance | worsen worse worst degrade
strong stronger strengthen | weak weaker weaken
up upward upwards rise | down downward downwards
left | right
inside within inner | outside beyond outer
front ahead | behind back rear
same identical | different
true correct right | false wrong incorrect
push | pull
send publish emit transmit | receive subscribe
input | output
read | write
client | server
parent | child
add | remove delete subtract
create build | destroy demolish
attach connect | detach disconnect
enter arrive | leave depart exit
buy purchase | sell
win victory won | lose defeat lost
succeed success succeeded | fail failure failed
hot warm heat | cold cool
light lightweight lighter | heavy heavier
bright | dark
new newer modern | old older ancient
young | old
full | empty
near close nearer | far distant farther
open | closed shut
local | remote global
fixed constant static | moving variable dynamic
north northern | south southern | east eastern | west western
positive | negative
odd | even
single one | double two twice | triple three | half
synchronous | asynchronous
continuous | discrete
agree | disagree
love like | hate dislike
male man men boy | female woman women girl
easy easier simple | hard difficult harder complex
cheap cheaper | expensive costly
safe safely | dangerous unsafe
known | unknown
present | absent
active | inactive passive
accurate precise exact | inaccurate imprecise rough
nanosecond | microsecond | millisecond | second | minute | hour | day | week | month | year
decade | century
metre | kilometre | centimetre | millimetre | mile | foot | inch | yard
gram | kilogram | tonne ton | pound | ounce
hertz | kilohertz | megahertz | gigahertz
byte | kilobyte | megabyte | gigabyte | terabyte
hundred | thousand | million | billion | trillion
celsius | fahrenheit | kelvin
percent | degree
red | blue | green | yellow | black | white
monday | tuesday | wednesday | thursday | friday | saturday | sunday
january | february | march | april | june | july | august | september | october
november | december | january | june | july
"""

# Units after a number: abbreviation -> word.
UNITS = {
    "%": "percent",
    "km": "kilometre",
    "m": "metre",
    "cm": "centimetre",
    "mm": "millimetre",
    "kg": "kilogram",
    "g": "gram",
    "s": "second",
    "sec": "second",
    "min": "minute",
    "h": "hour",
    "ms": "millisecond",
    "hz": "hertz",
    "khz": "kilohertz",
    "mhz": "megahertz",
    "ghz": "gigahertz",
    "kb": "kilobyte",
    "mb": "megabyte",
    "gb": "gigabyte",
    "tb": "terabyte",
    "°": "degree",
    "°c": "celsius",
    "°f": "fahrenheit",
}
MEASURES = word_set(
    "nanosecond microsecond millisecond second minute hour day week month year decade century "
    "metre kilometre centimetre millimetre mile foot inch yard gram kilogram tonne pound ounce "
    "hertz kilohertz megahertz gigahertz byte kilobyte megabyte gigabyte terabyte hundred thousand "
    "million billion trillion celsius fahrenheit kelvin percent degree pixel litre watt volt newton"
)
# Spelling variants and irregular forms -> base form.
SPELLINGS = {
    "meter": "metre",
    "meters": "metre",
    "metres": "metre",
    "kilometer": "kilometre",
    "kilometers": "kilometre",
    "centimeter": "centimetre",
    "centimeters": "centimetre",
    "millimeter": "millimetre",
    "millimeters": "millimetre",
    "percentage": "percent",
    "feet": "foot",
    "men": "man",
    "women": "woman",
    "children": "child",
    "began": "begin",
    "begun": "begin",
    "built": "build",
    "made": "make",
    "gave": "give",
    "given": "give",
    "held": "hold",
    "kept": "keep",
    "sent": "send",
    "said": "say",
    "found": "find",
    "led": "lead",
    "left": "leave",
    "lost": "lose",
    "won": "win",
    "wrote": "write",
    "written": "write",
    "took": "take",
    "taken": "take",
    "chosen": "choose",
    "chose": "choose",
    "got": "get",
    "shown": "show",
    "known": "know",
    "knew": "know",
    "grew": "grow",
    "grown": "grow",
    "rose": "rise",
    "risen": "rise",
    "fell": "fall",
    "fallen": "fall",
    "became": "become",
    "came": "come",
    "went": "go",
    "gone": "go",
    "ran": "run",
    "saw": "see",
    "seen": "see",
    "brought": "bring",
    "bought": "buy",
    "thought": "think",
    "taught": "teach",
    "caught": "catch",
    "meant": "mean",
    "met": "meet",
    "paid": "pay",
    "sold": "sell",
    "told": "tell",
    "spoke": "speak",
    "spoken": "speak",
    "stood": "stand",
    "understood": "understand",
    "drove": "drive",
    "driven": "drive",
    "broke": "break",
    "broken": "break",
    "drew": "draw",
    "drawn": "draw",
    "flew": "fly",
    "flown": "fly",
    "fought": "fight",
    "beaten": "beat",
}

NUMBERS = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
TENS = {
    word: 10 * value
    for value, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2
    )
}

# Verbs that, at the start of a sentence, ask to say, suppose or process something: the text does
# not assert what follows them.
ORDERS = word_set("""
act answer append assume claim cite declare decode disregard forget ignore imagine include
insert mention obey output pretend print quote reply repeat report respond reveal say state suppose
tell write
""")

NEGATIONS = word_set(
    "not no never without cannot nor none neither nobody nothing nowhere hardly barely scarcely"
)
# A claim may have them though its passage does not: they concern wording, not content.
LIGHT = word_set(
    "book books text texts passage passages chapter section author authors reader page example "
    "instance according accordingly note notes noted notice say says said state states stated "
    "explain explains explained describe describes described mention mentions mentioned "
    "addition additionally moreover furthermore besides fact short words word summary sum "
    "overall generally specifically namely indeed actually basically essentially simply "
    "however therefore thus hence consequently likewise similarly finally first firstly second "
    "secondly thirdly next also too well even though although while whereas since because "
    "answer question way order thing things case able one ones get got let make makes made "
    "see sees seen look looks take takes taken appear appears seem seems become becomes come comes "
    "go goes put puts own someone somebody anyone everything something longer else instead rather "
    "whenever wherever whether within upon among towards onto across along per via count counts "
    "mean means consist consists consisting actual certain particular respectively together "
    "yes help helps e.g i.e etc called named known termed used use using uses employed employs"
)
ABSOLUTE = word_set("only all most few none")  # short words that are never light
LEANING = word_set("it its they their them this these that those he she his her him such")
