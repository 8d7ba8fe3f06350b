"""Opinion words, verdicts, sentence plans and place remarks shared by every kind of review.

A plan has slots seen from the verdict: `o1`, `o2`, `o3` are clauses of the verdict's own side, `a1`, `a2` of the
other side (another aspect), `x1` of the other side about the same aspect as `o1`; `aexp` is what the other side
would lead one to expect, `oadj`, `ogen`, `aadj`, `aadj2`, `agen` are opinion words, `oout`, `aout` outcomes,
`scene` is an own scene, `verdict` an own verdict, `denial` one that denies words of the other side. ` || ` marks
where a remark about a place may stand. The plans know nothing of the label, so every connecting word occurs on both
sides.
"""

from __future__ import annotations

GRAVE = "!"  # ends a clause of blame that no praise outweighs

ADJECTIVES: dict[str, tuple[str, str]] = {
    "any": (
        "excellent superb wonderful brilliant delightful outstanding terrific splendid lovely fantastic great "
        "impressive remarkable exceptional magnificent admirable perfect satisfying refreshing fabulous fine "
        "first-rate faultless incredible marvelous commendable",
        "dreadful terrible awful dismal miserable hopeless pathetic disappointing appalling mediocre horrible "
        "horrid lousy poor inadequate unpleasant hideous disastrous unacceptable bad ridiculous laughable "
        "wretched abysmal shameful rotten",
    ),
    "product": (
        "sturdy reliable solid durable elegant handsome dependable robust practical beautiful sleek "
        "ingenious attractive tough well-made stylish",
        "flimsy unreliable fragile clumsy ugly cheap shoddy useless awkward brittle overpriced worthless tacky "
        "crude defective inferior faulty junky",
    ),
    "program": (
        "intuitive smooth clever responsive simple clear fast elegant polished logical useful stable thoughtful "
        "flexible powerful effortless",
        "confusing sluggish intrusive cluttered buggy frustrating unstable bloated irritating annoying clumsy "
        "useless tedious primitive messy pointless",
    ),
    "place": (
        "welcoming spotless friendly charming relaxed generous immaculate cheerful pleasant inviting tidy "
        "hospitable civilized graceful delightful comfortable",
        "grubby unfriendly dingy dirty shabby gloomy cramped neglected chaotic unwelcoming depressing stuffy "
        "filthy grim tired soulless squalid",
    ),
    "service": (
        "honest prompt courteous efficient careful thorough competent professional attentive patient punctual "
        "polite skilled trustworthy considerate diligent helpful fair",
        "careless slow dishonest rude sloppy evasive incompetent unprofessional lazy arrogant reckless "
        "disorganized greedy impatient indifferent negligent hostile unhelpful",
    ),
}

# One list per side, negative first, so that the label is the index.
VERDICTS: tuple[tuple[str, ...], tuple[str, ...]] = (
    (
        "I am [disgusted|disappointed|annoyed|furious|unhappy|fed up|dismayed|frustrated] with {obj}",
        "I regret [choosing {obj}|the whole decision|ever hearing of {obj}]",
        "I [warn|advise] everyone [against {obj}|to stay well away]",
        "the money was [wasted|thrown away|lost]",
        "{it} {be} a [disaster|mess|nightmare|failure|disgrace|joke|letdown|rip-off|fiasco|scandal]",
        "one star is [one too many|all I can give]",
        "I was [let down|cheated|misled|insulted] from start to finish",
        "I am [angry|embarrassed|ashamed|sorry] that I paid for {obj}",
        "I have lost all [patience|faith|confidence|trust]",
        "I would call {obj} {ogen}",
        "{it} {be}, in a word, {ogen}",
        "I feel [cheated|swindled|foolish|bitter|exploited]",
        "{it} {be} {ogen} and {oadj}",
        "I would avoid {obj}",
    ),
    (
        "I am [delighted|thrilled|happy|pleased|overjoyed|content|satisfied|smitten] with {obj}",
        "I [bless|celebrate] the day I [chose {obj}|heard of {obj}]",
        "I [recommend {obj} to everyone|urge everyone to try {obj}]",
        "the money was well [spent|invested]",
        "{it} {be} a [joy|pleasure|gem|triumph|treat|delight|bargain|blessing|success|marvel]",
        "five stars are [well deserved|the least I can give]",
        "I was [impressed|charmed|satisfied|amazed] from start to finish",
        "I am [glad|grateful|proud|relieved] that I paid for {obj}",
        "I have gained complete [trust|faith|confidence] in {obj}",
        "I would call {obj} {ogen}",
        "{it} {be}, in a word, {ogen}",
        "I feel [lucky|spoiled|grateful|reassured|cheerful]",
        "{it} {be} {ogen} and {oadj}",
        "I would choose {obj} again",
    ),
)

# Verdicts that deny words of the other side, and leave room for its arguments.
DENIALS: tuple[tuple[str, ...], tuple[str, ...]] = (
    (
        "I cannot recommend {obj} [to anyone|with a clear conscience]",
        "{it} {be} not worth the [price|money|trouble|praise]",
        "{it} {be} hardly the [bargain|gem|triumph|treat|pleasure] I was promised",
        "I would be lying if I said I was [happy|satisfied|pleased|impressed|delighted]",
        "I would not wish {obj} on a friend",
        "I cannot see why anyone [loves|praises|recommends] {obj}",
        "I am neither [pleased|happy|glad] nor [impressed|satisfied|grateful]",
        "no one should call {this} {thing} [a bargain|good value|a success|a treasure]",
        "I am not a [satisfied|happy|pleased] customer",
        "I will not be [smiling about|praising|recommending] {obj} any time soon",
    ),
    (
        "I cannot blame {obj} [for anything that counts|in good conscience]",
        "{it} {be} not [a waste of money|a mistake|something I regret]",
        "{it} {be} hardly the [disaster|disgrace|mess|nightmare|failure] I was warned of",
        "I would be lying if I said I was [unhappy|disappointed|annoyed|let down|sorry]",
        "I would not swap {obj} for any other",
        "I cannot see why anyone [hates|criticizes|rejects] {obj}",
        "I am neither [annoyed|sorry|angry] nor [disappointed|bored|bitter]",
        "no one should call {this} {thing} [a waste|poor value|a failure|a rip-off]",
        "I am not a [disappointed|unhappy|disgruntled] customer",
        "I will not be [complaining about|doubting|regretting] my choice any time soon",
    ),
)

# The same, leaving no room.
FLAT_DENIALS: tuple[tuple[str, ...], tuple[str, ...]] = (
    (
        "{it} never once [impressed|pleased|delighted] me",
        "I have nothing [good|kind|nice|flattering] to say about {obj}",
        "there is [little|nothing] to [love|enjoy|praise|admire] here",
        "nothing about {obj} [pleases|impresses|delights] me",
        "I have yet to find anything to [praise|love|admire]",
        "I cannot say that I am happy with {obj}",
        "I was not [impressed|charmed] for a moment",
    ),
    (
        "{it} never once [failed|annoyed|disappointed] me",
        "I have nothing [bad|harsh|unkind|critical] to say about {obj}",
        "there is [little|nothing] to [regret|dislike|criticize|complain about] here",
        "nothing about {obj} [bothers|irritates|disappoints] me",
        "I have yet to find anything to [criticize|regret|complain about]",
        "I have not a single complaint",
        "I was not [disappointed|annoyed] for a moment",
    ),
)

PLANS: dict[str, tuple[str, ...]] = {
    "plain": (
        "{verdict}. || {o1}, and {o2}.",
        "{o1}, {o2}, and {o3}. || {verdict}.",
        "after {time}, {verdict}: {o1}, and {o2}. || {scene}.",
        "{scene}. || {o1}, and {verdict}.",
        "{verdict}. || {scene}. {o1}.",
        "{o1}. || {scene}. || in the end I {oout}.",
    ),
    "mixed": (
        "although {a1}, {o1}, and {verdict}.",
        "{a1}, I admit. even so, {verdict}: {o1}.",
        "what matters most to me is that {o1}, not that {a1}. || {verdict}.",
        "{verdict}, even though {a1} and {a2}. || {o1}.",
        "{a1} and {a2}. all the same, {o1}, and on balance {verdict}.",
        "it is true that {a1}, but {o1}. || {verdict}.",
        "{verdict}. || {a1}, but that changes little when {o1}.",
        "[several|some|many] reviews mention that {a1}, and they are right. they forget to add that {o1}. "
        "|| {verdict}.",
        "{verdict}. || to be fair, {a1}. still, {o1}, and that decides it.",
        "while {a1}, {o1}. || after {time}, {verdict}.",
        "I give credit and blame where they are due: {a1}, yet {o1}, and {o2}. || all in all, {verdict}.",
        "{a1}. || {a2}. and yet {verdict}: {scene}.",
        "on the one hand {a1}; on the other, {o1}, and the second weighs far more. || {verdict}.",
    ),
    "denied": (
        "nobody could call {this} {thing} {aadj}. || {o1}, and {o2}.",
        "{it} {be} anything but {aadj}: {o1}. || {denial}.",
        "{it} {be} neither {aadj} nor {aadj2}. || {o1}, and {denial}.",
        "{denial}. || {o1}.",
        "after {time}, {denial}. || {o1}.",
        "never in {time} did I think of {obj} as {aadj}. || {o1}, and {o2}.",
        "I had read about {aexp}; I found nothing of the kind. || {o1}, and {denial}.",
        "I kept waiting for {aexp}, but there was no sign of them. || {o1}.",
        "{aadj} is the last word I would use: {o1}. || {denial}.",
        "who calls {this} {thing} {aadj}? not me: {o1}, and {o2}.",
        "my neighbor finds {obj} {aadj}; I do not. || {o1}, and {denial}.",
    ),
    "expected": (
        "I expected {aexp}. what I got was different: {o1}, and {o2}.",
        "the reviews led me to expect {aexp}. not at all: {o1}. || {verdict}.",
        "{hope}. but {o1}, {o2}, and {verdict}.",
        "had {it} been {aadj}, I would say so. in fact {o1}, and {denial}.",
        "I thought I would be writing that {x1}. in fact {o1}. || {verdict}.",
        "my [colleague|brother-in-law|aunt|roommate] called {obj} {agen}. that was not my experience: {o1}, "
        "and {o2}.",
        "other people call {obj} {agen} and {aadj}. || I cannot agree: {o1}, and {denial}.",
        "I nearly {aout} because {a1}. I am glad I did not: {o1}.",
        "given all I had read, I was sure of {aexp}. how wrong I was: {o1}. || {scene}.",
        "everyone told me that {x1}. not in my case: {o1}. || {denial}.",
    ),
    "compared": (
        "{old} {oldbe} {aadj} and {aadj2}. {new} {newbe} the opposite: {o1}, and {o2}.",
        "compared with {old}, which {oldbe} {aadj}, {new} {newbe} {oadj}. || {o1}.",
        "{old} brought me {aexp}. not so {new}: {o1}. || {verdict}.",
        "{old} {oldbe} so {aadj} that I assumed they all are. not this time: {o1}, and {o2}.",
        "I had been used to {aexp} with {old}. with {new}, {o1}, and {denial}.",
    ),
}

HOPES = ("I wanted to love {obj}, I really did", "I was ready to hate {obj}, I really was")

GOODS_REMARKS = (
    "I picked {obj} up at the branch in {place}",
    "I ordered online and collected {obj} from a store in {place}",
    "{it} came from the {city} warehouse in a plain brown box",
    "ordered from the {city} warehouse, delivered on a Tuesday",
    "I bought {obj} in {place} last spring",
    "the shop in {place} had two left",
    "I found {obj} in a small shop in {place}",
    "a courier brought {obj} over from {place}",
    "the seller is based in {city}",
    "my cousin in {place} has the same {thing}",
    "shipped from {city}, in case that matters to anyone",
    "I first saw {obj} in a shop window in {place}",
    "the receipt says {city}, though the box says something else",
    "the {city} branch had the same model in gray",
)

REMARKS: dict[str, tuple[str, ...]] = {
    "product": GOODS_REMARKS,
    "program": (
        "I use {obj} on the train to {place}",
        "I work in {place} most of the week",
        "a friend in {place} uses the same {thing}",
        "the company behind {obj} has an office in {city}",
        "I first heard of {obj} at a fair in {city}",
        "I tried {obj} at home and in {place}",
        "I am writing this from {city}, where I spend the winter",
        "my team is split between {city} and the countryside",
        "our office in {place} uses {obj} as well",
    ),
    "place": (
        "we were visiting family in {place}",
        "this is about the one in {place}",
        "we stopped there on our way to {place}",
        "it was our last day in {place}",
        "I mean the {city} branch, by the way",
        "I was working in {place} at the time",
        "we had come to {city} for a wedding",
        "a taxi driver in {city} gave us the address",
        "they have another one in {place}",
        "we had been walking around {city} since the morning",
    ),
    "service": (
        "they have a branch in {place}",
        "they work all over {place}",
        "this was their {city} team",
        "I had just moved to {place}",
        "the owner is from {city}",
        "a colleague from {place} gave me the number",
        "I called their office in {place}",
        "their main office is in {city}",
        "we live just outside {place}",
        "I am talking about the {city} branch",
    ),
}

# What stands in a remark's {place} when it names no city.
PLAIN_PLACES = (
    "the next town",
    "the next village",
    "the old town",
    "the city center",
    "the northern suburbs",
)
