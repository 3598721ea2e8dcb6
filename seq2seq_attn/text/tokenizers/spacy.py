"""spaCy's rule-based word tokenizers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain, pairwise
from pathlib import Path
from runpy import run_path
from typing import Any, NamedTuple

from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.languages import short_code
from seq2seq_attn.text.normalize import normalize, one_line
from seq2seq_attn.text.tokenizers.base import Tokenizer
from seq2seq_attn.text.tokenizers.detokenize import detokenize
from seq2seq_attn.text.vocab import SPECIALS, UNK

Tokens = tuple[str, ...]

_MIN_LINES = 32
"""Below this many lines, reading the special cases takes longer than the cache of spans saves."""
_MAX_CHARACTERS = 1 << 18
"""Size of the cache of spans: some 30,000 spans, 10 MB."""
# spaCy splits off punctuation one mark at a time and searches the rest of the span each time: 4,000
# brackets took 2 s, a megabyte would take days. So longer runs and spans are cut out; ordinary text
# has none. `<unk>`, which a model may have written, is one token.
_UNKNOWN = SPECIALS[UNK]
_CUT_OUT = re.compile(rf"{_UNKNOWN}|(?:[^\w ]|_){{32}}|[^ ]{{1024}}")


def english_name(language: str) -> str:
    """The English name of a language in lower case; the code itself of a language that spaCy does
    not know."""
    from spacy.util import get_lang_class

    try:
        return get_lang_class(short_code(language)).__name__.lower()
    except ImportError:
        return language


@lru_cache(maxsize=16)
def stop_words(language: str) -> frozenset[str]:
    """The most frequent words of a language; none for one that spaCy does not know."""
    code = short_code(language)
    package = find_spec("spacy")
    if package is None or not code.isalpha():
        return frozenset()
    path = Path(package.origin or "", f"../lang/{code}/stop_words.py").resolve()
    # run alone, as importing spaCy takes a second and 200 MB
    return frozenset(run_path(str(path))["STOP_WORDS"] if path.is_file() else ())


class SpacyRules(NamedTuple):
    """The rules of a spaCy tokenizer."""

    special_cases: dict[str, list[str]]
    """spans between spaces, and their tokens"""
    patterns: dict[str, str | None]
    """regular expressions: `prefix`, `suffix`, `infix`, `match` and `url`, whole spans that are one
    token"""


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
        self._known: dict[str, Tokens] = {}
        self._known_characters = 0
        self._may_start: set[str] = set()
        self._boundaries: BoundaryRules | None = None

    def tokenize(self, text: str) -> list[str]:
        with self._nlp.memory_zone():  # outside of one, spaCy keeps every string that it has seen
            return self._tokens(normalize(text, lowercase=self.lowercase))

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        """`tokenize` for each line. Spans between spaces that occur repeatedly are tokenized only
        once."""
        lines = [normalize(text, lowercase=self.lowercase) for text in texts]
        with self._nlp.memory_zone():
            # some languages (Japanese, Thai) have a different kind of tokenizer
            if len(lines) < _MIN_LINES or type(self._nlp.tokenizer).__module__ != "spacy.tokenizer":
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
        if self._boundaries is None:
            self._boundaries = BoundaryRules(self._nlp.tokenizer)
        known = self._known
        may_start = self._may_start
        split = [line.split(" ") if line else [] for line in lines]
        for span in set(chain.from_iterable(split)).difference(known):
            tokens = known[span] = tuple(self._tokens(span))
            self._known_characters += len(span)
            if self._boundaries.may_start(tokens):
                may_start.add(span)
        tokenized = []
        for line, spans in zip(lines, split, strict=True):
            if not may_start.isdisjoint(spans) and self._may_match_across(spans):
                tokenized.append(self._tokens(line))
            else:
                tokenized.append(list(chain.from_iterable(map(known.__getitem__, spans))))
        if self._known_characters > _MAX_CHARACTERS:
            known.clear()
            may_start.clear()
            self._known_characters = 0
        return tokenized

    def _may_match_across(self, spans: Sequence[str]) -> bool:
        """Whether a special case may cross a space between spans."""
        assert self._boundaries is not None
        for left, right in pairwise(spans):
            is_start = right in self._may_start
            if is_start and self._boundaries.may_join(self._known[left], self._known[right]):
                return True
        return False

    def detokenize(self, tokens: Sequence[str]) -> str:
        return one_line(detokenize(tokens, self.language))

    def rules(self) -> SpacyRules | None:
        """The rules; None: the language has a tokenizer of another kind, such as Japanese and
        Thai."""
        tokenizer = self._nlp.tokenizer
        if type(tokenizer).__module__ != "spacy.tokenizer":
            return None
        searches = {
            "prefix": tokenizer.prefix_search,
            "suffix": tokenizer.suffix_search,
            "infix": tokenizer.infix_finditer,
            "match": tokenizer.token_match,
            "url": tokenizer.url_match,
        }
        orth = self._nlp.vocab.strings["ORTH"]
        special_cases = {}
        for span, tokens in tokenizer.rules.items():
            if span.strip():
                special_cases[span] = [token[orth] for token in tokens]
        patterns = {name: search and search.__self__.pattern for name, search in searches.items()}
        return SpacyRules(special_cases, patterns)

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "language": self.language}


class BoundaryRules:
    """Whether spaCy's tokens depend on both sides of a space; other spans can be cached.

    spaCy splits a line at spaces and tokenizes each span alone. Only its last step sees the whole
    line: it searches the tokens for special cases with punctuation (":)", "d.h.", "10a.m."), across
    spaces. A match across a space is discarded, but it hides the matches that it overlaps: ":)hm"
    gives ":)" and "hm", but in "(so) :)hm" the search matches "):" first, and ":" and ")" stay
    apart. So where a match across a space is possible, judged by the tokens next to the space,
    spaCy gets the whole line.
    """

    def __init__(self, tokenizer: Any) -> None:
        """Read the special cases of a `spacy.tokenizer.Tokenizer`."""
        # the same tokenizer without the special cases gives the tokens that are searched
        plain = type(tokenizer)(
            tokenizer.vocab,
            prefix_search=tokenizer.prefix_search,
            suffix_search=tokenizer.suffix_search,
            infix_finditer=tokenizer.infix_finditer,
            token_match=tokenizer.token_match,
            url_match=tokenizer.url_match,
        )
        self._pairs: set[tuple[str, str]] = set()
        # a special case replaces the tokens that it matched, so its own tokens stand for them
        ends = set()
        starts = set()
        for text in tokenizer.rules:
            before = [token.text for token in plain(text)]
            after = [token.text for token in tokenizer(text)]
            if len(before) > 1:
                self._pairs.update(pairwise(before))
                starts.add(after[0])
                ends.add(after[-1])
        self._may_end = ends | {left for left, _ in self._pairs}
        self._may_start = starts | {right for _, right in self._pairs}
        self._ends = ends
        self._starts = starts

    def may_start(self, tokens: Tokens) -> bool:
        """Whether a match may continue into a span with these tokens."""
        return tokens[0] in self._may_start

    def may_join(self, left: Tokens, right: Tokens) -> bool:
        """Whether a match may cross the space between spans with these tokens."""
        end = left[-1]
        start = right[0]
        return (
            (end, start) in self._pairs
            or (end in self._ends and start in self._may_start)
            or (end in self._may_end and start in self._starts)
        )
