"""spaCy's rule-based word tokenizers."""

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

from seq2seq_attn.errors import UsageError
from seq2seq_attn.runtime.extras import require
from seq2seq_attn.text.languages import short_code
from seq2seq_attn.text.normalize import normalize, one_line
from seq2seq_attn.text.tokenizers.base import Tokenizer
from seq2seq_attn.text.tokenizers.detokenize import detokenize
from seq2seq_attn.text.vocab import SPECIALS, UNK

_MIN_LINES = 32
"""For fewer lines, reading the special cases takes longer than the cache of spans saves."""
_MAX_CHARACTERS = 1 << 18
"""maximum number of characters in the cache of spans: about 30,000 spans, 10 MB"""
_UNKNOWN = SPECIALS[UNK]
_SEARCHES = {
    "prefix": "prefix_search",
    "suffix": "suffix_search",
    "infix": "infix_finditer",
    "match": "token_match",
    "url": "url_match",
}
"""names of a spaCy tokenizer's regular expressions and the attributes that search for them; `match`
and `url` recognize whole spans that are one token"""
# Spans that are tokenized apart from the rest of a line: `<unk>`, which a model may have written
# and which is one token; 32 punctuation marks in a row; and 1,024 characters without a space. spaCy
# splits off one punctuation mark at a time and searches the rest of the span each time: 4,000
# brackets took 2 s, and a megabyte would take days. Ordinary text has no such runs.
_CUT_OUT = re.compile(rf"{_UNKNOWN}|(?:[^\w ]|_){{32}}|[^ ]{{1024}}")


class SpacyTokenizer(Tokenizer):
    """Split text by the tokenizer of `spacy.blank(language)`, which spaCy's trained pipelines use
    as well. `<unk>` is one token."""

    name = "spacy"

    def __init__(self, language: str, *, lowercase: bool = False) -> None:
        """Create the tokenizer of a language. Raises UsageError if spaCy has no tokenizer for the
        language, or if the tokenizer needs a package that is not installed, and UserError if spaCy
        is not installed."""
        require("words", "spacy")
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
        """the tokens of each span; a span is the text between two spaces"""

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the tokens of each line. A span between spaces that occurs repeatedly is tokenized
        once."""
        lines = [
            normalize(text, lowercase=self.lowercase, language=self.language) for text in texts
        ]
        with self._nlp.memory_zone():  # without a zone, spaCy keeps every string in memory
            if len(lines) < _MIN_LINES or not self.has_rules:
                return [self._tokens(line) for line in lines]
            return self._by_spans(lines)

    def _tokens(self, line: str) -> list[str]:
        """Tokenize a normalized line by spaCy. The spans that `_CUT_OUT` matches are tokenized
        separately."""
        # the tokenizer is called, because the pipeline rejects lines longer than its `max_length`
        tokenize = self._nlp.tokenizer
        bounds = [0]
        for match in _CUT_OUT.finditer(line):
            bounds += match.span()
        tokens = []
        for start, stop in pairwise([*bounds, len(line)]):
            span = line[start:stop]
            if span == _UNKNOWN:
                tokens.append(span)
            elif span:
                tokens += [token.text for token in tokenize(span) if not token.is_space]
        return tokens

    def _by_spans(self, lines: Sequence[str]) -> list[list[str]]:
        """Tokenize each line from the cache of spans. spaCy tokenizes unknown spans, and whole
        lines where a special case may cross a space (`_special_edges`)."""
        starts, ends = self._special_edges
        known = self._known
        spans_by_line = [line.split(" ") if line else [] for line in lines]
        for span in set(chain.from_iterable(spans_by_line)).difference(known):
            known[span] = tuple(self._tokens(span))
        tokenized = []
        for line, spans in zip(lines, spans_by_line, strict=True):
            tokens = [known[span] for span in spans]
            pairs = pairwise(tokens)
            # If a special case may cross a space, spaCy must see the whole line.
            if any(left[-1] in starts and right[0] in ends for left, right in pairs):
                tokenized.append(self._tokens(line))
            else:
                tokenized.append(list(chain.from_iterable(tokens)))
        if sum(map(len, known)) > _MAX_CHARACTERS:
            self.forget()
        return tokenized

    @cached_property
    def _special_edges(self) -> tuple[set[str], set[str]]:
        """Return two sets of tokens: the tokens before a space after which a special case may
        continue, and the tokens that may continue a special case after a space.

        spaCy splits a line at spaces and tokenizes each span alone. Only its last step sees the
        whole line: spaCy searches the tokens for special cases with punctuation (":)", "d.h.",
        "10a.m."), across spaces. A match across a space is discarded, but it hides the matches that
        it overlaps: ":)hm" gives ":)" and "hm", but in "(so) :)hm" the search matches "):" first,
        and ":" and ")" stay apart.

        So where the tokens next to a space allow a match across the space, spaCy gets the whole
        line. That is 1 of 200 lines of Multi30k.
        """
        tokenizer = self._nlp.tokenizer
        # spaCy searches the tokens that a tokenizer without special cases returns
        searches = {name: getattr(tokenizer, name) for name in _SEARCHES.values()}
        plain = type(tokenizer)(tokenizer.vocab, **searches)
        starts = set()
        ends = set()
        for text in tokenizer.rules:
            searched = [token.text for token in plain(text)]
            if len(searched) > 1:
                starts.update(searched[:-1])
                ends.update(searched[1:])
                # The cache holds the tokens of the special case instead of the matched tokens.
                tokens = [token.text for token in tokenizer(text)]
                ends.add(tokens[0])
                starts.add(tokens[-1])
        return starts, ends

    def forget(self) -> None:
        self._known.clear()

    def detokenize(self, tokens: Sequence[str]) -> str:
        return one_line(detokenize(tokens, self.language))

    @property
    def has_rules(self) -> bool:
        """Return whether spaCy's rules tokenize the language. Japanese and Thai, for example, use
        another library."""
        return type(self._nlp.tokenizer).__module__ == "spacy.tokenizer"

    def is_number(self, word: str) -> bool:
        """Return whether a word is a number, in digits or in letters."""
        return bool(self._nlp.vocab[word].like_num)

    def special_cases(self) -> dict[str, list[str]]:
        """Return each span that spaCy tokenizes by a special case, and the tokens of the special
        case."""
        orth = self._nlp.vocab.strings["ORTH"]
        special_cases = {}
        for span, tokens in self._nlp.tokenizer.rules.items():
            if span.strip():
                special_cases[span] = [token[orth] for token in tokens]
        return special_cases

    def patterns(self) -> dict[str, str | None]:
        """Return the regular expression of each search in `_SEARCHES`."""
        patterns = {}
        for name, attribute in _SEARCHES.items():
            search = getattr(self._nlp.tokenizer, attribute)
            patterns[name] = search and search.__self__.pattern
        return patterns

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "language": self.language}
