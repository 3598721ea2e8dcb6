"""Noun phrases and clauses of the embedded corpus, drawn so that their words go together.

Who can do what to whom, where and when is in the lexicon's classes; here verbs get subjects and objects of the right
class, nouns get determiners, and each tense gets the modes and the adverbs that agree with it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from seq2seq_attn.text.captions_lexicon import Adjective, Classes, Lexicon, Noun, Phrase, Verb
from seq2seq_attn.text.captions_tree import Clause, FixedPhrase, Mode, NounPhrase, PrepositionalPhrase, Tense

_T = TypeVar("_T")
Degree = tuple[str, str] | None

_PERSON: Classes = frozenset({"person"})
_EVENTS: Classes = frozenset({"event", "shown"})
_DETERMINERS = ("der", "ein", "the many", "number", "quantity", "bare", "dieser", "jeder")
_WEIGHTS = (36, 32, 7, 8, 5, 4, 5, 3)
_INDEFINITE = ("ein", "number", "quantity")
_INDEFINITE_WEIGHTS = (70, 18, 12)
_PLACES = ("der", "ein", "dieser")
_PLACE_WEIGHTS = (65, 27, 8)
_OWNED = frozenset({"clothes", "pet", "thing", "toy", "furniture", "readable", "vehicle", "kin"})
_UNCOUNTED = frozenset({"room", "area", "water", "event", "shown", "building"})
_HERR = {"m": ("Herr", "Herrn", "Mr"), "f": ("Frau", "Frau", "Ms")}
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
_ALL_FRAMES = ("intransitive", "accusative", "dative", "ditransitive", "prepositional", "place", "direction")


class Impossible(Exception):
    """No word fits here; the caller draws something else."""


class Grammar:
    """Draws noun phrases and clauses with its own random numbers."""

    def __init__(self, lexicon: Lexicon, rng: random.Random) -> None:
        self.lexicon = lexicon
        self.rng = rng
        self._uid = 0
        self._used: set[Noun] = set()
        self.numerals = [(i, de, en) for i, (de, en) in enumerate(lexicon.numerals.items())]
        self._by_frame: dict[tuple[str, ...], list[Verb]] = {}

    def reset(self) -> None:
        """Begin a new sentence."""
        self._uid = 0
        self._used.clear()

    def uid(self) -> int:
        """A number for a new node of this sentence."""
        self._uid += 1
        return self._uid

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.rng.random() < probability

    def choose(self, options: Sequence[_T]) -> _T:
        """One of the options.

        Raises:
            Impossible: there is none.
        """
        if not options:
            raise Impossible
        return options[int(self.rng.random() * len(options))]

    def weighted(self, options: Sequence[str], weights: Sequence[int]) -> str:
        """One of the options, by weight."""
        return self.rng.choices(options, weights)[0]

    # Noun phrases

    def noun_phrase(self, classes: Classes, *, form: str = "any", owner: NounPhrase | None = None) -> NounPhrase:
        """A noun phrase of one of the classes. `form`: any, indefinite, place (der, ein, dieser), bare or ein."""
        if form == "any" and "person" in classes and self.chance(0.28 / (1 + 0.5 * (len(classes) > 1))):
            return self.person_name()
        nouns = self.lexicon.nouns_of(classes)
        noun = self.choose(nouns)
        for _ in range(3):
            if noun not in self._used:
                break
            noun = self.choose(nouns)
        self._used.add(noun)
        phrase = NounPhrase(self.uid(), noun, gender=noun.gender)
        self._determine(phrase, noun, form, owner)
        return phrase

    def _determine(self, phrase: NounPhrase, noun: Noun, form: str, owner: NounPhrase | None) -> None:
        if not noun.plural:
            phrase.determiner = "der" if form == "any" and self.chance(0.3) else ""
            return
        if form == "any" and owner is not None and can_own(owner) and noun.classes & _OWNED and self.chance(0.25):
            phrase.determiner, phrase.owner, phrase.is_plural = "sein", owner, owner.is_many
            return
        if form in ("bare", "ein"):
            kind = form
        elif form == "indefinite" and noun.classes & _UNCOUNTED:
            kind = "ein"
        elif form == "place" or noun.classes & _UNCOUNTED:
            kind = self.weighted(_PLACES, _PLACE_WEIGHTS)
        elif form == "indefinite":
            kind = self.weighted(_INDEFINITE, _INDEFINITE_WEIGHTS)
        else:
            kind = self.weighted(_DETERMINERS, _WEIGHTS)
        self._set_determiner(phrase, kind)

    def _set_determiner(self, phrase: NounPhrase, kind: str) -> None:
        phrase.is_plural = kind in ("the many", "number", "quantity", "bare")
        phrase.determiner = {"the many": "der", "bare": ""}.get(kind, kind)
        if kind == "number":
            classes = phrase.noun.classes if phrase.noun is not None else _PERSON
            if "kin" in classes or self.chance(0.8):
                phrase.number = min(self.choose(self.numerals), self.choose(self.numerals))[1:]
            else:
                phrase.number = (str(self.rng.randint(13, 99 if "goods" in classes else 30)),) * 2
        elif kind == "quantity":
            phrase.determiner = self.choose(list(self.lexicon.determiners))
        elif kind == "dieser":
            phrase.is_plural = self.chance(0.25)

    def amount(self, subject: NounPhrase, unit: Noun) -> NounPhrase:
        """So many euros, kilograms or minutes: a number to be copied."""
        is_big = accepts(frozenset({"vehicle"}), subject)
        if "money" in unit.classes:
            low, high = (200, 9999) if is_big or accepts(frozenset({"furniture", "device"}), subject) else (2, 150)
        elif "weight" in unit.classes:
            low, high = (500, 9999) if is_big else (40, 120) if subject.is_person else (2, 30)
        else:
            low, high = 5, 240
        number = str(self.rng.randint(low, high))
        return NounPhrase(
            self.uid(), unit, gender=unit.gender, is_plural=True, determiner="number", number=(number, number)
        )

    def person_name(self) -> NounPhrase:
        """A first name, or Herr/Frau with a surname; English copies it."""
        gender = "m" if self.chance(0.5) else "f"
        if self.chance(0.6):
            return NounPhrase(self.uid(), name=self.choose(self.lexicon.first_names[gender]), gender=gender)
        return NounPhrase(self.uid(), name=self.choose(self.lexicon.surnames), gender=gender, label=_HERR[gender])

    def city(self) -> NounPhrase:
        """The name of a city."""
        return NounPhrase(self.uid(), name=self.choose(self.lexicon.cities), gender="n")

    def pronoun(self, owner: NounPhrase) -> NounPhrase:
        """er, sie or es for a noun phrase named before."""
        return NounPhrase(
            self.uid(),
            owner.noun,
            owner.name,
            owner.gender,
            is_plural=owner.is_plural,
            determiner="pronoun",
            owner=owner,
        )

    def adjective(self, phrase: NounPhrase) -> tuple[Adjective, Degree]:
        """An adjective that this noun phrase does not have yet, of another rank than those it has.

        Raises:
            Impossible: none fits.
        """
        if phrase.noun is None or phrase.determiner == "pronoun":
            raise Impossible
        word = self.choose(self.lexicon.adjectives_of(phrase.noun.classes))
        if word.rank == phrase.barred_rank:
            raise Impossible
        for other, degree in phrase.adjectives:
            # a degree belongs to the first adjective: "ein sehr alter roter Hut"
            if word.rank == other.rank or (degree is not None and word.rank < other.rank):
                raise Impossible
        return word, None

    def degree(self) -> tuple[str, str]:
        """sehr and its like."""
        return self.choose(self.lexicon.degrees)

    # Phrases of place and time

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
            return PrepositionalPhrase(self.uid(), relation.de, relation.en, "dat", landmark)
        if draw < 0.22 and where & {"outdoor", "home", "settlement"}:
            return PrepositionalPhrase(self.uid(), "in", "in", "dat", self.city())
        if draw < 0.28 and where & {"indoor", "home"}:
            room = NounPhrase(
                self.uid(), name=str(self.rng.randint(2, 999)), gender="n", label=("Zimmer", "Zimmer", "room")
            )
            return PrepositionalPhrase(self.uid(), "in", "in", "dat", room)
        special = where & {"seat", "bed"}
        if special and self.chance(0.6):
            where = special
        spot = self.noun_phrase(where, form="place")
        if spot.noun is None or spot.noun.loc is None:
            raise Impossible
        return PrepositionalPhrase(self.uid(), spot.noun.loc[0], spot.noun.loc[1], "dat", spot)

    def direction(self, verb: Verb) -> PrepositionalPhrase:
        """Where somebody goes: nach with a city, zu with a place."""
        if "goal" not in verb.where or ("city" in verb.where and self.chance(0.4)):
            return PrepositionalPhrase(self.uid(), "nach", "to", "dat", self.city())
        return PrepositionalPhrase(self.uid(), "zu", "to", "dat", self.noun_phrase(frozenset({"goal"}), form="place"))

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
        is_timeless = verb is not None and verb.frame in ("clause", "measure") and clause.mode == "present"
        if (verb is not None and verb.is_state) or is_timeless or clause.is_existential:
            raise Impossible
        if clause.predicate is not None and not clause.predicate[0].is_state:
            raise Impossible
        kinds = _TIMES[clause.mode]
        if verb is None or verb.is_simple:
            kinds = kinds - {"progressive"}
        if clause.is_negated or clause.is_existential or clause.link is not None or clause.subordinate is not None:
            kinds = kinds - {"habit"}
        if clause.is_habit:
            kinds = kinds & {"habit"}
        return self.fixed(self.choose([phrase for phrase in self.lexicon.times if phrase.kinds & kinds]))

    def manner(self, clause: Clause) -> FixedPhrase:
        """An adverb of manner that suits the verb."""
        if clause.verb is None:
            raise Impossible
        kinds = clause.verb.manner
        return self.fixed(self.choose([phrase for phrase in self.lexicon.manners if phrase.kinds & kinds]))

    # Clauses

    def verbs(self, frames: tuple[str, ...]) -> list[Verb]:
        """The verbs of these frames."""
        if frames not in self._by_frame:
            self._by_frame[frames] = [verb for verb in self.lexicon.verbs if verb.frame in frames]
        return self._by_frame[frames]

    def verb(self, frames: tuple[str, ...], mode: Mode, subject: NounPhrase | None) -> Verb:
        """A verb of these frames that has the mode and accepts the subject.

        Raises:
            Impossible: a few draws found none.
        """
        verbs = self.verbs(frames)
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
            clause.accusative = self.amount(owner, self.choose(self.lexicon.nouns_of(verb.object)))
        elif verb.is_wearing:
            form = "bare" if owner.is_many else self.weighted(("any", "ein"), (70, 30))
            clause.accusative = self.noun_phrase(verb.object, form=form, owner=owner)
            if clause.accusative.is_plural != owner.is_many or clause.accusative.determiner == "jeder":
                raise Impossible
        elif verb.frame in ("accusative", "ditransitive") and not is_left_out:
            clause.accusative = self.noun_phrase(verb.object, owner=owner)
        if verb.frame == "dative":
            clause.dative = self.noun_phrase(verb.object, owner=owner)
        if verb.frame == "ditransitive":
            clause.dative = self.noun_phrase(verb.dative)
        if verb.preposition is not None and not is_left_out:
            de, case, en = verb.preposition
            clause.prepositional = PrepositionalPhrase(
                self.uid(), de, en, case, self.noun_phrase(verb.object, owner=owner)
            )
        if verb.frame == "place":
            clause.place = self.place(verb.where)
        if verb.frame == "direction":
            clause.direction = self.direction(verb)

    def passive(self, tense: Tense) -> Clause:
        """A passive clause; who does it follows by chance."""
        mode: Mode = "passive past" if tense == "past" else "passive"
        for _ in range(20):
            verb = self.choose(self.verbs(("accusative",)))
            if "passive" in verb.modes and (mode == "passive past" or ("present" in verb.modes and not verb.is_simple)):
                clause = Clause(self.uid(), verb, self.noun_phrase(verb.object), mode)
                if self.chance(0.5):
                    agent = self.noun_phrase(verb.subject)
                    clause.prepositional = PrepositionalPhrase(self.uid(), "von", "by", "dat", agent)
                return clause
        raise Impossible

    def copula(self, tense: Tense, subject: NounPhrase | None = None) -> Clause:
        """Somebody or something is such and such."""
        if subject is None:
            word = self.choose(self.lexicon.adjectives)
            subject = self.noun_phrase(word.after)
        else:
            word = self.choose([word for word in self.lexicon.adjectives if accepts(word.after, subject)])
        named = subject.owner if subject.determiner == "pronoun" and subject.owner is not None else subject
        if word.rank == named.barred_rank or any(word.rank == other.rank for other, _ in named.adjectives):
            raise Impossible
        is_past = tense == "past" and (word.is_state or accepts(_EVENTS, subject))
        clause = Clause(self.uid(), None, subject, "past" if is_past else "present")
        clause.predicate = (word, None)
        subject.barred_rank = word.rank
        if subject.determiner == "pronoun" and subject.owner is not None:
            subject.owner.barred_rank = word.rank
        return clause

    def existential(self) -> Clause:
        """es gibt: something is there."""
        classes = frozenset({"person", "animal", "tree", "plant"})
        clause = Clause(self.uid(), None, self.noun_phrase(classes, form="indefinite"), "present")
        clause.is_existential = True
        clause.place = self.place(frozenset({"outdoor", "settlement"}))
        clause.front = "place" if self.chance(0.6) else "subject"
        return clause


def accepts(classes: Classes, phrase: NounPhrase) -> bool:
    """Whether a noun phrase belongs to one of the classes; names are persons."""
    return bool(classes & (phrase.noun.classes if phrase.noun is not None else _PERSON))


def can_own(phrase: NounPhrase) -> bool:
    """Whether his, her or their is clear: persons, but not das Kind or das Mädchen."""
    if phrase.determiner == "pronoun":
        return phrase.owner is not None and can_own(phrase.owner)
    return phrase.is_person and (phrase.is_many or phrase.gender != "n") and phrase.determiner != "jeder"


def can_be_pronoun(phrase: NounPhrase) -> bool:
    """Whether a pronoun for it has one translation: das Kind could be he, she or it."""
    is_plain_thing = phrase.noun is not None and not phrase.is_person
    return (is_plain_thing or can_own(phrase)) and phrase.determiner not in ("jeder", "kein", "pronoun")
