"""Which of spaCy's tokens depend on more than the text between two blanks.

spaCy's tokenizer splits a line at blanks and works on each span alone, so that the tokens of a span need to be found
once. One step sees the whole line: special cases with punctuation in them (":)", "d.h.", "10a.m.") are searched in the
tokens found so far, across blanks. What is found across a blank is no special case and changes nothing itself, but it
hides what it overlaps: ":)hm" gives ":)" and "hm", but in "(so) :)hm" the search finds "):" first, and ":" and ")" stay
apart. So where something may be found across the blank between two spans, spaCy is given the whole line.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

Tokens = tuple[str, ...]


class Seams:
    """Between which neighbours a match may lie, told from the last token of one and the first of the next."""

    def __init__(self, tokenizer: Any) -> None:
        """Read the special cases of a `spacy.tokenizer.Tokenizer`."""
        # the same rules without the special cases: what the search is given
        plain = type(tokenizer)(
            tokenizer.vocab,
            prefix_search=tokenizer.prefix_search,
            suffix_search=tokenizer.suffix_search,
            infix_finditer=tokenizer.infix_finditer,
            token_match=tokenizer.token_match,
            url_match=tokenizer.url_match,
        )
        self._pairs: set[tuple[str, str]] = set()
        # a special case replaces the tokens that it was found in: these may be hidden behind its own
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
        """Whether a match may go on in a span with these tokens."""
        return tokens[0] in self._may_start

    def may_join(self, left: Tokens, right: Tokens) -> bool:
        """Whether a match may lie across the blank between spans with these tokens."""
        end, start = left[-1], right[0]
        return (
            (end, start) in self._pairs
            or (end in self._ends and start in self._may_start)
            or (end in self._may_end and start in self._starts)
        )
