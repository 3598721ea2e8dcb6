"""Captions: German-English sentence pairs from a synchronous grammar, with gold word alignments.

Lengths and links are in tokens as `tokenize_caption` splits them. How the pairs come about:

- A sentence is a tree (`tree`) that both languages are read off (`german`, `english`); its smallest
  form is one of the patterns (`patterns`), which then grows to a drawn length (`growth`).
- Lengths are spread evenly: a run of as many pairs as there are lengths has each length once.
- The English is a function of the German: no German word form has two translations that its
  sentence does not tell apart, and each construction has one English form (present: progressive, or
  simple for states and habits; perfect: simple past).
- Links: two tokens are linked when one node of the tree put them there. Articles go with articles,
  the English auxiliary with the German finite verb, a separable prefix with the English verb, "im"
  with "in" and "the", the "to" before a receiver with the German dative, "'s" with the article that
  English drops. Unlinked are only commas that the other language does not have.
- Numbers and names are copied: first names and cities are few, the surnames (477) and the numbers
  (counts to 99, years, rooms to 999, prices to 9999) have rare values, some of which a test set has
  and its training set has not.
"""

import random
from collections.abc import Collection, Iterator
from typing import NamedTuple

from scripts.laboratory.captions.english import english_sentence
from scripts.laboratory.captions.grammar import Grammar
from scripts.laboratory.captions.growth import Growth
from scripts.laboratory.captions.nouns import Impossible
from scripts.laboratory.captions.patterns import draw_sentence, patterns_for
from scripts.laboratory.captions.tree import Token

_SHORT_LENGTH = 6
_MAX_TRIES = 2000


class CaptionPair(NamedTuple):
    """A sentence pair. Links are in the Pharaoh format (`0-0 1-2`), between words as
    `tokenize_caption` splits them."""

    source: str
    target: str
    links: str


def draw_splits(sizes: dict[str, int], lengths: tuple[int, int]) -> dict[str, list[CaptionPair]]:
    """The pairs of each split, `train` and others, with a number of source tokens between the two
    lengths (at least 4).

    A split has no source sentence of a later one, and only `train` repeats sentences. Each has its
    own random numbers, so the size of a split does not change the later ones.

    Raises:
        ValueError: there are too few different sentences of a length.
    """
    splits: dict[str, list[CaptionPair]] = {}
    taken: set[str] = set()
    for split in reversed(sizes):
        drawn = _draw(
            sizes[split], lengths, f"1 {split}", exclude=taken, is_unique=split != "train"
        )
        splits[split] = list(drawn)
        taken.update(pair.source for pair in splits[split])
    return {split: splits[split] for split in sizes}


def _draw(
    num_pairs: int,
    between: tuple[int, int],
    seed: str,
    *,
    exclude: Collection[str],
    is_unique: bool,
) -> Iterator[CaptionPair]:
    rng = random.Random(f"captions {seed}")
    grammar = Grammar(rng)
    lengths: list[int] = []
    seen: set[str] = set()
    for _ in range(num_pairs):
        if not lengths:
            lengths = list(range(between[0], between[1] + 1))
            rng.shuffle(lengths)
        length = lengths.pop()
        for _ in range(_MAX_TRIES):
            pair = _try_pair(grammar, length)
            if (
                pair is not None
                and pair.source not in exclude
                and not (is_unique and pair.source in seen)
            ):
                break
        else:
            raise ValueError(f"fewer than {num_pairs} different sentences of {length} tokens")
        seen.add(pair.source)
        yield pair


def _try_pair(grammar: Grammar, length: int) -> CaptionPair | None:
    """One attempt at a sentence of this length; None if its words or its length did not work
    out."""
    grammar.reset(is_short=length <= _SHORT_LENGTH)
    pattern = grammar.choose(patterns_for(length))
    try:
        sentence = draw_sentence(grammar, pattern)
    except Impossible:
        return None
    source = Growth(grammar, sentence).grow(length)
    if source is None:
        return None
    target = english_sentence(sentence)
    return CaptionPair(_join(source), _join(target), _links(source, target))


def _join(tokens: list[Token]) -> str:
    text = ""
    for token in tokens:
        text += token.text if not text or token.text in (",", ".", "?") else " " + token.text
    return text[0].upper() + text[1:]


def _links(source: list[Token], target: list[Token]) -> str:
    places: dict[tuple[int, str], list[int]] = {}
    for j, token in enumerate(target):
        for key in token.keys:
            places.setdefault(key, []).append(j)
    links = {
        (i, j) for i, token in enumerate(source) for key in token.keys for j in places.get(key, ())
    }
    return " ".join(f"{i}-{j}" for i, j in sorted(links))
