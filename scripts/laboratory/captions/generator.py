"""The embedded corpus `captions`: German-English sentence pairs from a synchronous grammar, with gold word alignments.

Lengths, links and files speak of tokens as `tokenize_caption` makes them. How the pairs come about:

- A sentence is a tree (`tree`) that both languages are read off (`german`, `english`); its smallest form is one of the
  patterns (`patterns`), which then grows to a drawn length (`growth`).
- Lengths are spread evenly: every run of `max_length - min_length + 1` pairs has each length once.
- The English is a function of the German: no German word form has two translations that its sentence does not tell
  apart, and each construction has one English form (present: progressive, or simple for states and habits; perfect:
  simple past).
- Links: two tokens are linked when one node of the tree put them there. Articles go with articles, the English
  auxiliary with the German finite verb, a separable prefix with the English verb, "im" with "in" and "the", the "to"
  before a receiver with the German dative, "'s" with the article that English drops. Unlinked are only commas that the
  other language does not have.
- Numbers and names are copied: first names and cities are few, the surnames (477) and the numbers (counts to 99,
  years, rooms to 999, prices to 9999) have rare values, some of which a test set has and its training set has not.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from seq2seq_attn.captions.english import english_sentence
from seq2seq_attn.captions.grammar import Grammar
from seq2seq_attn.captions.growth import Growth
from seq2seq_attn.captions.lexicon import load_lexicon
from seq2seq_attn.captions.nouns import Impossible
from seq2seq_attn.captions.patterns import draw_sentence, patterns_for
from seq2seq_attn.captions.tree import Token
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import write_lines

MIN_LENGTH = 4
_MARKS = re.compile(r"(?=,(?: |$))|(?=[.?]$)")
_SHORT_LENGTH = 6
_MAX_TRIES = 2000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CaptionPair:
    """A sentence pair. `links` are sorted (source token, target token) pairs over `tokenize_caption`'s tokens."""

    source: str
    target: str
    links: tuple[tuple[int, int], ...]
    pattern: str


def tokenize_caption(text: str) -> list[str]:
    """Words at white space, a comma behind a word and the final mark split off."""
    return _MARKS.sub(" ", text).split()


def generate(num_pairs: int, *, min_length: int, max_length: int, seed: int | str) -> list[CaptionPair]:
    """Different sentence pairs with `min_length` to `max_length` source tokens, the final mark counted.

    The same arguments give the same pairs.

    Raises:
        UsageError: the lengths are not 4 <= min_length <= max_length, or they hold too few different sentences.
    """
    _check_lengths(min_length, max_length)
    return list(_draw(num_pairs, min_length, max_length, seed, exclude=(), is_unique=True))


def write_corpus(
    directory: Path,
    *,
    num_train: int,
    num_valid: int,
    num_test: int,
    min_length: int,
    max_length: int,
    seed: int,
    source_language: str = "de",
    target_language: str = "en",
    show_progress: bool = False,
) -> None:
    """Write `train`, `valid` and `test` as `<split>.de`, `<split>.en` and `<split>.links` (Pharaoh form, `0-0 1-2`).

    No source sentence of test is in train or valid, none of valid in train; within valid and test all differ. Each
    split has its own random numbers: the test set does not change with the size of the training set.

    `show_progress` draws tqdm bars on stderr.

    Raises:
        UsageError: as `generate`, or another pair of languages.
    """
    check_request(min_length, max_length, (source_language, target_language))
    log.info("generating the embedded corpus: %d sentence pairs", num_train + num_valid + num_test)
    taken: set[str] = set()
    for split, num_pairs in (("test", num_test), ("valid", num_valid), ("train", num_train)):
        is_unique = split != "train"
        drawn = _draw(num_pairs, min_length, max_length, f"{seed} {split}", exclude=taken, is_unique=is_unique)
        pairs = list(tqdm(drawn, desc=f"generating {split}", total=num_pairs, unit=" pairs", disable=not show_progress))
        taken.update(pair.source for pair in pairs)
        _write_split(directory, split, pairs, source_language, target_language)


def check_request(min_length: int, max_length: int, languages: tuple[str, str]) -> None:
    """Check the lengths and the pair of languages of a corpus.

    Raises:
        UsageError: as `write_corpus`.
    """
    if languages != ("de", "en"):
        raise UsageError(
            f"captions {languages[0]!r} -> {languages[1]!r}: the embedded corpus is German to English; "
            "set data.source_language=de and data.target_language=en"
        )
    _check_lengths(min_length, max_length)


def _write_split(
    directory: Path, split: str, pairs: list[CaptionPair], source_language: str, target_language: str
) -> None:
    for name, lines in (
        (source_language, [pair.source for pair in pairs]),
        (target_language, [pair.target for pair in pairs]),
        ("links", [" ".join(f"{i}-{j}" for i, j in pair.links) for pair in pairs]),
    ):
        write_lines(directory / f"{split}.{name}", lines)


def _check_lengths(min_length: int, max_length: int) -> None:
    if min_length < MIN_LENGTH:
        raise UsageError(
            f"captions min_length={min_length}: the shortest sentence has {MIN_LENGTH} tokens; set it to at least that"
        )
    if max_length < min_length:
        raise UsageError(
            f"captions max_length={max_length}: less than min_length={min_length}; set it to at least that"
        )


def _draw(
    num_pairs: int, min_length: int, max_length: int, seed: int | str, *, exclude: Collection[str], is_unique: bool
) -> Iterator[CaptionPair]:
    rng = random.Random(f"captions {seed}")
    grammar = Grammar(load_lexicon(), rng)
    lengths: list[int] = []
    seen: set[str] = set()
    for _ in range(num_pairs):
        if not lengths:
            lengths = list(range(min_length, max_length + 1))
            rng.shuffle(lengths)
        length = lengths.pop()
        for _ in range(_MAX_TRIES):
            pair = _try_pair(grammar, length)
            if pair is not None and pair.source not in exclude and not (is_unique and pair.source in seen):
                break
        else:
            raise UsageError(
                f"captions: fewer than {num_pairs} different sentences of {length} tokens found; "
                f"ask for fewer pairs or for a wider range than {min_length} to {max_length}"
            )
        if is_unique:
            seen.add(pair.source)
        yield pair


def _try_pair(grammar: Grammar, length: int) -> CaptionPair | None:
    """One attempt at a sentence of this length; None if its words or its length did not work out."""
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
    return CaptionPair(_join(source), _join(target), _links(source, target), pattern)


def _join(tokens: list[Token]) -> str:
    text = ""
    for token in tokens:
        text += token.text if not text or token.text in (",", ".", "?") else " " + token.text
    return text[0].upper() + text[1:]


def _links(source: list[Token], target: list[Token]) -> tuple[tuple[int, int], ...]:
    places: dict[tuple[int, str], list[int]] = {}
    for j, token in enumerate(target):
        for key in token.keys:
            places.setdefault(key, []).append(j)
    return tuple(sorted({(i, j) for i, token in enumerate(source) for key in token.keys for j in places.get(key, ())}))
