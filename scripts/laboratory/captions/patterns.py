"""The sentence patterns of captions: the smallest sentence of each kind, before it grows."""

from collections.abc import Callable
from functools import cache, partial

from scripts.laboratory.captions.grammar import Grammar
from scripts.laboratory.captions.lexicon import COPULA, Phrase
from scripts.laboratory.captions.nouns import Impossible, can_be_pronoun
from scripts.laboratory.captions.relative import (
    DATIVE,
    OBJECT,
    may_have_relative,
    phrases_of,
    relative_clause,
    tense_of,
)
from scripts.laboratory.captions.tree import Clause, NounPhrase, Sentence, Tense


def draw_tense(grammar: Grammar) -> Tense:
    """The tense of a sentence."""
    draw = grammar.rng.random()
    if draw < 0.6:
        return "present"
    return "past" if draw < 0.88 else "future"


def simple(grammar: Grammar, tense: Tense) -> Clause:
    """Subject first, finite verb second."""
    return _negate(grammar, grammar.clause(tense, mode="present" if tense == "present" else None))


def inversion(grammar: Grammar, tense: Tense) -> Clause:
    """Time or place first, so that the subject follows the verb."""
    clause = grammar.clause(tense)
    if clause.verb.frame not in ("place", "direction") and grammar.chance(0.5):
        clause.place = grammar.place(clause.verb.where)
        clause.front = "place"
    else:
        add_time(grammar, clause)
        clause.front = "time"
    return clause


def modal(grammar: Grammar, tense: Tense) -> Clause:
    """A modal verb, its infinitive at the end."""
    return grammar.clause("present", mode="modal")


def perfect(grammar: Grammar, tense: Tense) -> Clause:
    """haben or sein, the participle at the end."""
    return _negate(grammar, grammar.clause("past"))


def separable(grammar: Grammar, tense: Tense) -> Clause:
    """The prefix at the end."""
    for _ in range(30):
        clause = grammar.clause(
            "present", ("intransitive", "accusative", "dative", "ditransitive"), mode="present"
        )
        if clause.verb.prefix:
            return clause
    raise Impossible


dative = partial(Grammar.clause, frames=DATIVE)
giving = partial(Grammar.clause, frames=("ditransitive",))
"""dative before accusative; English turns them round"""
measure = partial(Grammar.clause, frames=("measure",))
"""a number to copy: kosten, wiegen, dauern"""


def existential(grammar: Grammar, tense: Tense) -> Clause:
    """es gibt: something is there."""
    classes = frozenset({"person", "animal", "tree", "plant"})
    subject = grammar.noun_phrase(classes, form="indefinite")
    clause = Clause(grammar.uid(), COPULA, subject, is_existential=True)
    clause.place = grammar.place(frozenset({"outdoor", "settlement"}))
    clause.front = "place" if grammar.chance(0.6) else "subject"
    return clause


def object_first(grammar: Grammar, tense: Tense) -> Clause:
    """The object first; only the accusative of the masculine shows it."""
    for _ in range(40):
        clause = grammar.clause(tense, OBJECT)
        phrase = clause.accusative
        if phrase is None or phrase.gender != "m" or phrase.is_plural:
            continue
        if phrase.determiner in ("der", "dieser"):
            clause.front = "accusative"
            return clause
    raise Impossible


def subordinate(grammar: Grammar, tense: Tense) -> Clause:
    """A main clause with a subordinate clause that begins with weil, obwohl, während, bevor or
    wenn."""
    clause = main_clause(grammar, tense)
    add_subordinate(grammar, clause)
    return clause


def complement(grammar: Grammar, tense: Tense) -> Clause:
    """Somebody says or knows that something is so."""
    clause = grammar.clause(
        "present" if tense == "future" else tense,
        ("clause",),
        mode=None if tense == "past" else "present",
    )
    subject = None
    if can_be_pronoun(clause.subject) and grammar.chance(0.4):
        subject = grammar.pronoun(clause.subject)
    inner = _inner(grammar, tense, subject)
    inner.link = grammar.fixed(grammar.lexicon.that)
    inner.depth = 1
    clause.complement = inner
    return clause


def relative(grammar: Grammar, tense: Tense) -> Clause:
    """A noun phrase with a relative clause."""
    clause = main_clause(grammar, tense)
    candidates = [phrase for phrase in phrases_of(clause) if may_have_relative(clause, phrase)]
    phrase = grammar.choose(candidates)
    phrase.relative = relative_clause(grammar, phrase, tense, depth=1)
    return clause


def main_clause(grammar: Grammar, tense: Tense) -> Clause:
    """A main clause of one of the simple patterns."""
    return grammar.choose(_MAIN[tense])(grammar, tense)


_MAIN: dict[Tense, tuple[Callable[[Grammar, Tense], Clause], ...]] = {
    "present": (
        simple,
        simple,
        simple,
        inversion,
        inversion,
        modal,
        separable,
        dative,
        giving,
        Grammar.passive,
        Grammar.copula,
    ),
    "past": (
        perfect,
        perfect,
        perfect,
        inversion,
        inversion,
        Grammar.passive,
        dative,
        giving,
        Grammar.copula,
    ),
    "future": (Grammar.clause, Grammar.clause, inversion, dative),
}


def _inner(grammar: Grammar, tense: Tense, subject: NounPhrase | None) -> Clause:
    draw = grammar.rng.random()
    if draw < 0.2 and tense != "future":
        try:
            return grammar.copula(tense, subject)
        except Impossible:
            pass
    if draw > 0.9 and subject is None and tense != "future":
        return grammar.passive(tense)
    return grammar.clause(tense, subject=subject)


def _negate(grammar: Grammar, clause: Clause) -> Clause:
    """nicht or kein, now and then."""
    phrase = clause.accusative
    if clause.verb.frame in ("place", "measure", "direction") or not grammar.chance(0.1):
        return clause
    if phrase is not None and phrase.determiner == "ein":
        phrase.determiner = "kein"
    elif phrase is not None and (not phrase.is_definite or phrase.determiner == "jeder"):
        return clause
    clause.is_negated = True
    return clause


def add_time(grammar: Grammar, clause: Clause, max_tokens: int = 4) -> int:
    """Give the clause an adverb of time and return its length; a habit makes the English verb
    simple.

    Raises:
        Impossible: none fits.
    """
    time = grammar.time(clause)
    if len(time.de) > max_tokens:
        raise Impossible
    clause.time = time
    if "habit" in clause.time.phrase.kinds and clause.mode == "present":
        clause.is_habit = True
        if clause.shared is not None:
            clause.shared.is_habit = True
    return len(time.de)


def add_subordinate(grammar: Grammar, clause: Clause) -> Clause:
    """Append a subordinate clause; its subject is often a pronoun for the main one.

    Raises:
        Impossible: nothing fits.
    """
    inner = linked_clause(grammar, clause)
    clause.subordinate = inner
    return inner


def linked_clause(grammar: Grammar, main: Clause, *, with_pronoun: bool = True) -> Clause:
    """A subordinate clause with its conjunction, in the tense of the main clause."""
    tense = tense_of(main.mode)
    conjunctions = []
    for word in grammar.lexicon.conjunctions:
        if tense in word.kinds or _is_habitual(word, main):
            conjunctions.append(word)
    conjunction = grammar.choose(conjunctions)
    subject = None
    if (
        with_pronoun
        and not main.is_existential
        and can_be_pronoun(main.subject)
        and grammar.chance(0.55)
    ):
        subject = grammar.pronoun(main.subject)
    if "habit" in conjunction.kinds:
        inner = grammar.clause("present", mode="present", subject=subject)
        if inner.verb.is_state:
            raise Impossible
        main.is_habit = inner.is_habit = True
    else:
        inner = _inner(grammar, tense, subject)
    is_lasting = inner.predicate is not None or inner.verb.is_state
    if is_lasting and (main.predicate is not None or conjunction.de[0] in ("während", "bevor")):
        raise Impossible
    inner.link = grammar.fixed(conjunction)
    inner.depth = 1
    return inner


def _is_habitual(conjunction: Phrase, main: Clause) -> bool:
    return (
        "habit" in conjunction.kinds
        and main.mode == "present"
        and main.time is None
        and main.verb is not COPULA
        and not main.verb.is_state
    )


CLAUSE_PATTERNS: dict[str, Callable[[Grammar, Tense], Clause]] = {
    "simple": simple,
    "inversion": inversion,
    "modal": modal,
    "perfect": perfect,
    "future": Grammar.clause,
    "separable": separable,
    "dative": dative,
    "giving": giving,
    "passive": Grammar.passive,
    "copula": Grammar.copula,
    "measure": measure,
    "existential": existential,
    "object first": object_first,
    "subordinate": subordinate,
    "complement": complement,
    "relative": relative,
}
_SHORTEST = {
    "giving": 5,
    "existential": 6,
    "object first": 5,
    "measure": 5,
    "complement": 6,
    "subordinate": 7,
    "fronted clause": 7,
    "relative": 7,
    "coordination": 7,
}
_LONGEST = {"question": 16}
PATTERNS = (*CLAUSE_PATTERNS, "fronted clause", "question", "coordination")
"""The names of all patterns."""


@cache
def patterns_for(length: int) -> tuple[str, ...]:
    """The patterns that have sentences of this many source tokens."""
    return tuple(
        name for name in PATTERNS if _SHORTEST.get(name, 0) <= length <= _LONGEST.get(name, length)
    )


def draw_sentence(grammar: Grammar, pattern: str) -> Sentence:
    """The smallest sentence of a pattern.

    Raises:
        Impossible: the words drawn do not go together; draw again.
    """
    tense = draw_tense(grammar)
    if pattern == "future":
        tense = "future"
    if pattern == "fronted clause":
        main = main_clause(grammar, tense)
        main.front = "subject"
        uid = grammar.uid()
        opening = linked_clause(grammar, main, with_pronoun=False)
        sentence = Sentence(uid, [main], opening=opening)
    elif pattern == "question":
        clause = grammar.clause(
            tense,
            mode="perfect" if tense == "past" else "present",
        )
        sentence = Sentence(grammar.uid(), [clause], is_question=True)
    elif pattern == "coordination":
        clauses = [main_clause(grammar, tense), main_clause(grammar, tense)]
        sentence = Sentence(grammar.uid(), clauses, ["aber" if grammar.chance(0.25) else "und"])
    else:
        sentence = Sentence(grammar.uid(), [CLAUSE_PATTERNS[pattern](grammar, tense)])
    return sentence
