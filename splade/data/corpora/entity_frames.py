"""Sentences with slots for names: news, sports, business, letters, and ambiguous openings that only their end resolves.

`{per}` is a full name, `{last}` and `{first}` its parts, `{any}` one of the three; `{town}`, `{country}`, `{region}`,
`{river}` and `{place}` are places; `{club}`, `{firm}`, `{body}` organisations; `{nat}`, `{event}`, `{work}` miscellaneous; `{n}`,
`{k}` are numbers. Words are written with spaces as in running text.
"""

from __future__ import annotations

SPORTS = """
{club} beat {club} {n}-1 [at home|away|in the rain] on [Saturday|Sunday|Tuesday].
{per} scored twice as {club} drew {n}-{n} with {club}.
{club} {n} {club} {k}
{club} have signed {nat} [goalkeeper|striker|defender] {per} from {club} until [2027|2028|2029].
{nat} sprinter {per} won the {event} in {town} by {n} hundredths.
the coach of {club}, {per}, will miss the trip to {town}.
{last} of {country} beat {last} of {country} [2|3|4]-6, 6-[1|2|3|4], 6-[0|2|3].
after {n} rounds of the {event}, {per} leads {per} by one stroke.
{club} will play the {event} without {last}, who broke a finger in {town}.
"we were lucky," said {last} after {club} held {club} to a draw.
{per}, {k}, has never lost a race in {place}.
the {event} moves from {town} to {town} next year.
{per} and {per} rowed for {country} at the {event}.
fans of {club} sang until {last} came out to wave.
{nat} fans filled the square in {town} before the [final|match].
relegated {club} sacked {last} on Monday and asked {per} to take over.
at half time {club} led, but {last} turned the match.
{club} captain {per} lifted the {event} for the third time.
{per} beat the {nat} champion in [three|five] sets.
{town}: {per} ({country}) bt {per} ({country}) 6-[1|2|3|4] 6-2
the home side lost {n}-0; {club} go top, {club} stay last.
{club} defender {last} faces {club}, his former team, in the {event}.
"""

BUSINESS = """
{firm} will open a [warehouse|bakery|laboratory] in {town} and hire {k} people.
shares in {firm} [rose|fell] {n} percent after {firm} withdrew its offer.
{per}, the founder of {firm}, moves to {town}.
{firm} bought its {nat} rival {firm} for {k} million.
the {nat} maker of pumps said {last} would succeed {last}.
{firm} and {firm} are in talks about a [joint plant|merger] in {country}.
{n} of the ten largest employers in {place} are {nat}.
"our customers want repairs, not discounts," said {per} of {firm}.
{firm} names {per} head of sales for {country} and {country}.
dairy farmers in {region} sell most of their milk to {firm}.
the {body} lent {firm} {k} million for a tunnel under the {river}.
exports from {country} to {country} grew by {n} percent.
{firm} closes its last shop in {town} after {k} years.
{last} sold his stake in {firm} and bought a vineyard in {region}.
analysts at {firm} expect {nat} wheat to stay cheap.
a spokeswoman for {firm}, {per}, said the line in {town} would restart.
{firm} has moved its {nat} office from {town} to {town}.
under {last}, {firm} doubled its fleet.
the report by {firm} praises {firm} and says little about {firm}.
"""

NEWS = """
the mayor of {town}, {per}, opened the bridge on [Friday|Thursday].
{per} was elected to the {body} with {k} votes.
the {body} has asked {last} to explain the delay.
heavy rain closed the road from {town} to {town}.
{nat} and {nat} officials met in {town} for {n} hours.
{country} and {country} agreed to share the water of the {river}.
the {body} will study frogs along the {river}.
a {nat} ferry with {k} passengers ran aground off {place}.
the court in {town} heard {per}, a teacher from {place}.
firefighters from {town} and {town} worked all night.
Dr. {per} of the {body} found the coin in a field near {town}.
President {last} flies to {country} on Wednesday.
the {body} says that {n} in ten children in {place} learn {nat} at school.
police in {town} are looking for the owner of {n} goats.
{per} leaves {town} for a post at the {body}.
the {nat} parliament votes on the harbor of {town} in March.
judge {last} sent the case back to {town}.
"the river has never been so low," {per} told the {body}.
volunteers from the {body} counted {k} storks in {region}.
Mrs. {last}, who taught {nat} in {town} for {k} years, has died.
"""

CULTURE = """
{per} reads from "{work}" at the {body} tonight.
"{work}" by {nat} writer {per} won the {event}.
the choir of {town} sang {nat} carols in {country}.
{last} wrote "{work}" in a kitchen in {town}.
the {body} shows {nat} glass from {region}.
critics loved "{work}", but {last} never made another film.
a {nat} translation of "{work}" comes out in May.
the {event} for young cooks went to {per} of {town}.
"{work}" was shot in {place} with {per} in the leading part.
the {body} bought a letter in which {last} describes {town}.
{first} plays the ghost in "{work}", which opens in {town} on Sunday.
"""

LETTERS = """
dear {first}, the {nat} cheese has arrived and so has your cousin {first}.
{first} and I went to {town} to see the {event}.
my aunt {first} worked for {firm} before she moved to {country}.
I saw {any} on the bus to {town} yesterday.
thank {first} for the postcard from {place}.
our neighbor {any} has a brother at {firm}.
we drove through {region} and slept in {town}.
please ask {any} whether {first} still has my copy of "{work}".
when {first} was ten, we left {town} for {town}.
{first} says hello, and so do {first} and the dogs.
my {nat} is poor, but {first} speaks it well.
have you heard from {any} since the {event}?
the flight from {town} was late, and {first} had lost the tickets.
grandfather wrote to the {body} and got a reply from {per}.
{first}, do not forget the key.
our train stopped in {town}, where {first} bought {nat} newspapers.
I left {firm} in spring and now teach at the {body}.
did {first} ever tell you about the winter in {place}?
yours, {first}
"""

# The same opening with another kind of name: what follows decides.
OPENINGS = """
{first} is late again, so we will start dinner alone.
{town} is full again, so we will sleep in the next village.
{firm} is hiring again, so I sent in my papers.
{club} are late again, so the kick-off is moved to {n}.
we waited for {first}, but the doorbell never rang.
we waited for {club}, but the team bus had broken down.
we waited for {firm}, but the delivery never came.
we love {town}, above all in autumn when the hotels are empty.
we love {first}, above all for that laugh.
we love {club}, above all when they lose in the last minute.
everyone talks about {town} and its new tram.
everyone talks about {first} and that new hat.
everyone talks about {firm} and its new prices.
everyone talks about {work} and its last chapter.
{last} has changed: his beard is gone and so is his temper.
{town} has changed: its mills are gone and so is the market.
{firm} has changed: its shops are gone and so are the discounts.
after {k} years, {last} has retired to a farm.
after {k} years, {town} has a station again.
after {k} years, {firm} has made a profit again.
after {k} years, {club} have won a cup again.
{last} was quiet on Monday and refused to answer questions.
{town} was quiet on Monday and the shops stayed shut.
I have never liked {first}, although we are cousins.
I have never liked {town}, although I was born there.
I have never liked {firm}, although I work there.
I have never liked {country}, although the beaches are fine.
{last} fell by {n} percent in the polls and blamed his party.
{firm} fell by {n} percent in early trading.
{club} fell to ninth place.
write to {first} before the ship sails.
write to {firm} before the warranty ends.
what would {town} be without its harbor?
what would {first} do without a bicycle?
what would {club} do without their goalkeeper?
{last} lost to {last}, and nobody shook hands.
{club} lost to {club}, and nobody sang.
in the end {last} paid for everyone out of his own pocket.
in the end {town} paid for the flood out of the school budget.
in the end {firm} paid its workers what they were owed.
the news from {town} is good: the road is open.
the news from {first} is good: the baby is asleep.
the news from {firm} is good: orders are up.
{country} is dry in summer, so bring water.
{first} is rude in the morning, so bring coffee.
between {town} and {town} the train crawls.
between {first} and {first} there is not a word.
between {firm} and {firm} the price war goes on.
the {river} is brown after the storm and the boats stay ashore.
"""

# No entity at all, though some words look like one.
NOTHING = """
[reading|bathing|cooking] is what I do when it rains.
will you be home by {n}, or shall I eat alone?
may I have the recipe, and may I change it?
hope is a good breakfast but a bad supper.
grant money for the [choir|library] ran out in [May|March|June].
mark the date: the fair begins on the first of [April|August].
bath towels are on the lower shelf.
nice weather, bad roads, good soup.
the rose by the door has {k} buds.
the cook, the baker and the mayor's dog met at the well.
a turkey crossed the road in front of the school bus.
the target was missed by {n} percent.
our summit lasted {n} hours and ended in silence.
the bill came on Friday and nobody wanted to pay.
prices rose in April for the [third|fifth] month in a row.
the park is closed until the storm has passed.
to be frank, the second half was worse than the first.
dawn came late and the harbor stayed dark.
the page was torn where the price had been.
three rich brooks run through the west field.
the mobile library stops here on Mondays.
they split the deal and the sale fell through.
the cork broke and we drank water.
at {n} the referee looked at the clock and sent everyone home.
the committee will vote again in March.
goals win matches; grass wins nothing.
the harvest was poor, the orchard worse.
you never return what you borrow, least of all my [ladder|umbrella|patience].
orders for the spring are {n} percent lower than a year ago.
the beacon on the cliff was dark for {k} days.
wells were dug, pipes were laid, and still no water.
the ford was too deep for the truck.
in June the bees come back to the wall by the kitchen.
faith and a ladder got the cat down.
the board meets on Tuesday, and nobody knows why.
the museum is free on Sundays if you whistle.
no one was hurt, but {n} cows had to be calmed.
the team trained in the dark because a fuse had blown.
interest rates stay where they are, said the bank.
dear neighbor, your hens are in my beans.
the compass in my watch points at the fridge.
an anchor hangs over the bar and nobody remembers why.
"""

FRAMES: dict[str, tuple[str, ...]] = {
    kind: tuple(text.strip().splitlines())
    for kind, text in {
        "sports": SPORTS,
        "business": BUSINESS,
        "news": NEWS,
        "culture": CULTURE,
        "letters": LETTERS,
        "openings": OPENINGS,
        "nothing": NOTHING,
    }.items()
}
SHARES = {
    "sports": 0.17, "business": 0.15, "news": 0.15, "culture": 0.08, "letters": 0.15, "openings": 0.20, "nothing": 0.10,
}  # fmt: skip
