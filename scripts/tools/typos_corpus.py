"""A corpus of misspelled words, from a word list and five kinds of noise. The same words always give the same files.

    keyboard   a letter is replaced by its neighbor on a QWERTY keyboard      house -> hpuse
    swap       two neighboring letters change places                          house -> huose
    drop       a letter is left out                                           house -> hose
    double     a letter is written twice                                      house -> housse
    vowel      a vowel is replaced by another one                             house -> hoase

A typo lies at the letters that it touches, counted from 1 in the misspelled word: the wrong letter; both letters of a
swap; the two letters between which one is missing; the whole run in which a letter is doubled. Several typos may give
the same misspelling, also of several words of the list; the letters of all of them are right, and the finder learns to
name the first.

`train-twice` has the pairs of `train` and words with two typos. There are far more of these than of single typos: a
corrector cannot learn them by heart.

A pair of the test set `known` has a word that training shows with other typos. A pair of `new` has a word that training
never shows. A misspelling that is itself a word of the list is left out, and no training pair has a misspelling of
another split.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.laboratory.captions.lexicon import load_lexicon
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_lines
from seq2seq_attn.text import multi30k
from seq2seq_attn.text.corpus import iter_lines, read_lines

KINDS = ("keyboard", "swap", "drop", "double", "vowel")
VOWELS = "aeiou"
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
MIN_LETTERS, MAX_LETTERS = 3, 24
MIN_COUNT = 40
"""of a word in Multi30k: some 1,000 words are learned in a quarter of an hour on one core"""
NEW_ONE_IN, VALID_ONE_IN = 10, 5
PER_KIND = 40
"""training typos per word and kind, where there are so many"""
TWICE, PER_WORD = "train-twice", 60
"""the training pairs with one or two typos, and how many with two there are of a word"""
SPLITS = ("train", "valid", "known", "new")
ABOUT = ("kind", "mended", "letters", "words")


class Typo(NamedTuple):
    """A misspelled word."""

    text: str
    word: str
    kind: str
    letters: tuple[int, ...]
    """the letters of `text` that the typo touches, from 1"""
    mended: int
    """the letter of `word` that corrects it, from 1; the first one of a swap"""


def typos_of(word: str) -> Iterator[Typo]:
    """All typos of a word."""
    for i, letter in enumerate(word):
        before, after = word[:i], word[i + 1 :]
        for other in neighbors(letter):
            yield Typo(before + other + after, word, "keyboard", (i + 1,), i + 1)
        for other in VOWELS if letter in VOWELS else "":
            if other != letter:
                yield Typo(before + other + after, word, "vowel", (i + 1,), i + 1)
        if after and after[0] != letter:
            yield Typo(before + after[0] + letter + after[1:], word, "swap", (i + 1, i + 2), i + 1)
        if len(word) > MIN_LETTERS:
            around = tuple(position for position in (i, i + 1) if 0 < position < len(word))
            yield Typo(before + after, word, "drop", around, i + 1)
        yield Typo(before + letter + letter + after, word, "double", _run(word, i), i + 1)


def _run(word: str, i: int) -> tuple[int, ...]:
    """The letters of the run that a doubled letter makes longer."""
    first = i - len(word[:i]) + len(word[:i].rstrip(word[i]))
    last = len(word) - len(word[i:].lstrip(word[i]))  # of the run in `word`, 1 less than in the misspelling
    return tuple(range(first + 1, last + 2))


def neighbors(letter: str) -> str:
    """The letters beside a letter on a QWERTY keyboard, in its row and in those above and below."""
    rows = [keys for keys in KEYBOARD if letter in keys]
    if not rows:
        return ""
    row, column = KEYBOARD.index(rows[0]), rows[0].index(letter)
    found = rows[0][max(0, column - 1) : column] + rows[0][column + 1 : column + 2]
    if row > 0:  # each row is shifted right by half a key
        found += KEYBOARD[row - 1][column : column + 2]
    if row < len(KEYBOARD) - 1:
        found += KEYBOARD[row + 1][max(0, column - 1) : column + 1]
    return found


def default_words(data_dir: Path) -> list[str]:
    """The words of Multi30k's English training captions and of the embedded corpus's lexicon.

    Raises:
        UserError: Multi30k can neither be found nor downloaded.
    """
    directory = multi30k.fetch(data_dir)
    counts: Counter[str] = Counter()
    for line in iter_lines(directory / "train.en.gz"):
        counts.update(re.findall(r"[a-z]+", line.lower()))
    lexicon = load_lexicon()
    forms = [form for noun in lexicon.nouns for form in (noun.en, noun.en_plural)]
    forms += [form for verb in lexicon.verbs for form in verb.en] + [adjective.en for adjective in lexicon.adjectives]
    return clean([*(word for word, count in counts.items() if count >= MIN_COUNT), *forms])


def read_words(path: Path) -> list[str]:
    """The words of a file with one per line, such as `/usr/share/dict/words`.

    Raises:
        UserError: the file cannot be read, or has no words.
    """
    if not (words := clean(read_lines(path))):
        raise UserError(f"{path}: no words of {MIN_LETTERS} to {MAX_LETTERS} letters from a to z; name a word list")
    return words


def clean(words: Iterable[str]) -> list[str]:
    """The words of a to z that are neither short nor long, sorted. Names and abbreviations, with capitals, go."""
    return sorted({word for word in words if re.fullmatch(f"[a-z]{{{MIN_LETTERS},{MAX_LETTERS}}}", word)})


def make_splits(words: Sequence[str], *, per_kind: int = PER_KIND) -> dict[str, list[Typo]]:
    """The typos of each split."""
    shuffled = random.Random(0).sample(words, len(words))
    splits: dict[str, list[Typo]] = {split: [] for split in SPLITS}
    is_word, num_new = set(words), len(words) // NEW_ONE_IN
    for number, word in enumerate(shuffled):
        of_kind = _by_kind(word, is_word)
        if number < num_new:
            splits["new"] += [typos[0] for typos in of_kind.values()]
            continue
        kind = KINDS[number % len(KINDS)]
        if len(of_kind.get(kind, ())) > 1:
            splits["valid" if number // len(KINDS) % VALID_ONE_IN == 0 else "known"].append(of_kind[kind].pop())
        splits["train"] += [typo for typos in of_kind.values() for typo in typos[:per_kind]]
    held_out = {typo.text for split in SPLITS[1:] for typo in splits[split]}
    splits["train"] = [typo for typo in splits["train"] if typo.text not in held_out]
    return splits


def _by_kind(word: str, is_word: set[str]) -> dict[str, list[Typo]]:
    """The typos of a word that are no words, in random order, each misspelling once."""
    found: dict[str, dict[str, Typo]] = defaultdict(dict)
    for typo in typos_of(word):
        if typo.text not in is_word:
            found[typo.kind].setdefault(typo.text, typo)
    return {kind: random.Random(f"{word} {kind}").sample([*of.values()], len(of)) for kind, of in found.items()}


def make_twice(words: Sequence[str], splits: Mapping[str, Sequence[Typo]]) -> list[tuple[str, str]]:
    """Training words with two typos: the misspelling, which is neither a word nor in a split, and the word."""
    taken = {*words, *(typo.text for typos in splits.values() for typo in typos)}
    found = []
    for word in sorted({typo.word for typo in splits["train"]}):
        draws = random.Random(f"{word} {TWICE}")
        texts = {_with_typo(_with_typo(word, draws), draws) for _ in range(PER_WORD)}
        found += [(text, word) for text in sorted(texts - taken)]
    return found


def _with_typo(word: str, draws: random.Random) -> str:
    """The word with a random typo; each kind is as likely as another."""
    by_kind: dict[str, list[str]] = defaultdict(list)
    for typo in typos_of(word):
        by_kind[typo.kind].append(typo.text)
    return draws.choice(by_kind[draws.choice(list(by_kind))])


def explain(splits: Mapping[str, Sequence[Typo]], words: Iterable[str]) -> dict[str, list[Typo]]:
    """All typos that give each misspelling of the splits."""
    found: dict[str, list[Typo]] = {typo.text: [] for typos in splits.values() for typo in typos}
    for word in words:
        for typo in typos_of(word):
            if typo.text in found:
                found[typo.text].append(typo)
    return found


def write_corpus(directory: Path, words: Sequence[str], *, per_kind: int = PER_KIND) -> dict[str, int]:
    """Write `SPLIT.typo`, `SPLIT.word` and `SPLIT.position`: the misspellings, what they should be, the first letter of
    the typo; and `SPLIT.tsv` with the columns `ABOUT`; and the pairs of `TWICE`. Returns the number of pairs in each
    split."""
    splits = make_splits(words, per_kind=per_kind)
    explained = explain(splits, words)
    for split, typos in splits.items():
        letters = {
            typo.text: sorted({letter for one in explained[typo.text] for letter in one.letters}) for typo in typos
        }
        columns = {
            "typo": [typo.text for typo in typos],
            "word": [typo.word for typo in typos],
            "position": [str(letters[typo.text][0]) for typo in typos],
            "tsv": [_about(typo, letters[typo.text], explained[typo.text]) for typo in typos],
        }
        for suffix, lines in columns.items():
            header = ["\t".join(ABOUT)] if suffix == "tsv" else []
            write_lines(directory / f"{split}.{suffix}", [*header, *lines])
    twice = [*((typo.text, typo.word) for typo in splits["train"]), *make_twice(words, splits)]
    for suffix, column in (("typo", 0), ("word", 1)):
        write_lines(directory / f"{TWICE}.{suffix}", (pair[column] for pair in twice))
    return {split: len(typos) for split, typos in splits.items()} | {TWICE: len(twice)}


def _about(typo: Typo, letters: Sequence[int], explanations: Sequence[Typo]) -> str:
    possible = sorted({one.word for one in explanations})
    return "\t".join([typo.kind, str(typo.mended), ",".join(map(str, letters)), ",".join(possible)])


class Example(NamedTuple):
    """A pair of a split, read from its files."""

    text: str
    word: str
    kind: str
    mended: int
    letters: tuple[int, ...]
    words: tuple[str, ...]
    """all words of the list that the misspelling may mean"""


def read_split(directory: Path, split: str) -> list[Example]:
    """The pairs of a split with what is known about them."""
    texts, words, (_, *about) = (read_lines(directory / f"{split}.{suffix}") for suffix in ("typo", "word", "tsv"))
    examples = []
    for text, word, line in zip(texts, words, about, strict=True):
        kind, mended, letters, possible = line.split("\t")
        found = tuple(map(int, letters.split(",")))
        examples.append(Example(text, word, kind, int(mended), found, tuple(possible.split(","))))
    return examples
