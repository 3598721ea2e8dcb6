"""spaCy's rule-based word tokenizers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any

from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.languages import short_code
from seq2seq_attn.text.normalize import normalize, one_line
from seq2seq_attn.text.tokenizers.base import Tokenizer
from seq2seq_attn.text.tokenizers.detokenize import detokenize
from seq2seq_attn.text.vocab import SPECIALS, UNK

_MIN_LINES = 32
"""Below this many lines, reading the special cases takes longer than the cache of spans saves."""
_MAX_CHARACTERS = 1 << 18
"""Size of the cache of spans: some 30,000 spans, 10 MB."""
# spaCy splits off punctuation one mark at a time and searches the rest of the span each time: 4,000
# brackets took 2 s, a megabyte would take days. So longer runs and spans are cut out; ordinary text
# has none. `<unk>`, which a model may have written, is one token.
_UNKNOWN = SPECIALS[UNK]
_SEARCHES = {
    "prefix": "prefix_search",
    "suffix": "suffix_search",
    "infix": "infix_finditer",
    "match": "token_match",
    "url": "url_match",
}
"""the searches of a spaCy tokenizer; `match` and `url` find whole spans that are one token"""
_CUT_OUT = re.compile(rf"{_UNKNOWN}|(?:[^\w ]|_){{32}}|[^ ]{{1024}}")


def english_name(language: str) -> str:
    """The English name of a language in lower case; the code itself of a language that spaCy does
    not know."""
    try:
        from spacy.util import get_lang_class

        return get_lang_class(short_code(language)).__name__.lower()
    except ImportError:
        return language


class SpacyTokenizer(Tokenizer):
    """The tokenizer of `spacy.blank(language)`, which spaCy's trained pipelines use as well.
    `<unk>` is one token."""

    name = "spacy"

    def __init__(self, language: str, *, lowercase: bool = False) -> None:
        """Create the tokenizer of a language. Raises UsageError: spaCy has no tokenizer for it, or
        the tokenizer needs a package that is not installed."""
        import spacy

        super().__init__(lowercase=lowercase)
        self.language = language
        try:
            self._nlp: Any = spacy.blank(short_code(language))
        except (ImportError, AttributeError):
            raise UsageError(
                f"language {language!r}: spaCy cannot tokenize it; give its code, such as de, or "
                "choose data.tokenizer.name=sentencepiece or characters"
            ) from None
        self._known: dict[str, tuple[str, ...]] = {}
        """the tokens of spans between spaces"""
        self._known_starts: set[str] = set()
        """the known spans in which a special case may go on"""
        self._edges: tuple[set[str], set[str]] | None = None

    def tokenize(self, text: str) -> list[str]:
        with self._nlp.memory_zone():  # outside of one, spaCy keeps every string that it has seen
            return self._tokens(normalize(text, lowercase=self.lowercase))

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        """`tokenize` for each line. Spans between spaces that occur repeatedly are tokenized only
        once."""
        lines = [normalize(text, lowercase=self.lowercase) for text in texts]
        with self._nlp.memory_zone():
            if len(lines) < _MIN_LINES or not self.has_rules:
                return [self._tokens(line) for line in lines]
            return self._by_spans(lines)

    def _tokens(self, line: str) -> list[str]:
        # the tokenizer alone: calling the pipeline would reject lines above its `max_length`
        tokenize = self._nlp.tokenizer
        cuts = [0]
        for match in _CUT_OUT.finditer(line):
            cuts += match.span()
        tokens: list[str] = []
        for start, stop in pairwise([*cuts, len(line)]):
            span = line[start:stop]
            if span == _UNKNOWN:
                tokens.append(span)
            elif span:
                tokens += [token.text for token in tokenize(span) if not token.is_space]
        return tokens

    def _by_spans(self, lines: Sequence[str]) -> list[list[str]]:
        """The tokens of each line, with those of known spans from the cache."""
        if self._edges is None:
            self._edges = special_edges(self._nlp.tokenizer)
        starts, ends = self._edges
        known = self._known
        split = [line.split(" ") if line else [] for line in lines]
        for span in set(chain.from_iterable(split)).difference(known):
            known[span] = tuple(self._tokens(span))
            if known[span][0] in ends:
                self._known_starts.add(span)
        tokenized = []
        for line, spans in zip(lines, split, strict=True):
            is_whole = False
            if not self._known_starts.isdisjoint(spans):
                for left, right in pairwise(spans):
                    may_end = right in self._known_starts
                    is_whole = is_whole or (may_end and known[left][-1] in starts)
            if is_whole:
                tokenized.append(self._tokens(line))
            else:
                tokenized.append(list(chain.from_iterable(map(known.__getitem__, spans))))
        if sum(map(len, known)) > _MAX_CHARACTERS:
            known.clear()
            self._known_starts.clear()
        return tokenized

    def detokenize(self, tokens: Sequence[str]) -> str:
        return one_line(detokenize(tokens, self.language))

    @property
    def has_rules(self) -> bool:
        """False: the language has a tokenizer of another kind, such as Japanese and Thai."""
        return type(self._nlp.tokenizer).__module__ == "spacy.tokenizer"

    def special_cases(self) -> dict[str, list[str]]:
        """The spans between spaces that have tokens of their own, and these tokens."""
        orth = self._nlp.vocab.strings["ORTH"]
        special_cases = {}
        for span, tokens in self._nlp.tokenizer.rules.items():
            if span.strip():
                special_cases[span] = [token[orth] for token in tokens]
        return special_cases

    def patterns(self) -> dict[str, str | None]:
        """The regular expressions of the searches (`_SEARCHES`)."""
        patterns = {}
        for name, attribute in _SEARCHES.items():
            search = getattr(self._nlp.tokenizer, attribute)
            patterns[name] = search and search.__self__.pattern
        return patterns

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "language": self.language}


def special_edges(tokenizer: Any) -> tuple[set[str], set[str]]:
    """The tokens with which a special case of a `spacy.tokenizer.Tokenizer` may reach a space, and
    those with which it may go on behind one. Lines without such neighbors need no whole view.

    spaCy splits a line at spaces and tokenizes each span alone. Only its last step sees the whole
    line: it searches the tokens for special cases with punctuation (":)", "d.h.", "10a.m."), across
    spaces. A match across a space is discarded, but it hides the matches that it overlaps: ":)hm"
    gives ":)" and "hm", but in "(so) :)hm" the search matches "):" first, and ":" and ")" stay
    apart. So where a match across a space is possible, judged by the tokens next to the space,
    spaCy gets the whole line: 1 of 200 lines of Multi30k.
    """
    # the same tokenizer without the special cases gives the tokens that are searched
    searches = {name: getattr(tokenizer, name) for name in _SEARCHES.values()}
    plain = type(tokenizer)(tokenizer.vocab, **searches)
    starts = set()
    ends = set()
    for text in tokenizer.rules:
        searched = [token.text for token in plain(text)]
        if len(searched) > 1:
            starts.update(searched[:-1])
            ends.update(searched[1:])
            # a special case replaces the tokens that it matched, so its own tokens stand for them
            tokens = [token.text for token in tokenizer(text)]
            ends.add(tokens[0])
            starts.add(tokens[-1])
    return starts, ends
