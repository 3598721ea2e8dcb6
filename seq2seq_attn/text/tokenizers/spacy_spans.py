"""Tell where spaCy's tokens depend on both sides of a space, so that other spans can be cached.

spaCy's tokenizer splits a line at spaces and tokenizes each span alone. Only its last step sees the whole line: it
searches the tokens for special cases with punctuation (":)", "d.h.", "10a.m."), across spaces. A match across a space
is discarded, but it hides the matches that it overlaps: ":)hm" gives ":)" and "hm", but in "(so) :)hm" the search
matches "):" first, and ":" and ")" stay apart. So where a match across a space is possible, spaCy gets the whole line.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

Tokens = tuple[str, ...]


class BoundaryRules:
    """Whether a match may cross the space between two spans, judged by the tokens next to the space."""

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
        ends, starts = set(), set()
        for text in tokenizer.rules:
            before = [token.text for token in plain(text)]
            after = [token.text for token in tokenizer(text)]
            if len(before) > 1:
                self._pairs.update(pairwise(before))
                starts.add(after[0])
                ends.add(after[-1])
        self._may_end = ends | {left for left, _ in self._pairs}
        self._may_start = starts | {right for _, right in self._pairs}
        self._ends, self._starts = ends, starts

    def may_start(self, tokens: Tokens) -> bool:
        """Whether a match may continue into a span with these tokens."""
        return tokens[0] in self._may_start

    def may_join(self, left: Tokens, right: Tokens) -> bool:
        """Whether a match may cross the space between spans with these tokens."""
        end, start = left[-1], right[0]
        return (
            (end, start) in self._pairs
            or (end in self._ends and start in self._may_start)
            or (end in self._may_end and start in self._starts)
        )
