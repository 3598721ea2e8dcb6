"""Captions with a "picture" of their scene: a vector per object, in random order (`SPLIT.npz`,
named by `SPLIT.vectors`), the German caption with its nouns blanked out (`SPLIT.de`), the English
one (`SPLIT.en`).

A caption is a clause of `grammar` in the present tense, without what a picture cannot show: names,
articles other than `a`, adverbs, negation. The vector of an object is the sum of fixed random
vectors, one for each visible property (its noun, its number, its adjectives, its part in the scene;
of the subject also what it does), with noise. Everything is drawn from fixed seeds.
"""

import hashlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scripts.laboratory.captions.english import english_sentence
from scripts.laboratory.captions.german import german_sentence
from scripts.laboratory.captions.grammar import Grammar
from scripts.laboratory.captions.growth import Growth
from scripts.laboratory.captions.lexicon import load_lexicon
from scripts.laboratory.captions.nouns import Impossible
from scripts.laboratory.captions.patterns import draw_sentence
from scripts.laboratory.captions.tree import (
    Clause,
    NounPhrase,
    PrepositionalPhrase,
    Sentence,
    Token,
)
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import write_json, write_lines
from seq2seq_attn.text.lines import read_lines

SPLITS = {"train": 8_000, "valid": 200, "test": 500}
PATTERNS = ("simple", "dative", "giving", "passive", "existential")
LENGTHS = (4, 12)
SIZE, NOISE = 64, 0.5
BLANK = "___"
SEEN_NUMBERS = {"viele": "many", "einige": "some", "mehrere": "several"}


class Thing(NamedTuple):
    """An object of a scene."""

    phrase: NounPhrase
    seen: tuple[str, ...]
    """its visible properties: the noun, its adjectives, the rest"""

    @property
    def label(self) -> str:
        """Adjectives and noun."""
        noun, *rest = self.seen
        return " ".join([*rest[: len(self.phrase.adjectives)], noun])


class Example(NamedTuple):
    """A caption and its picture."""

    german: str
    english: str
    picture: npt.NDArray[np.float32]
    """[objects, SIZE]"""
    labels: list[str]
    """of the objects"""
    nouns: list[tuple[int, int]]
    """object and word of each noun of the English caption, from 0; its words and marks are split at
    spaces"""
    words: list[str]
    """of the English caption"""


def write_corpus(directory: Path, sizes: dict[str, int]) -> None:
    """Write the splits, unless they are there; no English caption is in two of them.

    Raises:
        UsageError: the directory holds splits of other sizes.
    """
    if (directory / "gold.json").exists():
        there = {split: len(read_lines(directory / f"{split}.en")) for split in sizes}
        if there != sizes:
            raise UsageError(
                f"{directory}: holds splits of {there} pairs, not {sizes}; choose another --dir"
            )
        return
    directory.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    gold = {}
    for split in reversed(sizes):
        examples = list(draw_examples(split, sizes[split], taken))
        if split != "train":
            taken |= {example.english for example in examples}
            gold[split] = [
                {"labels": one.labels, "nouns": one.nouns, "words": one.words} for one in examples
            ]
        pictures: dict[str, Any] = {
            f"p{number}": example.picture for number, example in enumerate(examples)
        }
        np.savez(directory / f"{split}.npz", **pictures)
        names = [f"{directory / split}.npz:p{number}" for number in range(len(examples))]
        sides = {
            "vectors": names,
            "de": [e.german for e in examples],
            "en": [e.english for e in examples],
        }
        for side, lines in sides.items():
            write_lines(directory / f"{split}.{side}", lines)
    write_json(directory / "gold.json", gold)


def draw_examples(split: str, number: int, taken: set[str]) -> Iterator[Example]:
    """Examples whose English caption is not taken."""
    grammar = Grammar(load_lexicon(), random.Random(f"scenes {split}"))
    noise = np.random.default_rng(_seed(f"noise {split}"))
    while number:
        example = draw_example(grammar, noise)
        if example is not None and example.english not in taken:
            number -= 1
            yield example


def draw_example(grammar: Grammar, noise: np.random.Generator) -> Example | None:
    """A caption with its picture; None if what was drawn is no sentence, or no picture shows it."""
    grammar.reset()
    try:
        sentence = draw_sentence(grammar, grammar.choose(PATTERNS))
    except Impossible:
        return None
    if Growth(grammar, sentence).grow(grammar.rng.randint(*LENGTHS)) is None or not is_visible(
        sentence
    ):
        return None
    clause = sentence.clauses[0]
    clause.front = "subject"
    things = things_of(clause)
    for thing in things:
        _show(thing.phrase)
    if any(thing.phrase.noun is None for thing in things):
        return None
    things = things_of(clause)
    grammar.rng.shuffle(things)
    german = [_blanked(token) for token in german_sentence(sentence)]
    english = english_sentence(sentence)
    numbers = {thing.phrase.uid: number for number, thing in enumerate(things)}
    nouns = [
        (numbers[uid], n)
        for n, token in enumerate(english)
        for uid, role in token.keys
        if role == "noun"
    ]
    return Example(
        german=_joined(german),
        english=_joined([token.text for token in english]),
        picture=np.stack([picture_of(thing.seen, noise) for thing in things]),
        labels=[thing.label for thing in things],
        nouns=nouns,
        words=[token.text for token in english],
    )


def is_visible(sentence: Sentence) -> bool:
    """Whether it is a clause in the present tense without what a picture cannot show."""
    [clause, *others] = sentence.clauses
    hidden = (
        clause.time,
        clause.manner,
        clause.means,
        clause.complement,
        clause.subordinate,
        clause.shared,
    )
    is_alone = not others and sentence.opening is None and not sentence.is_question
    phrases = [thing.phrase for thing in things_of(clause)]
    return (
        is_alone
        and clause.mode in ("present", "passive")
        and not clause.is_negated
        and all(part is None for part in hidden)
        and all(
            one.noun is not None and one.genitive is None and one.relative is None
            for one in phrases
        )
        and not any(one.determiner in ("pronoun", "kein") for one in phrases)
    )


def things_of(clause: Clause) -> list[Thing]:
    """The objects of a scene with what is seen of them."""
    action = f"{clause.verb.en[0]} {clause.verb.plus}" if clause.verb is not None else "be"
    found = _of_phrase(clause.subject, "subject", f"does {action}")
    for role, phrase in (("object", clause.accusative), ("receiver", clause.dative)):
        found += _of_phrase(phrase, role) if phrase is not None else []
    for part in (clause.prepositional, clause.direction, clause.place):
        if isinstance(part, PrepositionalPhrase):
            found += _of_phrase(part.phrase, f"relation {part.en}")
    return found


def _of_phrase(phrase: NounPhrase, *part: str) -> list[Thing]:
    found = []
    for one in (phrase, *phrase.following):
        noun = one.noun.en if one.noun is not None else ""
        number = (
            one.number[1] if one.determiner == "number" else SEEN_NUMBERS.get(one.determiner, "")
        )
        adjectives = [adjective.en for adjective, _ in one.adjectives]
        counted = [f"number {number}"] if number else ["number plural"] if one.is_plural else []
        found.append(Thing(one, (noun, *adjectives, *counted, *part)))
        if one.attribute is not None:
            found += _of_phrase(one.attribute.phrase, f"relation {one.attribute.en}", f"of {noun}")
    return found


def _show(phrase: NounPhrase) -> None:
    """Leave out what cannot be seen: which one it is, and degrees of adjectives."""
    if phrase.determiner not in ("number", *SEEN_NUMBERS):
        has_article = (
            phrase.determiner
            and not phrase.is_plural
            and phrase.noun is not None
            and phrase.noun.plural
        )
        phrase.determiner, phrase.owner = "ein" if has_article else "", None
    phrase.adjectives = [(adjective, None) for adjective, _ in phrase.adjectives]


def picture_of(seen: Sequence[str], noise: np.random.Generator) -> npt.NDArray[np.float32]:
    """The vector of an object, [SIZE]."""
    vectors = [np.random.default_rng(_seed(feature)).normal(size=SIZE) for feature in seen]
    found: npt.NDArray[np.float32] = (
        np.sum(vectors, axis=0) + noise.normal(0, NOISE, SIZE)
    ).astype(np.float32)
    return found


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _blanked(token: Token) -> str:
    return BLANK if any(role == "noun" for _, role in token.keys) else token.text


def _joined(words: Sequence[str]) -> str:
    text = ""
    for word in words:
        text += word if not text or word in (",", ".") else f" {word}"
    return text[0].upper() + text[1:]
