"""Relative clauses of captions: where they may hang, and which role their pronoun fills."""

from scripts.laboratory.captions.grammar import Grammar
from scripts.laboratory.captions.nouns import Impossible, accepts
from scripts.laboratory.captions.tree import Clause, Mode, NounPhrase, PrepositionalPhrase, Tense

MEASURED = frozenset({"money", "weight", "duration", "material"})
"""classes of nouns that have no relative clause"""
DATIVE, OBJECT = ("dative",), ("accusative",)
"""frames of verbs"""


def tense_of(mode: Mode) -> Tense:
    """The tense of a mode."""
    return (
        "past"
        if mode in ("perfect", "past", "passive past")
        else "future"
        if mode == "future"
        else "present"
    )


def phrases_of(clause: Clause) -> list[NounPhrase]:
    """The noun phrases of a clause, those that a relative pronoun or a fronted clause replaces left
    out."""
    phrases: list[NounPhrase] = []
    if clause.gap != "subject":
        phrases.append(clause.subject)
    if clause.accusative is not None and clause.gap != "accusative":
        phrases.append(clause.accusative)
    if clause.dative is not None and clause.gap != "dative":
        phrases.append(clause.dative)
    for role, part in (
        ("prepositional", clause.prepositional),
        ("direction", clause.direction),
        ("place", clause.place),
    ):
        if isinstance(part, PrepositionalPhrase) and clause.gap != role:
            phrases.append(part.phrase)
    return [phrase for phrase in phrases if phrase.determiner != "pronoun"]


def may_have_relative(clause: Clause, phrase: NounPhrase) -> bool:
    """Whether a relative clause may hang on the phrase: on the subject, or on what English puts
    last."""
    if (
        phrase.noun is None
        or phrase.relative is not None
        or phrase.genitive is not None
        or phrase.attribute is not None
    ):
        return False
    if phrase.following or phrase.determiner == "kein" or phrase.noun.classes & MEASURED:
        return False
    if phrase is clause.subject and not clause.is_existential:
        return True
    trails = clause.time is not None and clause.front != "time" and not clause.time.phrase.is_mid
    trails = trails or clause.manner is not None
    others = [
        other
        for other in phrases_of(clause)
        if not (clause.front == "place" and _is_place(clause, other))
    ]
    last = others[-1] if not (clause.is_existential and clause.front == "place") else clause.subject
    return last is phrase and not trails and clause.means is None and clause.shared is None


def _is_place(clause: Clause, phrase: NounPhrase) -> bool:
    return clause.place is not None and clause.place.phrase is phrase


def relative_clause(grammar: Grammar, phrase: NounPhrase, tense: Tense, depth: int) -> Clause:
    """A relative clause for the phrase: it fills the subject, the object, or what a preposition
    governs.

    Raises:
        Impossible: nothing fits.
    """
    draw = grammar.rng.random()
    noun = phrase.noun
    if noun is None:
        raise Impossible
    if draw < 0.4 and not phrase.is_person:
        clause = _object_relative(grammar, phrase, tense)
    elif draw < 0.55 and phrase.is_person:
        clause = _dative_relative(grammar, phrase, tense)
    elif draw < 0.8 and noun.loc is not None:
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
        if verb is None or clause.accusative is None or accepts(verb.subject, phrase):
            continue  # "die Katze, die die Ente jagt" would say both
        if accepts(verb.object, phrase):
            clause.accusative, clause.gap = phrase, "accusative"
            return clause
    raise Impossible


def _dative_relative(grammar: Grammar, phrase: NounPhrase, tense: Tense) -> Clause:
    clause = grammar.clause(tense, DATIVE)
    if clause.verb is None or not accepts(clause.verb.object, phrase) or clause.verb.plus:
        raise Impossible
    clause.dative, clause.gap = phrase, "dative"
    return clause


def _place_relative(grammar: Grammar, phrase: NounPhrase, tense: Tense) -> Clause:
    noun = phrase.noun
    for _ in range(12):
        clause = grammar.clause(tense, ("place", "intransitive"))
        if (
            noun is not None
            and noun.loc is not None
            and clause.verb is not None
            and clause.verb.where & noun.classes
        ):
            clause.gap, clause.place = "place", None
            clause.gap_phrase = PrepositionalPhrase(
                grammar.uid(), noun.loc[0], noun.loc[1], "dat", phrase
            )
            return clause
    raise Impossible
