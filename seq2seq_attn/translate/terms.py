"""Translate with a glossary: where a line has a source term, the target term is required.

All segments are first translated as without a glossary. The segments whose translations lack a term
are then translated once more by the search `required`, in a beam that has as many slots for each
bank as without a glossary. So the translation of a line without terms does not depend on the
glossary.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, product
from typing import TYPE_CHECKING, NamedTuple

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.search import beam, required
from seq2seq_attn.search.base import Search
from seq2seq_attn.text.glossary import Glossary, Words, find_terms, split_terms
from seq2seq_attn.text.languages import separates_words
from seq2seq_attn.text.links import links_between_words
from seq2seq_attn.text.marks import SPACE
from seq2seq_attn.text.tokenizers.base import Tokenizer
from seq2seq_attn.text.tokenizers.source import Source
from seq2seq_attn.text.vocab import UNK, Vocab
from seq2seq_attn.translate.segments import Segment
from seq2seq_attn.translate.translation import Translation

if TYPE_CHECKING:
    from seq2seq_attn.translate.plan import Plan

_END = re.compile(r"(?<=[.!?…])[\"»”)]*\s+|(?<=[。！？])(?=\w)")
"""matches the end of a sentence before another. If a translation with required terms has more such
ends than the translation without, the terms behind them are not in the sentence."""
MAX_TOKENS = 100
"""maximum number of required tokens of a segment"""


class Side(NamedTuple):
    """The language and the tokenizer of one side of a run."""

    language: str
    tokenizer: Tokenizer

    def words(self, term: str) -> Words:
        """Return the words of a term as the tokenizer spells them."""
        return self.words_of(self.tokenizer.tokenize(term))

    def words_of(self, tokens: Sequence[str]) -> Words:
        """Return the words of tokens."""
        return split_terms(self.tokenizer.detokenize(tokens), self.language)


Entry = tuple[Words, str]
"""the words of a source term, and its target term"""


class Terms(NamedTuple):
    """The terms of a glossary, as a run spells them."""

    source: Side
    target: Side
    by_words: dict[Words, Entry]
    """entries by the words of their source terms"""
    continuing: Sequence[int]
    """ids of the target tokens that continue a word"""

    def missing(self, entries: Sequence[Entry], text: str) -> list[str]:
        """Return the target terms that a text lacks."""
        words = split_terms(text, self.target.language)
        return [
            term for _, term in entries if not find_terms(words, {self.target.words(term): term})
        ]

    def misplaced(self, entries: Sequence[Entry], translation: Translation) -> list[str]:
        """Return the target terms without a link from a word of the source term; none if the links
        cannot be found. Nearly all misplaced terms have no such link, and all terms in the right
        place have one."""
        tokens = translation.source_tokens[:-1]
        source_words = self.source.words_of(tokens)
        target_words = split_terms(translation.text, self.target.language)
        try:
            links = links_between_words(
                translation.links(), tokens, translation.tokens, source_words, target_words
            )
        except ValueError:
            return []
        linked = {(source_words[source], target_words[target]) for source, target in links}
        misplaced = []
        for words, term in entries:
            if linked.isdisjoint(product(words, self.target.words(term))):
                misplaced.append(term)
        return misplaced

    def source_entries(self, line: str) -> set[Entry]:
        """Return the entries whose source terms a line has."""
        return set(find_terms(self.source.words(line), self.by_words))

    def source_words(self, line: str) -> set[str]:
        """Return the words of the source terms that a line has."""
        return set(chain.from_iterable(words for words, _ in self.source_entries(line)))

    def join_split(self, sentences: Sequence[str]) -> list[str]:
        """Join neighbouring sentences that share a source term, such as `Jeopardy! Show`."""
        joined = [*sentences[:1]]
        for sentence in sentences[1:]:
            both = joined[-1] + sentence
            separate = self.source_entries(joined[-1]) | self.source_entries(sentence)
            if self.source_entries(both) <= separate:
                joined.append(sentence)
            else:
                joined[-1] = both
        return joined

    def require(self, entries: Sequence[Entry], options: SearchConfig) -> required.Options:
        """Return the options of a search that requires target terms. Terms that would make more
        than `MAX_TOKENS` required tokens are left out."""
        values = options.model_dump()
        required_terms = [*values.get("required", [])]
        num_tokens = 0
        for _, term in entries:
            size = len(self.target.tokenizer.tokenize(term))
            if num_tokens + size <= MAX_TOKENS:
                num_tokens += size
                required_terms.append(term)
        values["required"] = required_terms
        values["beam_size"] = min(options.beam_size * (num_tokens + 1), 1_000)
        values["n_best"] = min(options.n_best + 9, values["beam_size"])  # the best stay
        values["batch_size"] = max(1, options.batch_size // (num_tokens + 1))
        values["max_length_extra"] += num_tokens + 1
        return required.Options(**values)


def check_method(search: Search, options: SearchConfig) -> None:
    """Raise UsageError if a method of search cannot require words."""
    if search not in (beam.search, required.search):
        raise UsageError(
            f"method={options.method!r}: cannot require the terms of a glossary; use beam"
        )


@lru_cache(maxsize=4)
def prepare_terms(
    glossary: Glossary, languages: tuple[str, str], source: Source, target: Tokenizer, vocab: Vocab
) -> Terms:
    """Return the terms of a glossary for a run. `vocab` is the target vocabulary of the run.

    Raises:
        UsageError: the run does not read one text.
        UserError: the vocabulary lacks a target term, or a source term has two target terms.
    """
    if not isinstance(source, Tokenizer):
        raise UsageError("glossary: needs a run that reads one text, without marks of sentences")
    source_side = Side(languages[0], source)
    by_words: dict[Words, Entry] = {}
    for where, source_term, target_term in glossary:
        if UNK in vocab.ids_of(target.tokenize(target_term)):
            raise UserError(
                f"{where}: {target_term!r} is not in the run's target vocabulary; leave it out"
            )
        words = source_side.words(source_term)
        if by_words.setdefault(words, (words, target_term))[1] != target_term:
            raise UserError(
                f"{where}: {source_term!r} has another target term in a line before; keep one"
            )
    continuing = []
    if separates_words(languages[1]) and any(SPACE in token for token in vocab.tokens):
        for token_id, token in enumerate(vocab.tokens):
            if unicodedata.category(token[0])[0] in "LMN":
                continuing.append(token_id)
    return Terms(source_side, Side(languages[1], target), by_words, continuing)


def require_terms(
    terms: Terms,
    segments: Sequence[Segment],
    translated: list[list[Translation]],
    plan: Plan,
    translate: Callable[[list[Segment], Plan], list[list[Translation]]],
) -> None:
    """Translate the segments again, in place, whose translations lack required terms.

    Args:
        terms: the terms of the glossary.
        segments: the segments of several lines.
        translated: the translations of each segment; new translations replace the old ones. A
            translation has a warning for each term that it lacks, that stands in a surplus sentence
            at the end, or that has no link from its source term. Those with the fewest warnings
            come first.
        plan: the plan by which the segments were translated.
        translate: translates segments by another plan, whose search is `required`.
    """
    lacking = defaultdict(list)
    for index, segment in enumerate(segments):
        entries = tuple(find_terms(terms.source.words_of(segment.source), terms.by_words))
        if any(terms.missing(entries, translation.text) for translation in translated[index]):
            lacking[entries].append(index)
    for entries, indices in lacking.items():
        options = terms.require(entries, plan.options)
        new_plan = plan._replace(search=required.search, options=options)
        again = translate([segments[index] for index in indices], new_plan)
        for index, translations in zip(indices, again, strict=True):
            # Terms in sentences beyond those of the first translation do not count.
            num_sentences = len(_END.split(translated[index][0].text))
            new = []
            for translation in translations:
                text = " ".join(_END.split(translation.text)[:num_sentences])
                doubtful = terms.missing(entries, text) or terms.misplaced(entries, translation)
                messages = [f"the term {term!r} is missing or out of place" for term in doubtful]
                warnings = (*translation.warnings, *messages)
                new.append(replace(translation, warnings=warnings))
            new.sort(key=lambda translation: len(translation.warnings))
            translated[index] = new[: plan.options.n_best]
