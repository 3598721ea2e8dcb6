"""The sentence patterns of the embedded corpus: the smallest sentence of each kind, before it grows."""

from __future__ import annotations

from collections.abc import Callable

from seq2seq_attn.text.captions_grammar import Grammar, Impossible, accepts, can_be_pronoun
from seq2seq_attn.text.captions_lexicon import Phrase
from seq2seq_attn.text.captions_tree import Clause, Mode, NounPhrase, PrepositionalPhrase, Sentence, Tense

_DASS = Phrase(("dass",), ("that",), ((0, 0),), frozenset(), False)
_DATIVE = ("dative",)
_OBJECT = ("accusative",)
_NEVER_RELATIVE = frozenset({"money", "weight", "duration", "material"})


def draw_tense(grammar: Grammar) -> Tense:
    """The tense of a sentence."""
    draw = grammar.rng.random()
    return "present" if draw < 0.6 else "past" if draw < 0.88 else "future"


def simple(grammar: Grammar, tense: Tense) -> Clause:
    """Subject first, finite verb second."""
    return _negate(grammar, grammar.clause(tense, mode="present" if tense == "present" else None))


def inversion(grammar: Grammar, tense: Tense) -> Clause:
    """Time or place first, so that the subject follows the verb."""
    clause = grammar.clause(tense)
    if clause.verb is not None and clause.verb.frame not in ("place", "direction") and grammar.chance(0.5):
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


def future(grammar: Grammar, tense: Tense) -> Clause:
    """werden, the infinitive at the end."""
    return grammar.clause("future")


def separable(grammar: Grammar, tense: Tense) -> Clause:
    """The prefix at the end."""
    for _ in range(30):
        clause = grammar.clause("present", ("intransitive", "accusative", "dative", "ditransitive"), mode="present")
        if clause.verb is not None and clause.verb.prefix:
            return clause
    raise Impossible


def dative(grammar: Grammar, tense: Tense) -> Clause:
    """A verb that governs the dative."""
    return grammar.clause(tense, _DATIVE)


def giving(grammar: Grammar, tense: Tense) -> Clause:
    """Dative before accusative; English turns them round."""
    return grammar.clause(tense, ("ditransitive",))


def passive(grammar: Grammar, tense: Tense) -> Clause:
    """werden with the participle, the agent behind von."""
    return grammar.passive(tense)


def copula(grammar: Grammar, tense: Tense) -> Clause:
    """Such and such is so."""
    return grammar.copula(tense)


def measure(grammar: Grammar, tense: Tense) -> Clause:
    """A number to copy: kosten, wiegen, dauern."""
    return grammar.clause(tense, ("measure",))


def existential(grammar: Grammar, tense: Tense) -> Clause:
    """es gibt."""
    return grammar.existential()


def object_first(grammar: Grammar, tense: Tense) -> Clause:
    """The object first; only the accusative of the masculine shows it."""
    for _ in range(40):
        clause = grammar.clause(tense, _OBJECT)
        phrase = clause.accusative
        if phrase is None or phrase.noun is None or phrase.gender != "m" or phrase.is_plural:
            continue
        if phrase.determiner in ("der", "dieser"):
            clause.front = "accusative"
            return clause
    raise Impossible


def subordinate(grammar: Grammar, tense: Tense) -> Clause:
    """A clause with one that begins with weil, obwohl, während, bevor or wenn."""
    clause = main_clause(grammar, tense)
    add_subordinate(grammar, clause)
    return clause


def complement(grammar: Grammar, tense: Tense) -> Clause:
    """Somebody says or knows that something is so."""
    clause = grammar.clause(
        "present" if tense == "future" else tense, ("clause",), mode=None if tense == "past" else "present"
    )
    subject = None
    if can_be_pronoun(clause.subject) and grammar.chance(0.4):
        subject = grammar.pronoun(clause.subject)
    inner = _inner(grammar, tense, subject)
    inner.link = grammar.fixed(_DASS)
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
    "present": (simple, simple, simple, inversion, inversion, modal, separable, dative, giving, passive, copula),
    "past": (perfect, perfect, perfect, inversion, inversion, passive, dative, giving, copula),
    "future": (future, future, inversion, dative),
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
    verb, phrase = clause.verb, clause.accusative
    if verb is None or verb.frame in ("place", "measure", "direction") or not grammar.chance(0.1):
        return clause
    if phrase is not None and phrase.determiner == "ein":
        phrase.determiner = "kein"
    elif phrase is not None and (not phrase.is_definite or phrase.determiner == "jeder"):
        return clause
    clause.is_negated = True
    return clause


def add_time(grammar: Grammar, clause: Clause, max_tokens: int = 4) -> int:
    """Give the clause an adverb of time and return its length; a habit makes the English verb simple.

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
    conjunction = grammar.choose(
        [word for word in grammar.lexicon.conjunctions if tense in word.kinds or _is_habitual(word, main)]
    )
    subject = None
    if with_pronoun and not main.is_existential and can_be_pronoun(main.subject) and grammar.chance(0.55):
        subject = grammar.pronoun(main.subject)
    if "habit" in conjunction.kinds:
        inner = grammar.clause("present", mode="present", subject=subject)
        if inner.verb is not None and inner.verb.is_state:
            raise Impossible
        main.is_habit = inner.is_habit = True
    else:
        inner = _inner(grammar, tense, subject)
    if inner.predicate is not None and (main.predicate is not None or conjunction.de[0] in ("während", "bevor")):
        raise Impossible
    inner.link = grammar.fixed(conjunction)
    inner.depth = 1
    return inner


def _is_habitual(conjunction: Phrase, main: Clause) -> bool:
    return (
        "habit" in conjunction.kinds
        and main.mode == "present"
        and main.time is None
        and main.verb is not None
        and not main.verb.is_state
    )


def tense_of(mode: Mode) -> Tense:
    """The tense of a mode."""
    return "past" if mode in ("perfect", "past", "passive past") else "future" if mode == "future" else "present"


def phrases_of(clause: Clause) -> list[NounPhrase]:
    """The noun phrases of a clause, those that a relative pronoun or a fronted clause replaces left out."""
    found: list[NounPhrase] = []
    if clause.gap != "subject":
        found.append(clause.subject)
    if clause.accusative is not None and clause.gap != "accusative":
        found.append(clause.accusative)
    if clause.dative is not None and clause.gap != "dative":
        found.append(clause.dative)
    for role, part in (
        ("prepositional", clause.prepositional),
        ("direction", clause.direction),
        ("place", clause.place),
    ):
        if isinstance(part, PrepositionalPhrase) and clause.gap != role:
            found.append(part.phrase)
    return [phrase for phrase in found if phrase.determiner != "pronoun"]


def may_have_relative(clause: Clause, phrase: NounPhrase) -> bool:
    """Whether a relative clause may hang on the phrase: on the subject, or on what English puts last."""
    if (
        phrase.noun is None
        or phrase.relative is not None
        or phrase.genitive is not None
        or phrase.attribute is not None
    ):
        return False
    if phrase.following or phrase.determiner == "kein" or phrase.noun.classes & _NEVER_RELATIVE:
        return False
    if phrase is clause.subject and not clause.is_existential:
        return True
    trails = clause.time is not None and clause.front != "time" and not clause.time.phrase.is_mid
    trails = trails or clause.manner is not None
    others = [other for other in phrases_of(clause) if not (clause.front == "place" and _is_place(clause, other))]
    last = others[-1] if not (clause.is_existential and clause.front == "place") else clause.subject
    return last is phrase and not trails and clause.means is None and clause.shared is None


def _is_place(clause: Clause, phrase: NounPhrase) -> bool:
    return clause.place is not None and clause.place.phrase is phrase


def relative_clause(grammar: Grammar, phrase: NounPhrase, tense: Tense, depth: int) -> Clause:
    """A relative clause for the phrase: it fills the subject, the object, or what a preposition governs.

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
        clause = grammar.clause(tense, _OBJECT)
        if clause.verb is not None and accepts(clause.verb.object, phrase) and clause.accusative is not None:
            clause.accusative, clause.gap = phrase, "accusative"
            return clause
    raise Impossible


def _dative_relative(grammar: Grammar, phrase: NounPhrase, tense: Tense) -> Clause:
    clause = grammar.clause(tense, _DATIVE)
    if clause.verb is None or not accepts(clause.verb.object, phrase) or clause.verb.plus:
        raise Impossible
    clause.dative, clause.gap = phrase, "dative"
    return clause


def _place_relative(grammar: Grammar, phrase: NounPhrase, tense: Tense) -> Clause:
    noun = phrase.noun
    for _ in range(12):
        clause = grammar.clause(tense, ("place", "intransitive"))
        if noun is not None and noun.loc is not None and clause.verb is not None and clause.verb.where & noun.classes:
            clause.gap, clause.place = "place", None
            clause.gap_phrase = PrepositionalPhrase(grammar.uid(), noun.loc[0], noun.loc[1], "dat", phrase)
            return clause
    raise Impossible


CLAUSE_PATTERNS: dict[str, Callable[[Grammar, Tense], Clause]] = {
    "simple": simple,
    "inversion": inversion,
    "modal": modal,
    "perfect": perfect,
    "future": future,
    "separable": separable,
    "dative": dative,
    "giving": giving,
    "passive": passive,
    "copula": copula,
    "measure": measure,
    "existential": existential,
    "object first": object_first,
    "subordinate": subordinate,
    "complement": complement,
    "relative": relative,
}
PATTERNS = (*CLAUSE_PATTERNS, "fronted clause", "question", "coordination")
"""The names of all patterns."""


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
        sentence = Sentence(grammar.uid(), [main], opening=linked_clause(grammar, main, with_pronoun=False))
    elif pattern == "question":
        clause = grammar.clause(
            "past" if tense == "past" else "present", mode="perfect" if tense == "past" else "present"
        )
        sentence = Sentence(grammar.uid(), [clause], is_question=True)
    elif pattern == "coordination":
        first, second = main_clause(grammar, tense), main_clause(grammar, tense)
        sentence = Sentence(grammar.uid(), [first, second], ["aber" if grammar.chance(0.25) else "und"])
    else:
        sentence = Sentence(grammar.uid(), [CLAUSE_PATTERNS[pattern](grammar, tense)])
    sentence.pattern = pattern
    return sentence
