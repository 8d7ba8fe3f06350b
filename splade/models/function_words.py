"""English closed-class words: they carry grammar, not content, so they may not carry a label.

Determiners, pronouns, prepositions, conjunctions, auxiliaries, particles and negators, and the adverbs of
degree, time and connection that behave like them. Written for this package.
"""

from __future__ import annotations

_ARTICLES_AND_DETERMINERS = """
a an the this that these those each every either neither some any no none all both half another
other others such same own certain several few fewer fewest many much more most less least enough
lot lots plenty various
"""

_PRONOUNS = """
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself
she her hers herself it its itself they them their theirs themselves one ones oneself who whom whose
which what whoever whomever whatever whichever somebody someone something anybody anyone anything
everybody everyone everything nobody nothing somewhere anywhere everywhere nowhere thee thou thy ye
"""

_PREPOSITIONS = """
about above across after against along alongside amid amidst among amongst around as at atop away
back before behind below beneath beside besides between beyond by despite down during except for
forth from in inside into like near notwithstanding of off on onto opposite out outside over past
per plus regarding round since than through throughout till to together toward towards under
underneath unlike until unto up upon versus via vs with within without concerning aboard apart
"""

_CONJUNCTIONS = """
and or but nor so yet if unless whether because although though while whilst whereas when whenever
where wherever how however why once lest albeit provided hence thus therefore then else otherwise
meanwhile moreover furthermore nevertheless nonetheless
"""

_AUXILIARIES = """
am is are was were be been being isn aren wasn weren ain do does did done doing don doesn didn have
has had having haven hasn hadn will would shall should can could may might must ought won wouldn
shan shouldn couldn mayn mightn mustn needn cannot ll ve re d s t m o let lets
"""

_PARTICLES_AND_ADVERBS = """
not never ever also too very quite rather so just only even still already again almost nearly always
often sometimes usually seldom rarely now here there today soon later ago perhaps maybe indeed
really actually simply merely mostly mainly largely partly fairly pretty somewhat instead anyway
though well further far both first last next etc yes oh ok okay please whereby wherein whereas
thereby therein thereof hereby
"""

ENGLISH: frozenset[str] = frozenset(
    " ".join(
        (
            _ARTICLES_AND_DETERMINERS,
            _PRONOUNS,
            _PREPOSITIONS,
            _CONJUNCTIONS,
            _AUXILIARIES,
            _PARTICLES_AND_ADVERBS,
        )
    ).split()
)
