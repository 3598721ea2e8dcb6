"""The words of captions: `lexicon.yaml` read into records, indexed by semantic class."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

Case = Literal["nom", "acc", "dat", "gen"]
Classes = frozenset[str]


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """A noun. `plural` is empty for mass nouns, `weak` is the other singular form of the
    n-declension, `loc` the preposition of place (German, English), `made_of` the materials it may
    be made of."""

    de: str
    gender: str
    plural: str
    genitive: str
    weak: str
    en: str
    en_plural: str
    classes: Classes
    made_of: Classes
    loc: tuple[str, str] | None

    def german(self, case: Case, *, is_plural: bool) -> str:
        """The declined form; the dative plural adds -n unless the plural ends in n or s."""
        if is_plural:
            return self.plural + (
                "n" if case == "dat" and self.plural[-1] not in "ns" and not self.is_unit else ""
            )
        if case == "gen":
            return self.genitive or self.de
        return self.weak if self.weak and case != "nom" else self.de

    @property
    def is_unit(self) -> bool:
        """Units of money and weight keep one form: 20 Euro."""
        return self.plural == self.de and bool(self.classes & {"money", "weight"})


@dataclass(frozen=True, eq=False, slots=True)
class Verb:
    """A verb. `singular` is the third person without its `prefix`; English forms are base, -s,
    -ing, past, participle, and `plus`, what follows them; `frame` says which complements it takes,
    `preposition` is (German, case, English)."""

    de: str
    prefix: str
    singular: str
    participle: str
    auxiliary: str
    en: tuple[str, str, str, str, str]
    plus: str
    is_simple: bool
    frame: str
    is_optional: bool
    subject: Classes
    object: Classes
    dative: Classes
    preposition: tuple[str, Case, str] | None
    where: Classes
    manner: Classes
    modes: Classes

    @property
    def is_state(self) -> bool:
        """Whether it describes a lasting state: to know, to love, to belong to."""
        return self.is_simple and self.modes == {"present"}

    @property
    def is_wearing(self) -> bool:
        """Whether all do it to their own clothes: several people wear hats, not a hat."""
        return self.object <= {"clothes", "worn", "headgear"} and bool(self.object)

    @property
    def plural(self) -> str:
        """The third person plural without the prefix: the infinitive without it."""
        return self.de[len(self.prefix) :]


@dataclass(frozen=True, eq=False, slots=True)
class Adjective:
    """An adjective: `stem` before endings, `rank` its place before the noun, `classes` of the nouns
    it describes, `after` of those it follows behind sein; `is_plain`: without sehr; `is_state`: it
    comes and goes."""

    de: str
    stem: str
    en: str
    rank: int
    classes: Classes
    after: Classes
    is_plain: bool
    is_state: bool


@dataclass(frozen=True, eq=False, slots=True)
class Phrase:
    """A fixed German phrase and its English, with word links; `kinds` says where it may stand;
    `is_mid`: in English it stands before the main verb."""

    de: tuple[str, ...]
    en: tuple[str, ...]
    links: tuple[tuple[int, int], ...]
    kinds: Classes
    is_mid: bool


@dataclass(frozen=True, eq=False, slots=True)
class Attribute:
    """A preposition that ties a noun of class `noun` to one of class `of`."""

    of: Classes
    de: str
    case: Case
    en: str
    noun: str
    form: str


@dataclass(frozen=True, eq=False, slots=True)
class Modal:
    """A modal verb, singular and plural, and its English."""

    singular: str
    plural: str
    en: str
    en_plural: str


class Lexicon:
    """All words; `nouns_of(classes)` are the nouns of any of the classes."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.nouns = tuple(_noun(entry) for entry in raw["nouns"])
        self.verbs = tuple(_verb(entry) for entry in raw["verbs"])
        self.adjectives = tuple(_adjective(entry) for entry in raw["adjectives"])
        self.degrees = tuple((str(entry["de"]), str(entry["en"])) for entry in raw["degrees"])
        self.times = tuple(_phrase(entry, "tense") for entry in raw["times"])
        self.manners = tuple(_phrase(entry, "kind") for entry in raw["manners"])
        self.means = tuple(_phrase(entry, "kind") for entry in raw["means"])
        self.conjunctions = tuple(_phrase(entry, "tense") for entry in raw["conjunctions"])
        self.modals = tuple(
            Modal(entry["sg"], entry["pl"], entry["en"], entry["en_pl"]) for entry in raw["modals"]
        )
        self.attributes = tuple(_attribute(entry) for entry in raw["attributes"])
        self.relations = tuple(_attribute(entry) for entry in raw["relations"])
        self.determiners: dict[str, str] = {
            entry["de"]: entry["en"] for entry in raw["determiners"]
        }
        self.numerals: dict[str, str] = dict(raw["numerals"])
        self.cities: tuple[str, ...] = tuple(raw["cities"])
        self.first_names: dict[str, list[str]] = raw["first_names"]
        self.surnames = tuple(
            start + end
            for start in raw["surname_starts"]
            for end in raw["surname_ends"]
            if start.lower() != end
        )
        self._nouns_of: dict[Classes, tuple[Noun, ...]] = {}
        self._adjectives_of: dict[Classes, tuple[Adjective, ...]] = {}

    def nouns_of(self, classes: Classes) -> tuple[Noun, ...]:
        """The nouns that belong to any of the classes."""
        if classes not in self._nouns_of:
            self._nouns_of[classes] = tuple(noun for noun in self.nouns if noun.classes & classes)
        return self._nouns_of[classes]

    def adjectives_of(self, classes: Classes) -> tuple[Adjective, ...]:
        """The adjectives that describe nouns of any of the classes."""
        if classes not in self._adjectives_of:
            self._adjectives_of[classes] = tuple(
                word for word in self.adjectives if word.classes & classes
            )
        return self._adjectives_of[classes]


@cache
def load_lexicon() -> Lexicon:
    """The lexicon."""
    return Lexicon(
        yaml.safe_load(Path(__file__).with_name("lexicon.yaml").read_text(encoding="utf-8"))
    )


def _classes(text: str | None) -> Classes:
    return frozenset((text or "").split())


def _noun(entry: dict[str, Any]) -> Noun:
    plural = entry.get("pl", "")
    loc = entry.get("loc")
    return Noun(
        de=entry["de"],
        gender=entry["g"],
        plural=plural,
        genitive=entry.get("gen", ""),
        weak=entry.get("weak", ""),
        en=entry["en"],
        en_plural=entry.get("ens", _english_plural(entry["en"])) if plural else "",
        classes=_classes(entry["is"]),
        made_of=_classes(entry.get("of")),
        loc=(loc[0], loc[1]) if loc else None,
    )


def _english_plural(word: str) -> str:
    if word[-1] == "y" and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")


def _verb(entry: dict[str, Any]) -> Verb:
    preposition = entry.get("prep")
    modes = (
        {"present", "perfect", "future", "modal", "passive"}
        if "only" not in entry
        else _classes(entry["only"])
    )
    blocked = {name for name in ("modal", "passive") if entry.get(name) is False}
    return Verb(
        de=entry["de"],
        prefix=entry.get("prefix", ""),
        singular=entry["sg"],
        participle=entry["part"],
        auxiliary=entry.get("aux", "haben"),
        en=tuple(entry["en"]),
        plus=entry.get("plus", ""),
        is_simple=entry.get("simple", False),
        frame=entry["frame"],
        is_optional=entry.get("optional", False),
        subject=_classes(entry["subject"]),
        object=_classes(entry.get("object")),
        dative=_classes(entry.get("dative")),
        preposition=tuple(preposition) if preposition else None,
        where=_classes(entry.get("where", "indoor outdoor")),
        manner=_classes(entry.get("manner")),
        modes=frozenset(modes) - blocked,
    )


def _adjective(entry: dict[str, Any]) -> Adjective:
    de = entry["de"]
    stem = entry.get("stem", de)
    classes = _classes(entry["of"])
    return Adjective(
        de=de,
        stem="" if entry.get("invariable") else stem,
        en=entry["en"],
        rank=entry["rank"],
        classes=classes,
        after=_classes(entry.get("after")) or classes,
        is_plain=entry.get("plain", False),
        is_state=entry.get("state", False),
    )


def _phrase(entry: dict[str, Any], kind_key: str) -> Phrase:
    de, en = tuple(entry["de"].split()), tuple(entry["en"].split())
    if "links" in entry:
        links: Sequence[tuple[int, int]] = [
            (int(i), int(j)) for i, _, j in (x.partition("-") for x in entry["links"].split())
        ]
    else:
        links = [(i, i) for i in range(len(de))]
    return Phrase(de, en, tuple(links), _classes(entry.get(kind_key)), entry.get("mid", False))


def _attribute(entry: dict[str, Any]) -> Attribute:
    return Attribute(
        _classes(entry.get("of")),
        entry["de"],
        entry["case"],
        entry["en"],
        entry.get("noun", ""),
        entry.get("form", "any"),
    )
