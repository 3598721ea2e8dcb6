"""Two models on misspelled words: a finder, which points at the typo, and a corrector, which writes the right word.

Makes the corpus (`typos_corpus.py`), trains the configs `typos/finder` and `typos/corrector` on it, and counts: how
often the finder's position is right, how often the corrector's word is, and how often the corrector's attention has its
maximum on the typo while it writes the letter that corrects it (the right word is given; nothing taught the attention).
The page is `docs/typos.md` (`typos_page.py`).
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.laboratory.harness.records import (
    Record,
    add_record_option,
    add_set_option,
    describe,
    exit_code,
    read_training,
)
from scripts.laboratory.harness.runs import train_one
from scripts.tools.typos_corpus import (
    KINDS,
    MAX_LETTERS,
    PER_KIND,
    TWICE,
    VOWELS,
    Example,
    default_words,
    read_split,
    read_words,
    write_corpus,
)
from scripts.tools.typos_page import LONG, LONG_WORDS, PLOTS, RECORD, draw_plots, page_lines
from seq2seq_attn import load
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import write_json
from seq2seq_attn.metrics.sentence_vectors import all_nearest, project
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.translate.attention_map import AttentionMap
from seq2seq_attn.translate.translation import Translation

MODELS = ("finder", "corrector")
TESTS = ("known", "new")
LENGTHS = {"3-4": 4, "5-6": 6, "7-8": 8, "9 and more": MAX_LETTERS}
MAP_LETTERS = 8


class Answer(NamedTuple):
    """The two models' answers to an example."""

    example: Example
    position: str
    """the finder's"""
    word: str
    """the corrector's"""
    looked_at: int
    """the letter with the largest weight while the mended letter is written, from 1; 0: the end of the word"""


def train_model(directory: Path, name: str, overrides: Sequence[str]) -> RunDir:
    """A run of the config."""
    own = [
        f"data.data_dir={directory}",
        f"data.train={directory / (TWICE if name == 'corrector' else 'train')}",
        f"data.valid={directory / 'valid'}",
        *(f"data.test.{split}={directory / split}" for split in TESTS),
        "train.device=cpu",
    ]
    return train_one(directory / name, [f"typos/{name}"], [*own, *overrides])


def answer(finder: RunDir, corrector: RunDir, examples: Sequence[Example]) -> list[Answer]:
    """Both models' answers."""
    texts, words = [example.text for example in examples], [example.word for example in examples]
    find, correct = (load(run.path, "cpu") for run in (finder, corrector))
    positions = find.translate(texts, keep_attention=False)
    corrections = correct.translate(texts, keep_attention=False)
    forced = correct.score(texts, words)
    return [
        Answer(example, position.text, correction.text, _looked_at(of_word, example))
        for example, position, correction, of_word in zip(examples, positions, corrections, forced, strict=True)
    ]


def _looked_at(forced: Translation, example: Example) -> int:
    assert forced.attention is not None
    position = int(forced.attention[example.mended - 1].argmax())
    return position + 1 if position < len(example.text) else 0


def count(answers: Sequence[Answer]) -> Record:
    """Numbers of right answers. `first`: the finder named the very letter that it was taught, the first of the typo;
    `possible`: the corrector wrote a word of the list that the misspelling may mean; `chance`: the mean share of the
    letters that the typo touches, which a random position has right."""
    return {
        "n": len(answers),
        "found": sum(one.position.isdecimal() and int(one.position) in one.example.letters for one in answers),
        "first": sum(one.position == str(one.example.letters[0]) for one in answers),
        "corrected": sum(one.word == one.example.word for one in answers),
        "possible": sum(one.word in one.example.words for one in answers),
        "attended": sum(one.looked_at in one.example.letters for one in answers),
        "chance": round(sum(len(one.example.letters) / len(one.example.text) for one in answers) / len(answers), 4),
    }


def groups(answers: Sequence[Answer]) -> dict[str, dict[str, Record]]:
    """Counts of all answers, and by length of the word, kind of typo, and kind of the letter that corrects it; those by
    kind and letter are of long words."""

    def of(kept: Sequence[Answer]) -> Record | None:
        return count(kept) if kept else None

    long = [one for one in answers if len(one.example.word) >= LONG]
    by: dict[str, dict[str, Record | None]] = {
        "words": {"all": count(answers), LONG_WORDS: of(long)},
        "length": {label: of([one for one in answers if _length(one) == label]) for label in LENGTHS},
        "kind": {kind: of([one for one in long if one.example.kind == kind]) for kind in KINDS},
        "letter": {letter: of([one for one in long if _letter(one) == letter]) for letter in ("vowel", "consonant")},
    }
    return {name: {label: found for label, found in rows.items() if found} for name, rows in by.items()}


def _length(one: Answer) -> str:
    length = len(one.example.word)
    return next(label for label, longest in LENGTHS.items() if length <= longest)


def _letter(one: Answer) -> str:
    return "vowel" if one.example.word[one.example.mended - 1] in VOWELS else "consonant"


def letters_of(run: RunDir) -> Record:
    """Each letter's position on the first two principal components of the source embedding, and its nearest letter."""
    tokens = run.source_vocab().tokens
    chosen = [i for i, token in enumerate(tokens) if len(token) == 1]
    vectors = run.load_best()["encoder.embedding.weight"].float().numpy()[chosen]
    seen, (nearest, _) = project(vectors), all_nearest(vectors, 1)
    names = [tokens[i] for i in chosen]
    points = {name: [round(float(x), 4) for x in point] for name, point in zip(names, seen.points_NC, strict=True)}
    pairs = {name: names[int(index)] for name, index in zip(names, nearest[:, 0], strict=True)}
    return {"points": points, "nearest": pairs, "shares": [round(float(share), 4) for share in seen.shares_C]}


def maps_of(corrector: RunDir, examples: Sequence[Example]) -> list[AttentionMap]:
    """The corrector's attention for an example of each kind, with as many letters as `MAP_LETTERS` if there is one."""
    by_length = sorted(examples, key=lambda example: abs(len(example.word) - MAP_LETTERS))
    chosen = [best for kind in KINDS if (best := next((e for e in by_length if e.kind == kind), None))]
    found = load(corrector.path, "cpu").score([e.text for e in chosen], [e.word for e in chosen])
    return [attention for one in found if (attention := one.attention_map()) is not None]


def about(run: RunDir) -> Record:
    """The training of a run."""
    config = run.config()
    return {
        "config": config.name,
        "seed": config.seed,
        "max_epochs": config.train.max_epochs,
        "metric": config.train.validation.metric,
        "training": read_training(run.path),
    }


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/typos", description=__doc__)
    parser.add_argument("--dir", type=Path, default=Path("runs/typos"), help="text and runs; default: %(default)s")
    parser.add_argument(
        "--words",
        type=Path,
        metavar="FILE",
        help="a word per line; default: Multi30k's words and the captions' lexicon",
    )
    add_record_option(parser, RECORD)
    parser.add_argument("--plots", type=Path, default=PLOTS, help="folder of the pictures; default: %(default)s")
    parser.add_argument(
        "--per-kind",
        type=int,
        default=PER_KIND,
        metavar="N",
        help="training typos per word and kind; default: %(default)s",
    )
    parser.add_argument("--corpus", action="store_true", help="make the corpus and stop")
    add_set_option(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the corpus, train, count, print the page; with --record keep what it is made from, and its plots."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options = read_options(arguments)
    words = read_words(options.words) if options.words else default_words(options.dir / "data")
    sizes = write_corpus(options.dir, words, per_kind=options.per_kind)
    print(f"{len(words)} words; pairs: {', '.join(f'{split} {size}' for split, size in sizes.items())}")
    if options.corpus:
        return
    if not all(sizes[test] for test in TESTS):
        raise UsageError(f"{options.words}: too few words to keep some for testing; give more")
    finder, corrector = (train_model(options.dir.resolve(), name, options.set) for name in MODELS)
    examples = {test: read_split(options.dir, test) for test in TESTS}
    record: Record = {
        "corpus": {
            "source": str(options.words or "frequent words of Multi30k and the captions' lexicon"),
            "words": len(words),
            "per_kind": options.per_kind,
            "pairs": sizes,
        },
        "set": options.set,
        "models": {name: about(run) for name, run in zip(MODELS, (finder, corrector), strict=True)},
        "tests": {test: groups(answer(finder, corrector, of_test)) for test, of_test in examples.items()},
        "letters": letters_of(corrector),
        "environment": describe("scripts/typos"),
    }
    print("\n".join(page_lines(record)))
    if options.record:
        write_json(options.record, record)
        draw_plots(options.plots, record, maps_of(corrector, examples["known"]))


if __name__ == "__main__":
    sys.exit(exit_code(main))
