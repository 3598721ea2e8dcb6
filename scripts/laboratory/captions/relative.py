"""Relative clauses of captions: where they may hang, and which role their pronoun fills."""

from scripts.laboratory.captions.grammar import Grammar
from scripts.laboratory.captions.nouns import Impossible, accepts
from scripts.laboratory.captions.tree import Clause, Mode, NounPhrase, Tense

MEASURED = frozenset({"money", "weight", "duration"})
"""classes of nouns that have no relative clause"""
DATIVE = ("dative",)
OBJECT = ("accusative",)
"""frames of verbs"""


def tense_of(mode: Mode) -> Tense:
    """The tense of a mode."""
    if mode in ("perfect", "past", "passive past"):
        return "past"
    return "future" if mode == "future" else "present"


def phrases_of(clause: Clause) -> list[NounPhrase]:
    """The noun phrases of a clause, those that a relative pronoun or a fronted clause replaces left
    out."""
    phrases: list[NounPhrase] = []
    for role in ("subject", "accusative", "dative"):
        phrase = getattr(clause, role)
        if phrase is not None and clause.gap != role:
            phrases.append(phrase)
    for governed in (clause.prepositional, clause.direction, clause.place):
        if governed is not None:
            phrases.append(governed.phrase)
    return [phrase for phrase in phrases if phrase.determiner != "pronoun"]


def may_have_relative(clause: Clause, phrase: NounPhrase) -> bool:
    """Whether a relative clause may hang on the phrase: on the subject, or on what English puts
    last."""
    if phrase.name or phrase.has_tail:
        return False
    if phrase.following or phrase.determiner == "kein":
        return False
    if phrase is clause.subject and not clause.is_existential:
        return True
    if clause.manner is not None or clause.shared is not None:
        return False
    if clause.time is not None and clause.front != "time" and not clause.time.phrase.is_mid:
        return False
    phrases = phrases_of(clause)
    if (
        clause.front == "place"
        and clause.place is not None
        and phrases[-1:] == [clause.place.phrase]
    ):
        phrases.pop()
    return phrases[-1] is phrase


def relative_clause(grammar: Grammar, phrase: NounPhrase, tense: Tense, depth: int) -> Clause:
    """A relative clause for the phrase: it fills the subject, the object, or what a preposition
    governs.

    Raises:
        Impossible: nothing fits.
    """
    draw = grammar.rng.random()
    if draw < 0.4 and not phrase.is_person:
        clause = _object_relative(grammar, phrase, tense)
    elif draw < 0.55 and phrase.is_person:
        clause = _dative_relative(grammar, phrase, tense)
    elif draw < 0.8 and phrase.noun.loc is not None:
        clause = _place_relative(grammar, phrase, tense)
    elif draw > 0.8 and tense != "future":
        clause = grammar.copula(tense, phrase)
        clause.gap = "subject"
    else:
        clause = grammar.clause(tense, subject=phrase)
        clause.gap = "subject"
    if any(not other.determiner and other.is_plural for other in phrases_of(clause)):
        raise Impossible  # "die Frau, der Kellner helfen": the pronoun would read as an article
    clause.depth = depth
    return clause


def _object_relative(grammar: Grammar, phrase: NounPhrase, tense: Tense) -> Clause:
    for _ in range(12):
        clause = grammar.clause(tense, OBJECT)
        verb = clause.verb
        if clause.accusative is None or accepts(verb.subject, phrase):
            continue  # "die Katze, die die Ente jagt" would say both
        if accepts(verb.object, phrase):
            clause.accusative = phrase
            clause.gap = "accusative"
            return clause
    raise Impossible


def _dative_relative(grammar: Grammar, phrase: NounPhrase, tense: Tense) -> Clause:
    clause = grammar.clause(tense, DATIVE)
    if not accepts(clause.verb.object, phrase) or clause.verb.plus:
        raise Impossible
    clause.dative = phrase
    clause.gap = "dative"
    return clause


def _place_relative(grammar: Grammar, phrase: NounPhrase, tense: Tense) -> Clause:
    noun = phrase.noun
    assert noun.loc is not None  # as `relative_clause` has seen
    for _ in range(12):
        clause = grammar.clause(tense, ("place", "intransitive"))
        if clause.verb.where & noun.classes:
            clause.gap = "place"
            clause.place = None
            clause.gap_phrase = grammar.prepositional(*noun.loc, phrase)
            return clause
    raise Impossible
