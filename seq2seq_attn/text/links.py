"""Read and convert word alignment links of a sentence pair. Links are between words, or between
tokens of the same text.

A link is a pair (source position, target position), written as `0-0 1-2` in the Pharaoh format.
Gold links may be marked: `0-0` is sure, and `0p0` or `0?0` is possible, which means that a system
may have the link or not (Och and Ney 2003).
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from seq2seq_attn.config import shorten
from seq2seq_attn.errors import UserError
from seq2seq_attn.text.marks import SOURCE_END, SPACE
from seq2seq_attn.text.normalize import decompose

_PHARAOH = re.compile(r"(\d{1,9})([-p?])(\d{1,9})")
_SURE = "-"
_WORD = re.compile(r"[^ \t]+")
# Unicode categories of control characters, characters without width, and spaces.
_UNSEEN = {"Cc", "Cf", "Zs", "Zl", "Zp"}

Link = tuple[int, int]


def words_of(line: str) -> list[str]:
    """Return the words of a line, to which links refer. Words are separated by spaces and tabs
    only, as in word aligners. `str.split` would also separate words at a no-break space, which
    French has before some punctuation marks."""
    return _WORD.findall(line)


def parse_pharaoh(line: str, *, only_sure: bool = False) -> tuple[Link, ...]:
    """Return the links of a line such as `0-0 1-2`, sure and possible links alike, or only the sure
    links.

    Raises:
        UserError: a field is not two numbers of at most nine digits joined by `-`, `p` or `?`.
    """
    links = []
    for field in line.split():
        match = _PHARAOH.fullmatch(field)
        if match is None:
            raise UserError(
                f"alignment {shorten(field)}: expected SOURCE-TARGET positions from 0, for example "
                "0-0 1-2; a link that is only possible is written 0p0 or 0?0"
            )
        if match[2] == _SURE or not only_sure:
            links.append((int(match[1]), int(match[3])))
    return tuple(links)


def links_between_words(
    links: Iterable[Link],
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    source_words: Sequence[str],
    target_words: Sequence[str],
) -> list[Link]:
    """Return the distinct links between words that contain linked tokens, sorted by target
    position, then source position. A token that spans several words belongs to the first of these
    words.

    Raises:
        ValueError: tokens and words have different numbers of characters.
    """
    sources = _first_words(source_tokens, source_words)
    targets = _first_words(target_tokens, target_words)
    distinct = set()
    for source_token, target_token in links:
        source = sources[source_token]
        target = targets[target_token]
        if source is not None and target is not None:
            distinct.add((source, target))
    return sorted(distinct, key=lambda link: (link[1], link[0]))


def links_between_tokens(
    links: Sequence[Link],
    source_words: Sequence[str],
    target_words: Sequence[str],
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
) -> list[Link]:
    """Return the distinct links from every token of a linked source word to every token of its
    target word, sorted. A token that spans several words has the links of all these words.

    Raises:
        ValueError: tokens and words have different numbers of characters.
    """
    are_linked = np.zeros((len(source_words), len(target_words)), dtype=np.bool_)
    for source, target in links:
        are_linked[source, target] = True
    is_in_source = word_shares(source_tokens, source_words) > 0
    is_in_target = word_shares(target_tokens, target_words) > 0
    between_tokens = is_in_source @ are_linked @ is_in_target.T
    return [(int(source), int(target)) for source, target in np.argwhere(between_tokens)]


def word_shares(tokens: Sequence[str], words: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return the share of each token's characters that belongs to each word, [tokens, words].

    Tokens and words must be segmentations of the same text. They are matched by counting
    characters. `SOURCE_END` belongs to no word.

    Raises:
        ValueError: tokens and words have different numbers of characters.
    """
    sizes, character_words = _match(tokens, words)
    character_tokens = np.repeat(np.arange(len(tokens)), sizes)
    shares = np.zeros((len(tokens), len(words)))
    np.add.at(shares, (character_tokens, character_words), 1.0)
    shares /= np.maximum(sizes, 1)[:, None]
    if 0 in sizes:
        # A token without characters, such as a space, belongs to the word at its position.
        for row, word in enumerate(_first_words(tokens, words)):
            if sizes[row] == 0 and word is not None:
                shares[row, word] = 1.0
    return shares


def _first_words(tokens: Sequence[str], words: Sequence[str]) -> list[int | None]:
    """Return the position of each token's first word. A token has None if it is `SOURCE_END`, or if
    no word is at its position. Raises ValueError as `_match`."""
    sizes, character_words = _match(tokens, words)
    first_words = []
    start = 0
    for token, size in zip(tokens, sizes, strict=True):
        character = start
        marks = decompose(token) if size == 0 else ""
        if marks and all(map(unicodedata.combining, marks)):
            character -= 1  # combining marks belong to the character before them
        has_word = 0 <= character < len(character_words) and token != SOURCE_END
        first_words.append(int(character_words[character]) if has_word else None)
        start += size
    return first_words


def _match(tokens: Sequence[str], words: Sequence[str]) -> tuple[list[int], npt.NDArray[np.int64]]:
    """Return the number of characters of each token, and the word position of each character.
    Raises ValueError if tokens and words have different numbers of characters."""
    token_sizes = [_num_characters(token) for token in tokens]
    word_sizes = [_num_characters(word) for word in words]
    if sum(token_sizes) != sum(word_sizes):
        raise ValueError(f"not the same text: {''.join(tokens)!r} and {''.join(words)!r}")
    return token_sizes, np.repeat(np.arange(len(words)), word_sizes)


def _num_characters(text: str) -> int:
    """Return the number of letters, digits and symbols in a text.

    The text is counted in lower case and compatibility form, because tokens may be in these forms
    and one letter can become two. Combining marks are not counted, so that the numbers of all
    tokens add up to the number of the text. Spaces and characters without width are not counted.
    """
    letters = decompose(text.lower().replace(SPACE, ""))
    return sum(
        unicodedata.category(letter) not in _UNSEEN and not unicodedata.combining(letter)
        for letter in letters
    )
