"""The tree of a sentence that both languages are read off: noun phrases, clauses, and the tokens
with their link keys.

A token carries keys; a source and a target token are linked when they share one. A key is (node
number, role), so each language can order its words as it likes and the gold alignment falls out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from scripts.laboratory.captions.lexicon import NAMED, Adjective, Case, Modal, Noun, Phrase, Verb

COMMA = ","
Key = tuple[int, str]
Mode = Literal["present", "perfect", "future", "modal", "passive", "passive past", "past"]
Tense = Literal["present", "past", "future"]


class Token(NamedTuple):
    """A word or a mark with its link keys."""

    text: str
    keys: tuple[Key, ...]


def words(text: str, *keys: Key) -> list[Token]:
    """The words of a text as tokens with the same keys."""
    return [Token(word, keys) for word in text.split()]


@dataclass(eq=False, slots=True)
class NounPhrase:
    """A noun or a name with what belongs to it.

    `determiner`: der, ein, dieser, jeder, kein, sein (possessive, of `owner`),
    viele/einige/mehrere, number, pronoun (for `owner`) or empty. `number` holds the words of a
    numeral in both languages, `name` the copied name, city or number, `label` what stands before it
    (nominative, other cases, English): Herr, Herrn, Mr. `barred_ranks` are the ranks of adjectives
    that would contradict or repeat what a clause says of it.
    """

    uid: int
    noun: Noun = NAMED
    name: str = ""
    gender: str = "m"
    label: tuple[str, str, str] | None = None
    is_plural: bool = False
    determiner: str = ""
    number: tuple[str, str] = ("", "")
    """German and English: of a number, or of a word such as viele"""
    owner: NounPhrase | None = None
    adjectives: list[tuple[Adjective, tuple[str, str] | None]] = field(default_factory=list)
    genitive: NounPhrase | None = None
    attribute: PrepositionalPhrase | None = None
    relative: Clause | None = None
    barred_ranks: set[int] = field(default_factory=set)
    following: NounPhrase | None = None

    @property
    def is_many(self) -> bool:
        """Whether a verb agrees with it in the plural."""
        if self.owner is not None and self.determiner == "pronoun":
            return self.owner.is_many
        return self.is_plural or self.following is not None

    @property
    def has_tail(self) -> bool:
        """Whether something hangs on it that ends it."""
        return any((self.genitive, self.attribute, self.relative))

    @property
    def is_person(self) -> bool:
        """Whether English says `who`."""
        return "person" in self.noun.classes

    @property
    def is_definite(self) -> bool:
        """Whether it stands early in the German middle field."""
        return self.determiner in ("der", "dieser", "sein", "jeder") or bool(self.name)


def coordinate(
    phrase: NounPhrase, conjunction: str, tokens_of: Callable[[NounPhrase], list[Token]]
) -> list[Token]:
    """A noun phrase and the phrase that follows it, with a conjunction."""
    tokens = tokens_of(phrase)
    if phrase.following is not None:
        tokens += words(conjunction, (phrase.following.uid, "and"))
        tokens += tokens_of(phrase.following)
    return tokens


@dataclass(eq=False, slots=True)
class PrepositionalPhrase:
    """A preposition in both languages, the case it governs, and its noun phrase."""

    uid: int
    de: str
    en: str
    case: Case
    phrase: NounPhrase


@dataclass(eq=False, slots=True)
class FixedPhrase:
    """One use of a fixed phrase; `de` and `en` have their numbers filled in."""

    uid: int
    phrase: Phrase
    de: tuple[str, ...]
    en: tuple[str, ...]

    def german(self) -> list[Token]:
        return self._tokens(self.de, 0)

    def english(self) -> list[Token]:
        return self._tokens(self.en, 1)

    def _tokens(self, texts: Sequence[str], side: int) -> list[Token]:
        """The words of one side, with a key for each of their links."""
        tokens = []
        for position, text in enumerate(texts):
            links = [link for link in self.phrase.word_links if link[side] == position]
            tokens.append(Token(text, tuple((self.uid, f"{i}-{j}") for i, j in links)))
        return tokens


@dataclass(eq=False, slots=True)
class Clause:
    """A clause without its order of words. `gap` names the role that a relative pronoun fills,
    `front` the role that stands before the finite verb, `link` the conjunction that ties the clause
    to what it follows."""

    uid: int
    verb: Verb
    subject: NounPhrase
    mode: Mode = "present"
    modal: Modal | None = None
    accusative: NounPhrase | None = None
    dative: NounPhrase | None = None
    prepositional: PrepositionalPhrase | None = None
    direction: PrepositionalPhrase | None = None
    place: PrepositionalPhrase | None = None
    time: FixedPhrase | None = None
    manner: FixedPhrase | None = None
    means: FixedPhrase | None = None
    predicate: tuple[Adjective, tuple[str, str] | None] | None = None
    is_negated: bool = False
    is_existential: bool = False
    is_habit: bool = False
    depth: int = 0
    gap: str = ""
    gap_phrase: PrepositionalPhrase | None = None
    front: str = "subject"
    link: FixedPhrase | None = None
    complement: Clause | None = None
    subordinate: Clause | None = None
    shared: Clause | None = None

    @property
    def antecedent(self) -> NounPhrase:
        """What the relative pronoun stands for."""
        if self.gap_phrase is not None:
            return self.gap_phrase.phrase
        phrase: NounPhrase = getattr(self, self.gap)  # the subject or an object
        return phrase

    @property
    def has_second_clause(self) -> bool:
        """Whether a clause follows in it that shares its subject or depends on it."""
        return any((self.shared, self.complement, self.subordinate))

    @property
    def is_indefinite_negation(self) -> bool:
        """Whether the negation is `kein` on the object."""
        return self.accusative is not None and self.accusative.determiner == "kein"


@dataclass(eq=False, slots=True)
class Sentence:
    """Clauses joined by und/aber, perhaps behind one fronted subordinate clause."""

    uid: int
    clauses: list[Clause]
    joints: list[str] = field(default_factory=list)
    opening: Clause | None = None
    is_question: bool = False
