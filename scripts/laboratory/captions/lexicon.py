"""The words of captions: `lexicon.yaml` read into records, indexed by semantic class."""

from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BeforeValidator
from pydantic.dataclasses import dataclass

from seq2seq_attn.text.links import parse_pharaoh

Case = Literal["nom", "acc", "dat", "gen"]
Classes = frozenset[str]
Split = BeforeValidator(str.split)
"""reads a text of the file as its words"""
Words = Annotated[tuple[str, ...], Split]
ClassList = Annotated[Classes, Split]


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """A noun. `plural` is empty for mass nouns, `weak` is the other singular form of the
    n-declension, `en_plural` is set where it is irregular, `loc` the preposition of place (German,
    English), `made_of` the materials it may be made of."""

    de: str
    gender: str
    en: str
    classes: ClassList
    plural: str = ""
    genitive: str = ""
    weak: str = ""
    en_plural: str = ""
    made_of: ClassList = frozenset()
    loc: tuple[str, str] | None = None

    def german(self, case: Case, *, is_plural: bool) -> str:
        """The declined form; the dative plural adds -n unless the plural ends in n or s."""
        if is_plural:
            adds_n = case == "dat" and self.plural[-1] not in "ns" and not self.is_unit
            return f"{self.plural}n" if adds_n else self.plural
        if case == "gen":
            return self.genitive or self.de
        return self.weak if self.weak and case != "nom" else self.de

    def english(self, *, is_plural: bool) -> str:
        """The form in a number."""
        word = self.en
        if not is_plural:
            return word
        if self.en_plural:
            return self.en_plural
        if word[-1] == "y" and word[-2] not in "aeiou":
            return f"{word[:-1]}ies"
        return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")

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
    singular: str
    participle: str
    en: tuple[str, str, str, str, str]
    frame: str
    subject: ClassList
    prefix: str = ""
    auxiliary: str = "haben"
    plus: str = ""
    is_simple: bool = False
    is_optional: bool = False
    object: ClassList = frozenset()
    dative: ClassList = frozenset()
    preposition: tuple[str, Case, str] | None = None
    where: ClassList = frozenset({"indoor", "outdoor"})
    manner: ClassList = frozenset()
    modes: ClassList = frozenset({"present", "perfect", "future", "modal", "passive"})

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
    """An adjective: `stem` before endings where it differs, `rank` its place before the noun,
    `classes` of the nouns it describes, `after` of those it follows behind sein where they are
    others; `is_plain`: without sehr; `is_state`: it comes and goes."""

    de: str
    en: str
    rank: int
    classes: ClassList
    after: ClassList = frozenset()
    stem: str = ""
    is_invariable: bool = False
    is_plain: bool = False
    is_state: bool = False

    def german(self, ending: str) -> str:
        """The form with an ending; without one, that behind sein."""
        if self.is_invariable or not ending:
            return self.de
        return (self.stem or self.de) + ending

    @property
    def has_degrees(self) -> bool:
        """Whether sehr may stand before it: not before a color."""
        return not self.is_plain and self.rank < 4

    @property
    def subjects(self) -> Classes:
        """The classes of the nouns that it follows behind sein."""
        return self.after or self.classes


@dataclass(frozen=True, eq=False, slots=True)
class Phrase:
    """A fixed German phrase and its English, with word links where word i does not go with word i;
    `kinds` says where it may stand; `is_mid`: in English it stands before the main verb."""

    de: Words
    en: Words
    links: Annotated[tuple[tuple[int, int], ...], BeforeValidator(parse_pharaoh)] = ()
    kinds: ClassList = frozenset()
    is_mid: bool = False

    @property
    def word_links(self) -> tuple[tuple[int, int], ...]:
        return self.links or tuple((i, i) for i in range(len(self.de)))


@dataclass(frozen=True, eq=False, slots=True)
class Attribute:
    """A preposition that ties a noun of class `noun` to one of class `of`."""

    de: str
    case: Case
    en: str
    of: ClassList = frozenset()
    noun: str = ""
    form: str = "any"


@dataclass(frozen=True, eq=False, slots=True)
class Modal:
    """A modal verb, singular and plural, and its English."""

    singular: str
    plural: str
    en: str
    en_plural: str


@dataclass(eq=False)
class Lexicon:
    """All words."""

    nouns: list[Noun]
    named: Noun
    verbs: list[Verb]
    copula: Verb
    adjectives: list[Adjective]
    times: list[Phrase]
    manners: list[Phrase]
    means: list[Phrase]
    conjunctions: list[Phrase]
    that: Phrase
    modals: list[Modal]
    attributes: list[Attribute]
    relations: list[Attribute]
    degrees: dict[str, str]
    determiners: dict[str, str]
    numerals: dict[str, str]
    cities: list[str]
    first_names: dict[str, list[str]]
    surname_starts: list[str]
    surname_ends: list[str]

    @cached_property
    def surnames(self) -> list[str]:
        names = []
        for start in self.surname_starts:
            names += [start + end for end in self.surname_ends if start.lower() != end]
        return names


@cache
def load_lexicon() -> Lexicon:
    """The lexicon."""
    text = Path(__file__).with_name("lexicon.yaml").read_text(encoding="utf-8")
    return Lexicon(**yaml.safe_load(text))


NAMED = load_lexicon().named
"""what a name stands for"""
COPULA = load_lexicon().copula


@cache
def nouns_of(classes: Classes) -> list[Noun]:
    """The nouns that belong to any of the classes."""
    return [noun for noun in load_lexicon().nouns if noun.classes & classes]


@cache
def adjectives_of(classes: Classes) -> list[Adjective]:
    """The adjectives that describe nouns of any of the classes."""
    return [word for word in load_lexicon().adjectives if word.classes & classes]


@cache
def verbs_of(frames: tuple[str, ...]) -> list[Verb]:
    """The verbs of these frames."""
    return [verb for verb in load_lexicon().verbs if verb.frame in frames]
