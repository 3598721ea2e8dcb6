"""Clauses of captions, drawn so that their words go together.

Who can do what to whom, where and when is in the lexicon's classes; here verbs get subjects and
objects of the right class, and each tense gets the modes and the adverbs that agree with it.
"""

from collections.abc import Sequence

from scripts.laboratory.captions.lexicon import COPULA, Classes, Phrase, Verb, nouns_of, verbs_of
from scripts.laboratory.captions.nouns import Impossible, NounPhrases, accepts
from scripts.laboratory.captions.tree import (
    Clause,
    FixedPhrase,
    Mode,
    NounPhrase,
    PrepositionalPhrase,
    Tense,
)

_EVENTS: Classes = frozenset({"event"})
_MODES: dict[Tense, Mode] = {"present": "present", "past": "perfect", "future": "future"}
_TIMES: dict[Mode, Classes] = {
    "present": frozenset({"present", "progressive", "habit"}),
    "modal": frozenset({"present", "modal"}),
    "future": frozenset({"future"}),
    "passive": frozenset({"present"}),
    "perfect": frozenset({"past"}),
    "passive past": frozenset({"past"}),
    "past": frozenset({"past"}),
}
_ALL_FRAMES = (
    "intransitive",
    "accusative",
    "dative",
    "ditransitive",
    "prepositional",
    "place",
    "direction",
)


class Grammar(NounPhrases):
    """Draws phrases of place and time, and clauses."""

    def place(self, where: Classes) -> PrepositionalPhrase:
        """Where something happens; `where` holds the classes of places that fit.

        Raises:
            Impossible: the verb takes no place.
        """
        if "none" in where:
            raise Impossible
        draw = self.rng.random()
        if draw < 0.14 and "outdoor" in where:
            relation = self.choose(self.lexicon.relations)
            landmark = self.noun_phrase(frozenset({"landmark"}), form="place")
            return self.prepositional(relation.de, relation.en, landmark)
        if draw < 0.22 and where & {"outdoor", "home", "settlement"}:
            return self.prepositional("in", "in", self.city())
        if draw < 0.28 and where & {"indoor", "home"}:
            room = NounPhrase(
                self.uid(),
                name=str(self.rng.randint(2, 999)),
                gender="n",
                label=("Zimmer", "Zimmer", "room"),
            )
            return self.prepositional("in", "in", room)
        special = where & {"seat", "bed"}
        if special and self.chance(0.6):
            where = special
        spot = self.noun_phrase(where, form="place")
        if spot.noun.loc is None:
            raise Impossible
        return self.prepositional(*spot.noun.loc, spot)

    def direction(self, verb: Verb) -> PrepositionalPhrase:
        """Where somebody goes: nach with a city, zu with a place."""
        if "goal" not in verb.where or ("city" in verb.where and self.chance(0.4)):
            return self.prepositional("nach", "to", self.city())
        goal = self.noun_phrase(frozenset({"goal"}), form="place")
        return self.prepositional("zu", "to", goal)

    def fixed(self, phrase: Phrase) -> FixedPhrase:
        """One use of a fixed phrase, its numbers drawn."""
        de, en = phrase.de, phrase.en
        for slot, low, high in (("HOUR", 2, 12), ("YEAR", 1900, 2025)):
            if slot in de:
                number = str(self.rng.randint(low, high))
                de = tuple(number if word == slot else word for word in de)
                en = tuple(number if word == slot else word for word in en)
        return FixedPhrase(self.uid(), phrase, de, en)

    def time(self, clause: Clause) -> FixedPhrase:
        """An adverb of time that agrees with the clause's tense.

        Raises:
            Impossible: the verb describes a lasting state.
        """
        verb = clause.verb
        if clause.is_existential:
            raise Impossible
        if verb.is_state or _is_timeless(verb, clause.mode):
            raise Impossible
        if clause.predicate is not None and not clause.predicate[0].is_state:
            raise Impossible
        kinds = _TIMES[clause.mode]
        if verb.is_simple:
            kinds = kinds - {"progressive"}
        if clause.is_negated or clause.link is not None or clause.subordinate is not None:
            kinds = kinds - {"habit"}
        if clause.is_habit:
            kinds = kinds & {"habit"}
        return self._fixed_of(self.lexicon.times, kinds)

    def manner(self, clause: Clause) -> FixedPhrase:
        """An adverb of manner that suits the verb."""
        return self._fixed_of(self.lexicon.manners, clause.verb.manner)

    def _fixed_of(self, phrases: Sequence[Phrase], kinds: Classes) -> FixedPhrase:
        return self.fixed(self.choose([phrase for phrase in phrases if phrase.kinds & kinds]))

    # Clauses

    def verb(self, frames: tuple[str, ...], mode: Mode, subject: NounPhrase | None) -> Verb:
        """A verb of these frames that has the mode and accepts the subject.

        Raises:
            Impossible: a few draws found none.
        """
        verbs = verbs_of(frames)
        for _ in range(12):
            verb = self.choose(verbs)
            if mode in verb.modes and (subject is None or accepts(verb.subject, subject)):
                return verb
        raise Impossible

    def clause(
        self,
        tense: Tense,
        frames: tuple[str, ...] = _ALL_FRAMES,
        *,
        mode: Mode | None = None,
        subject: NounPhrase | None = None,
    ) -> Clause:
        """A clause with the complements its verb needs and no more."""
        if mode is None:
            mode = "modal" if tense == "present" and self.chance(0.12) else _MODES[tense]
        verb = self.verb(frames, mode, subject)
        if subject is None:
            subject = self.noun_phrase(verb.subject)
        clause = Clause(self.uid(), verb, subject, mode)
        if mode == "modal" and not subject.is_person:
            raise Impossible
        if mode == "modal":
            clause.modal = self.choose(self.lexicon.modals)
        self._complement(clause, verb)
        return clause

    def _complement(self, clause: Clause, verb: Verb) -> None:
        owner = clause.subject
        is_left_out = verb.is_optional and self.chance(0.4)
        if verb.frame == "measure":
            if not owner.determiner and not owner.name:
                raise Impossible  # what costs 5 euros is one thing, not cheese as such
            clause.accusative = self.amount(owner, self.choose(nouns_of(verb.object)))
        elif verb.is_wearing:
            form = "bare" if owner.is_many else self.weighted(("any", "ein"), (70, 30))
            clause.accusative = self.noun_phrase(verb.object, form=form, owner=owner)
            clothes = clause.accusative
            if clothes.is_plural != owner.is_many or clothes.determiner == "jeder":
                raise Impossible
        elif verb.frame in ("accusative", "ditransitive") and not is_left_out:
            clause.accusative = self.noun_phrase(verb.object, owner=owner)
        if verb.frame == "dative":
            clause.dative = self.noun_phrase(verb.object, owner=owner)
        if verb.frame == "ditransitive":
            clause.dative = self.noun_phrase(verb.dative)
        if verb.preposition is not None and not is_left_out:
            de, case, en = verb.preposition
            governed = self.noun_phrase(verb.object, owner=owner)
            clause.prepositional = self.prepositional(de, en, governed, case)
        if verb.frame == "place":
            clause.place = self.place(verb.where)
        if verb.frame == "direction":
            clause.direction = self.direction(verb)

    def passive(self, tense: Tense) -> Clause:
        """A passive clause; who does it follows by chance."""
        mode: Mode = "passive past" if tense == "past" else "passive"
        for _ in range(20):
            verb = self.choose(verbs_of(("accusative",)))
            is_progressive = "present" in verb.modes and not verb.is_simple
            if "passive" in verb.modes and (mode == "passive past" or is_progressive):
                clause = Clause(self.uid(), verb, self.noun_phrase(verb.object), mode)
                if self.chance(0.5):
                    agent = self.noun_phrase(verb.subject)
                    clause.prepositional = self.prepositional("von", "by", agent)
                return clause
        raise Impossible

    def copula(self, tense: Tense, subject: NounPhrase | None = None) -> Clause:
        """Somebody or something is such and such."""
        if subject is None:
            word = self.choose(self.lexicon.adjectives)
            subject = self.noun_phrase(word.subjects)
        else:
            adjectives = self.lexicon.adjectives
            word = self.choose([word for word in adjectives if accepts(word.subjects, subject)])
        named = subject
        if subject.determiner == "pronoun" and subject.owner is not None:
            named = subject.owner
        ranks = {adjective.rank for adjective, _ in named.adjectives}
        if word.rank in named.barred_ranks | ranks:
            raise Impossible
        is_past = tense == "past" and (word.is_state or accepts(_EVENTS, subject))
        clause = Clause(self.uid(), COPULA, subject, "past" if is_past else "present")
        clause.predicate = (word, None)
        named.barred_ranks.add(word.rank)
        return clause


def _is_timeless(verb: Verb, mode: Mode) -> bool:
    """Whether somebody says, or something costs, at no particular time."""
    return verb.frame in ("clause", "measure") and mode == "present"
