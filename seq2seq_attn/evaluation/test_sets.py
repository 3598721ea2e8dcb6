"""Test sets: those that the runs keep or files of sentence pairs, as they are or with K pairs
concatenated into one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from seq2seq_attn.config import DataConfig
from seq2seq_attn.data.sources import split_names
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.run import Run
from seq2seq_attn.text.captions import tokenize_caption
from seq2seq_attn.text.concatenation import concatenate_lines, concatenate_links, equal_groups
from seq2seq_attn.text.lines import aligned_lines, warn_about_tabs
from seq2seq_attn.text.tokenizers.base import PositionTokenizer

CONCATENATION_SEED = 1
"""which pairs come together: the same ones for every run and every evaluation"""


@dataclass(frozen=True)
class GoldLinks:
    """Gold word alignments of sentence pairs, and the words that they are numbered in."""

    links: list[str]
    """one line per pair in Pharaoh format, `0-0 1-2`"""
    source_words: list[list[str]]
    target_words: list[list[str]]


@dataclass(frozen=True)
class EvaluationSet:
    """Sentence pairs to score on."""

    name: str
    source: list[str]
    references: list[str]
    gold: GoldLinks | None = None
    """None: the corpus has no word alignments"""
    num_concatenated: int = 1
    """number of pairs of the corpus that are concatenated into each pair"""
    is_file: bool = False
    """read from files that the user named, not from the corpus"""
    other_references: tuple[list[str], ...] = ()
    """further references of the same sentences; they count in scores"""


@dataclass(frozen=True)
class Languages:
    """The languages of the two sides, and the corpus they come from."""

    source: str = "de"
    target: str = "en"
    corpus: str = "files"


GERMAN_TO_ENGLISH = Languages()


def find_sets(
    runs: Sequence[Run],
    splits: Sequence[str] = (),
    *,
    source: Path | None = None,
    references: Sequence[Path] = (),
    concatenate: Sequence[int] = (),
) -> list[EvaluationSet]:
    """The sets that all runs are evaluated on; with `concatenate`, for each K in it the sets of K
    concatenated pairs.

    Raises:
        UsageError: files and splits together, one file without the other, a split that the runs do
            not keep, runs of different test sets or numbers of sources, a number of pairs that a
            set does not have, pairs of several sources to be concatenated.
        UserError: a file that cannot be read.
    """
    if concatenate:
        _check_concatenable(runs, concatenate[0])
    if (source is None) != (not references):
        raise UsageError("--source and --reference go together: name both files, or neither")
    if source is None:
        sets = _kept_sets(runs, splits)
    elif splits:
        raise UsageError(
            "--split and --source: give splits of the corpus or a pair of files, not both"
        )
    else:
        sets = [_file_set(runs, source, references)]
    return [
        concatenated(test_set, k) for k in dict.fromkeys(concatenate or [1]) for test_set in sets
    ]


def _check_concatenable(runs: Sequence[Run], number: int) -> None:
    for run in runs:
        data = run.config.data
        reads_several = len(data.layout.columns) > 1 or data.layout.vector_column is not None
        if reads_several or data.tokenizer.target == PositionTokenizer.name:
            raise UsageError(
                f"--concatenate {number}: concatenates pairs of two texts, and {run.path} reads "
                "several sources or vectors, or writes positions; leave --concatenate out"
            )


def concatenated(test_set: EvaluationSet, k: int) -> EvaluationSet:
    """Random groups of K pairs of a set, each concatenated; pairs left over are dropped. K = 1: the
    set itself. Raises UsageError: K is not positive, or more than the set has pairs."""
    if k == 1:
        return test_set
    if not 1 < k <= len(test_set.source):
        raise UsageError(
            f"--concatenate {k}: {test_set.name} has {len(test_set.source)} sentence pairs; "
            "expected 1 to that many"
        )
    groups = equal_groups(len(test_set.source), k, seed=CONCATENATION_SEED)
    gold = test_set.gold
    if gold is not None:
        links = concatenate_links(
            gold.links,
            groups,
            source_lengths=[len(words) for words in gold.source_words],
            target_lengths=[len(words) for words in gold.target_words],
        )
        gold = GoldLinks(
            links,
            _concatenate_words(gold.source_words, groups),
            _concatenate_words(gold.target_words, groups),
        )
    return replace(
        test_set,
        name=concatenated_name(test_set.name, k),
        source=concatenate_lines(test_set.source, groups),
        references=concatenate_lines(test_set.references, groups),
        other_references=tuple(
            concatenate_lines(lines, groups) for lines in test_set.other_references
        ),
        gold=gold,
        num_concatenated=k,
    )


def _concatenate_words(
    words: Sequence[Sequence[str]], groups: Iterable[Sequence[int]]
) -> list[list[str]]:
    """The words of the pairs of each group. In the concatenated lines, full stops stand
    elsewhere."""
    return [list(chain.from_iterable(words[pair] for pair in group)) for group in groups]


def concatenated_name(name: str, num_concatenated: int) -> str:
    """The name of a set of concatenated pairs, `test.x3`."""
    return name if num_concatenated == 1 else f"{name}.x{num_concatenated}"


def caption_links(
    sources: Sequence[str], targets: Sequence[str], links: Sequence[str]
) -> GoldLinks:
    """The gold links of captions (Pharaoh lines) with the words that they are numbered in."""
    source_words = [tokenize_caption(line) for line in sources]
    target_words = [tokenize_caption(line) for line in targets]
    return GoldLinks(list(links), source_words, target_words)


def set_name(path: Path) -> str:
    """The name of a set that is a file."""
    return path.name.removesuffix(".gz")


def has_test_set(data: DataConfig) -> bool:
    """Whether the corpus has more than training and validation pairs."""
    return split_names(data) != ["train", "valid"]


def _file_set(runs: Sequence[Run], source: Path, references: Sequence[Path]) -> EvaluationSet:
    numbers = [len(run.config.data.layout.columns) for run in runs]
    for run, number in zip(runs, numbers, strict=True):
        if number != numbers[0]:
            raise UsageError(
                f"--source: {runs[0].path} and {run.path} read lines of {numbers[0]} and {number} "
                "sources; evaluate each on a file of its own"
            )
    rows = list(aligned_lines([source, *references]))
    if not rows:
        raise UserError(f"{source}: no lines to evaluate; the file is empty")
    lines, first, *others = (list(column) for column in zip(*rows, strict=True))
    if numbers[0] == 1:
        warn_about_tabs(f"{source}: ", sum("\t" in line for line in lines))
    return EvaluationSet(
        set_name(source), lines, first, is_file=True, other_references=tuple(others)
    )


def _kept_sets(runs: Sequence[Run], splits: Sequence[str]) -> list[EvaluationSet]:
    """The sets of these names that the runs keep, by default all test sets."""
    first = runs[0]
    for run in runs:
        _check_splits(run, splits)
        if not splits and run.splits != first.splits:
            raise _different(run, first)
    sets = []
    for split in dict.fromkeys(splits or first.splits[1:]):
        text = first.read_set(split)
        for run in runs[1:]:
            if run.read_set(split) != text:
                raise _different(run, first)
        gold = None
        if text.links is not None:
            gold = caption_links(text.source, text.references, text.links)
        sets.append(EvaluationSet(split, text.source, text.references, gold))
    return sets


def _check_splits(run: Run, splits: Sequence[str]) -> None:
    if not splits and not has_test_set(run.config.data):
        raise UsageError(
            "this corpus has no test set: give --split valid, or --source FILE --reference FILE"
        )
    for split in splits:
        if split == "train":
            raise UsageError(
                f"--split train: {run.path} does not keep its training text; give it as --source "
                "FILE --reference FILE"
            )
        if split not in run.splits:
            raise UsageError(f"--split {split!r}: this corpus has {', '.join(run.splits)}")


def _different(run: Run, first: Run) -> UsageError:
    return UsageError(
        f"{run.path} and {first.path} have different test sets; give both --source FILE "
        "--reference FILE"
    )
