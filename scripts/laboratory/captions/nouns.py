"""Noun phrases of captions: nouns by class, their determiners, numbers, names, pronouns,
adjectives."""

import random
from collections.abc import Sequence
from typing import TypeVar

from scripts.laboratory.captions.lexicon import (
    Adjective,
    Case,
    Classes,
    Noun,
    adjectives_of,
    load_lexicon,
    nouns_of,
)
from scripts.laboratory.captions.tree import NounPhrase, PrepositionalPhrase

_T = TypeVar("_T")
Degree = tuple[str, str] | None

_DETERMINERS = ("der", "ein", "the many", "number", "quantity", "bare", "dieser", "jeder")
_WEIGHTS = (36, 32, 7, 8, 5, 4, 5, 3)
_INDEFINITE = ("ein", "number", "quantity")
_INDEFINITE_WEIGHTS = (70, 18, 12)
_PLACES = ("der", "ein", "dieser")
_PLACE_WEIGHTS = (65, 27, 8)
_OWNED = frozenset({"clothes", "pet", "thing", "toy", "furniture", "readable", "vehicle", "kin"})
_UNCOUNTED = frozenset({"room", "area", "water", "event", "building"})
_NAME_SHARE, _SHORT_NAME_SHARE = 0.28, 0.6
_HERR = {"m": ("Herr", "Herrn", "Mr"), "f": ("Frau", "Frau", "Ms")}


class Impossible(Exception):
    """No word fits here; the caller draws something else."""


class NounPhrases:
    """Draws noun phrases with its own random numbers."""

    def __init__(self, rng: random.Random) -> None:
        self.lexicon = load_lexicon()
        self.rng = rng
        self._uid = 0
        self._used: set[Noun] = set()
        self.numerals = [(i, de, en) for i, (de, en) in enumerate(self.lexicon.numerals.items())]

    def reset(self, *, is_short: bool) -> None:
        """Begin a new sentence; a short one has names more often, since they are the shortest noun
        phrases."""
        self.name_share = _SHORT_NAME_SHARE if is_short else _NAME_SHARE
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

    def noun_phrase(
        self, classes: Classes, *, form: str = "any", owner: NounPhrase | None = None
    ) -> NounPhrase:
        """A noun phrase of one of the classes. `form`: any, indefinite, place (der, ein, dieser),
        bare or ein."""
        if form == "any" and "person" in classes:
            share = self.name_share if len(classes) == 1 else 0.67 * self.name_share
            if self.chance(share):
                return self.person_name()
        nouns = nouns_of(classes)
        noun = self.choose(nouns)
        for _ in range(3):
            if noun not in self._used:
                break
            noun = self.choose(nouns)
        self._used.add(noun)
        phrase = NounPhrase(self.uid(), noun, gender=noun.gender)
        self._determine(phrase, noun, form, owner)
        return phrase

    def _determine(
        self, phrase: NounPhrase, noun: Noun, form: str, owner: NounPhrase | None
    ) -> None:
        if not noun.plural:
            phrase.determiner = "der" if form == "any" and self.chance(0.3) else ""
            return
        if form == "any" and owner is not None and can_own(owner) and noun.classes & _OWNED:
            if self.chance(0.25):
                phrase.determiner = "sein"
                phrase.owner = owner
                phrase.is_plural = owner.is_many
                return
        if form in ("bare", "ein"):
            kind = form
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
            if "kin" in phrase.noun.classes or self.chance(0.8):
                phrase.number = min(self.choose(self.numerals), self.choose(self.numerals))[1:]
            else:
                number = str(self.rng.randint(13, 99 if "goods" in phrase.noun.classes else 30))
                phrase.number = (number, number)
        elif kind == "quantity":
            phrase.number = self.choose([*self.lexicon.determiners.items()])
            phrase.determiner = phrase.number[0]
        elif kind == "dieser":
            phrase.is_plural = self.chance(0.25)

    def amount(self, subject: NounPhrase, unit: Noun) -> NounPhrase:
        """So many euros, kilograms or minutes: a number to be copied."""
        is_big = accepts(frozenset({"vehicle"}), subject)
        if "money" in unit.classes:
            is_dear = is_big or accepts(frozenset({"furniture", "device"}), subject)
            low, high = (200, 9999) if is_dear else (2, 150)
        elif "weight" in unit.classes:
            low, high = (40, 120) if subject.is_person else (2, 30)
            if is_big:
                low, high = 500, 9999
        else:
            low, high = 5, 240
        number = str(self.rng.randint(low, high))
        return NounPhrase(
            self.uid(),
            unit,
            gender=unit.gender,
            is_plural=True,
            determiner="number",
            number=(number, number),
        )

    def person_name(self) -> NounPhrase:
        """A first name, or Herr/Frau with a surname; English copies it."""
        gender = "m" if self.chance(0.5) else "f"
        if self.chance(0.6):
            return NounPhrase(
                self.uid(), name=self.choose(self.lexicon.first_names[gender]), gender=gender
            )
        return NounPhrase(
            self.uid(), name=self.choose(self.lexicon.surnames), gender=gender, label=_HERR[gender]
        )

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

    def prepositional(
        self, de: str, en: str, phrase: NounPhrase, case: Case = "dat"
    ) -> PrepositionalPhrase:
        return PrepositionalPhrase(self.uid(), de, en, case, phrase)

    def adjective(self, phrase: NounPhrase) -> tuple[Adjective, Degree]:
        """An adjective that this noun phrase does not have yet, of another rank than those it has.

        Raises:
            Impossible: none fits.
        """
        word = self.choose(adjectives_of(phrase.noun.classes))
        if word.rank in phrase.barred_ranks:
            raise Impossible
        for other, degree in phrase.adjectives:
            # a degree belongs to the first adjective: "ein sehr alter roter Hut"
            if word.rank == other.rank or (degree is not None and word.rank < other.rank):
                raise Impossible
        return word, None

    def degree(self) -> tuple[str, str]:
        """sehr and its like."""
        return self.choose([*self.lexicon.degrees.items()])


def accepts(classes: Classes, phrase: NounPhrase) -> bool:
    """Whether a noun phrase belongs to one of the classes; names are persons."""
    return bool(classes & phrase.noun.classes)


def can_own(phrase: NounPhrase) -> bool:
    """Whether his, her or their is clear: persons, but not das Kind or das Mädchen."""
    return (
        phrase.is_person
        and (phrase.is_many or phrase.gender != "n")
        and phrase.determiner != "jeder"
    )


def can_be_pronoun(phrase: NounPhrase) -> bool:
    """Whether a pronoun for it has one translation: das Kind could be he, she or it."""
    return (not phrase.is_person or can_own(phrase)) and phrase.determiner != "jeder"
