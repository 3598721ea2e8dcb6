"""Marks of tags, such as ⟦1⟧ (`text/documents/markup.py`). The model reads a line without them, and
each mark goes where it separates the words of the translation as it separates those of the line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import TYPE_CHECKING

import numpy as np

from seq2seq_attn.text.links import links_between_words
from seq2seq_attn.translate.translation import Translation

if TYPE_CHECKING:
    from seq2seq_attn.translate.plan import Plan

_MARK = re.compile(r"⟦\d+⟧")
_NO_SPACES = re.compile(r"(?<=\S)⟦\d+⟧(?=\S)")
"""a mark without a space at its sides, such as one inside a word"""
_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


def translate_marked(
    translate: Callable[[Sequence[str], Plan], list[list[Translation]]],
    plan: Plan,
    has_attention: bool,
    lines: list[str],
) -> list[list[Translation]]:
    """Return the translations of each line of a chunk, with its marks. `translate` returns them
    without marks, and `has_attention` tells whether they can have their attention."""
    plain = [_MARK.sub(" ", _NO_SPACES.sub("", line)) for line in lines]
    if plain == lines:
        return translate(lines, plan)
    plan = plan._replace(keep_attention=has_attention)
    results = []
    for line, n_best in zip(lines, translate(plain, plan), strict=True):
        if _MARK.search(line):
            n_best = [put_marks(line, translation) for translation in n_best]
        results.append(n_best)
    return results


def put_marks(line: str, translation: Translation) -> Translation:
    """Return a translation with the marks of its line, in their order. It has no marks if there is
    no attention, or if the tokens have other characters than the line."""
    text = translation.text
    pieces = [_WORD.findall(piece) for piece in _MARK.split(line)]
    source_words = list(chain.from_iterable(pieces))
    target_words = _WORD.findall(text)
    source_tokens = translation.source_tokens[:-1]
    try:
        links = translation.links()
        links = links_between_words(
            links, source_tokens, translation.tokens, source_words, target_words
        )
    except ValueError:
        return translation
    sources, targets = np.array(links, dtype=int).reshape(-1, 2).T
    starts = [*(match.start() for match in _WORD.finditer(text)), len(text)]
    start = len(text)
    cuts = accumulate(map(len, pieces))
    for mark, cut in reversed(list(zip(_MARK.finditer(line), cuts, strict=False))):
        # The number of links to the wrong side of each place, but for a constant.
        wrong = np.zeros(len(starts))
        np.add.at(wrong, targets + 1, np.where(sources < cut, -1, 1))
        place = wrong.cumsum().argmin()
        border = line[: mark.start()][-1:] + line[mark.end() :][:1]
        if border.isalpha() and cut not in sources:
            # The mark is inside a token, whose links are those of its first piece.
            first_piece = sources[sources < cut].max(initial=0)
            linked = targets[sources == first_piece]
            is_first = first_piece == cut - 1 and linked.size
            place = linked.min() if is_first else linked.max(initial=-1) + 1
        start = min(starts[place], start)
        text = f"{text[:start]} {mark[0]} {text[start:]}"
    return replace(translation, text=" ".join(text.split()))
