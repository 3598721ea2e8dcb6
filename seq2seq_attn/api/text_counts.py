"""Count a parallel text of the user: its pairs, words and characters, and the kind of its lines."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.corpus import Text
from seq2seq_attn.text.languages import separates_words
from seq2seq_attn.text.tokenizers.base import CharacterTokenizer

NUM_PAIRS = 10_000
"""Words, characters and lengths are counted in a sample of at most this number of pairs, which are
spread evenly over the text."""
MAX_NEW = 0.001
"""The words come from a closed list if at most this share of running words occurs once. The share
estimates how many words of new text are unknown (Good 1953). It is at most 0.05 % for phonemes,
digits and commands, 0.5 % for captions from a grammar, and 4 to 20 % for other sentences."""
MAX_COPIES = 10
"""A line that occurs up to this number of times may be a copy, for example of a sentence with
several references. A line that occurs more often is a label."""
MAX_LABELS = 0.01
"""Lines of single words are symbols only if the number of distinct words is at most this share of
the number of lines."""
MAX_SINGLE_WORDS = 1.5
"""Lines are single words if they have at most this number of words on average."""
MAX_WORDS_OF_NAMES = 2.7
"""Lines are spelled if they have at most this number of words on average."""
MAX_SIGNS_OF_NAMES = 6.0
"""In languages without spaces between words, lines are spelled if they have at most this number of
characters on average."""
MARKS = tuple(".!?…。！？।")
"""punctuation marks at the end of sentences"""
MAX_MARKED = 0.1
"""Lines are sentences if a larger share of lines ends in one of `MARKS`."""
TOKENS_PER_WORD = 1.4
"""Estimated number of tokens per word, for tokens that are subwords or spaCy's."""

Kind = Literal["spelled", "symbols", "sentences"]
"""The kind of lines, which decides the tokens. `spelled` lines are single words or names, and their
tokens are characters. `symbols` are words from a closed list, such as phonemes, digits or labels,
and each word is a token. All other lines are `sentences`."""


@dataclass(frozen=True)
class Side:
    """A sample of the lines of one side of a text, and counts of the sample.

    Words are separated by spaces. In a language without spaces between words, such as Chinese, each
    character counts as a word.
    """

    language: str
    lines: Sequence[str]

    @cached_property
    def words(self) -> Counter[str]:
        """Return how often each word occurs."""
        if not separates_words(self.language):
            return self.characters
        return Counter(" ".join(self.lines).split())

    @cached_property
    def characters(self) -> Counter[str]:
        """Return how often each character occurs."""
        return Counter("".join(self.lines))

    @cached_property
    def is_closed(self) -> bool:
        """Return whether the words come from a closed list, so that hardly any word of new text is
        unknown. Copies of a line count once, as they do not show that a word occurs elsewhere."""
        num_copies = Counter(self.lines)
        labels = [line for line, number in num_copies.items() if number > MAX_COPIES]
        words = Side(self.language, [*num_copies, *labels]).words
        num_single = list(words.values()).count(1)
        return num_single <= MAX_NEW * words.total()

    @property
    def are_single_words(self) -> bool:
        """Return whether hardly any line has spaces, and most lines differ."""
        num_words = self.words.total()
        return num_words <= MAX_SINGLE_WORDS * len(self.lines) and len(self.words) > num_words / 2

    @cached_property
    def kind(self) -> Kind:
        """Return the kind of the lines."""
        num_lines = max(1, len(self.lines))
        words_per_line = self.words.total() / num_lines
        num_marked = sum(line.rstrip().endswith(MARKS) for line in self.lines)
        if num_marked > MAX_MARKED * num_lines:
            return "sentences"
        if not separates_words(self.language):
            return "spelled" if words_per_line <= MAX_SIGNS_OF_NAMES else "sentences"
        has_several_words = words_per_line > MAX_SINGLE_WORDS
        has_few_types = len(self.words) <= MAX_LABELS * num_lines
        # Single words of many types, such as numbers, are spelled even if the list is closed.
        if self.is_closed and (has_several_words or has_few_types):
            return "symbols"
        return "spelled" if words_per_line <= MAX_WORDS_OF_NAMES else "sentences"

    def lengths(self, tokenizer: str) -> list[float]:
        """Return the number of tokens of each line for the name of a tokenizer.

        The numbers of subwords and of spaCy's tokens are estimates. In a language without spaces
        between words, characters are counted for every tokenizer.
        """
        if tokenizer == "characters" or not separates_words(self.language):
            return list(map(len, CharacterTokenizer().tokenize_many(self.lines)))
        factor = 1.0 if tokenizer == "spaces" else TOKENS_PER_WORD
        return [factor * len(line.split()) for line in self.lines]


@dataclass(frozen=True)
class Counts:
    """The number of pairs of a text, and a sample of the lines of each side."""

    num_pairs: int
    source: Side
    target: Side

    def estimate_tokens(self, tokenizer: str) -> float:
        """Estimate the number of target tokens of the whole text from the sample. The tokens are
        characters or, for all other tokenizers, words; at least one per line on average."""
        side = self.target
        num_tokens: float = side.words.total()
        if tokenizer == "characters":
            num_tokens = sum(side.lengths(tokenizer))
        return max(1, self.num_pairs) * max(1.0, num_tokens / max(1, len(side.lines)))


def count_text(text: Text, limit: int | None) -> Counts:
    """Count the pairs of a text up to `limit`, and read a sample of these pairs. Of several
    sources, only the first one is read. Raises UserError: the text has no pair."""
    num_pairs = sum(1 for _ in islice(text.pairs(), limit))
    if not num_pairs:
        raise UserError(f"{text}: empty: no sentence pairs; name a text that has some")
    step = max(1, math.ceil(num_pairs / NUM_PAIRS))
    sources = []
    targets = []
    for source, target in islice(text.pairs(), 0, num_pairs, step):
        sources.append(source.split("\t")[0])
        targets.append(target)
    target_side = Side(text.languages[-1], targets)
    if text.layout.vector_column == 0 or not text.layout.columns:
        # A source line that names a file of vectors, or the blank source line of a language model,
        # says nothing about tokens. The target takes its place.
        return Counts(num_pairs, target_side, target_side)
    return Counts(num_pairs, Side(text.languages[0], sources), target_side)
