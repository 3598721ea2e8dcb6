"""Find the test sets of an evaluation.

A test set is saved in the runs, or read from files that the user names. Its sentence pairs are
taken as they are, or groups of K pairs are concatenated into one pair each.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.run import Run
from seq2seq_attn.text.captions import tokenize_caption
from seq2seq_attn.text.concatenation import concatenate_lines, concatenate_links, equal_groups
from seq2seq_attn.text.lines import aligned_lines, plain_name, warn_about_tabs
from seq2seq_attn.text.tables import check_no_document, form_by_suffix
from seq2seq_attn.text.tokenizers.base import PositionTokenizer

CONCATENATION_SEED = 1
"""The seed that groups pairs, constant so that every evaluation concatenates the same pairs."""


class GoldLinks(NamedTuple):
    """Gold word alignments of sentence pairs, and the words of the sentences. An alignment is a
    list of links between positions of words."""

    links: list[str]
    """one line per pair in Pharaoh format, `0-0 1-2`"""
    source_words: list[list[str]]
    target_words: list[list[str]]


@dataclass(frozen=True)
class EvaluationSet:
    """The sentence pairs of a test set."""

    name: str
    source: list[str]
    references: list[str]
    gold: GoldLinks | None = None
    """gold word alignments, or None if the corpus has no gold alignments"""
    num_concatenated: int = 1
    """number of sentence pairs that were concatenated into each pair of this set
    (`evaluate --concatenate K`); 1 without concatenation"""
    is_file: bool = False
    """whether the pairs come from files that the user named, not from the corpus"""
    other_references: tuple[list[str], ...] = ()
    """further references of each source line, each list with one reference per line"""


@dataclass(frozen=True)
class Languages:
    """The languages of the test sets, and their corpus."""

    source: str = "de"
    target: str = "en"
    corpus: str = "files"
    """the setting `data.corpus`; `files` if the user names the files of a set"""


GERMAN_TO_ENGLISH = Languages()


def find_sets(
    runs: Sequence[Run],
    splits: Sequence[str] = (),
    *,
    source: Path | None = None,
    references: Sequence[Path] = (),
    concatenate: Sequence[int] = (),
) -> list[EvaluationSet]:
    """Return the sets that all runs are evaluated on: sets that are saved in the runs, or a set
    that is read from files.

    Args:
        splits: Names of sets that are saved in the runs. The default is all test sets of the runs.
        source: A file of source lines, to be evaluated instead of splits.
        references: The files of references for `source`.
        concatenate: The values of K. The sets are returned once for each K, with groups of K pairs
            concatenated.

    Raises:
        UsageError: `source` is named without `references` or with `splits`, or a run does not have
            a split. The runs have different test sets, or read different numbers of sources. A set
            has fewer pairs than K, or a run has pairs that cannot be concatenated.
        UserError: A file cannot be read, or a run has no saved sets.
    """
    if concatenate:
        _check_concatenable(runs, concatenate[0])
    has_source = source is not None
    has_references = len(references) > 0
    if has_source != has_references:
        raise UsageError("--source and --reference go together: name both files, or neither")
    if source is None:
        sets = _saved_sets(runs, splits)
    elif splits:
        raise UsageError(
            "--split and --source: give splits of the corpus or a pair of files, not both"
        )
    else:
        sets = [_file_set(runs, source, references)]
    concatenated_sets = []
    for k in dict.fromkeys(concatenate or [1]):
        concatenated_sets += [concatenated(test_set, k) for test_set in sets]
    return concatenated_sets


def _check_concatenable(runs: Sequence[Run], number: int) -> None:
    """Check that each run reads a single text and writes text, so that pairs can be concatenated.
    `number` is a value of `--concatenate`, for the error message."""
    for run in runs:
        data = run.config.data
        reads_several = len(data.layout.columns) > 1 or data.layout.vector_column is not None
        if reads_several or data.tokenizer.target == PositionTokenizer.name:
            raise UsageError(
                f"--concatenate {number}: concatenates pairs of two texts, and {run.path} reads "
                "several sources or vectors, or writes positions; leave --concatenate out"
            )


def concatenated(test_set: EvaluationSet, k: int) -> EvaluationSet:
    """Return a set in which each pair is the concatenation of `k` random pairs of `test_set`.

    No pair is used twice. If the number of pairs is not divisible by `k`, the remaining pairs are
    left out. For `k` = 1, return `test_set`.

    Raises:
        UsageError: `k` is not positive, or the set has fewer than `k` pairs.
    """
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
    """Return the words of each group of pairs. The concatenated line is not tokenized again,
    because a tokenizer might split the line in another way, and the links would name wrong
    positions."""
    concatenated_words = []
    for group in groups:
        concatenated_words.append(list(chain.from_iterable(words[pair] for pair in group)))
    return concatenated_words


def concatenated_name(name: str, num_concatenated: int) -> str:
    """Return the name of a set of concatenated pairs, for example `test.x3`."""
    return name if num_concatenated == 1 else f"{name}.x{num_concatenated}"


def caption_links(
    sources: Sequence[str], targets: Sequence[str], links: Sequence[str]
) -> GoldLinks:
    """Return the gold links of captions with the words of the captions.

    Args:
        links: The links of each pair, in Pharaoh format.
    """
    source_words = [tokenize_caption(line) for line in sources]
    target_words = [tokenize_caption(line) for line in targets]
    return GoldLinks(list(links), source_words, target_words)


def set_name(path: Path) -> str:
    """Return the name of the set that is read from a file."""
    return path.name.removesuffix(".gz")


def check_lines(path: Path) -> None:
    """Raise UserError if a file is a document or a table and not lines of text."""
    form = form_by_suffix(path)
    if form is not None:
        raise UserError(
            f"{path}: {form.name}, not a sentence per line; write its text into a file of lines"
        )
    if path.is_file():  # a pipe can be read only once
        check_no_document(path)


def _file_set(runs: Sequence[Run], source: Path, references: Sequence[Path]) -> EvaluationSet:
    """Read a set from files.

    Raises:
        UsageError: The runs read lines with different numbers of sources.
        UserError: A file cannot be read, has no lines or is a document, or the numbers of lines
            differ.
    """
    source_counts = [len(run.config.data.layout.columns) for run in runs]
    for run, count in zip(runs, source_counts, strict=True):
        if count != source_counts[0]:
            raise UsageError(
                f"--source: {runs[0].path} and {run.path} read lines of {source_counts[0]} and "
                f"{count} sources; evaluate each on a file of its own"
            )
    reads_several = bool(runs) and source_counts[0] > 1
    if not (reads_several and plain_name(source).lower().endswith((".tsv", ".tab"))):
        check_lines(source)
    for path in references:
        check_lines(path)
    rows = list(aligned_lines([source, *references]))
    if not rows:
        raise UserError(f"{source}: no lines to evaluate; the file is empty")
    lines, first_references, *other_references = map(list, zip(*rows, strict=True))
    # Tabs separate the sources of a run that reads several sources.
    if not reads_several:
        warn_about_tabs(f"{source}: ", sum("\t" in line for line in lines))
    return EvaluationSet(
        set_name(source),
        lines,
        first_references,
        is_file=True,
        other_references=tuple(other_references),
    )


def _saved_sets(runs: Sequence[Run], splits: Sequence[str]) -> list[EvaluationSet]:
    """Return the saved sets named in `splits`, or all test sets of the runs if `splits` is empty.
    Raise UsageError if a run does not have a split, or if the runs have different sets."""
    first = runs[0]
    for run in runs:
        _check_splits(run, splits)
        if not splits and run.splits != first.splits:
            raise _different(run, first)
    test_splits = first.splits[1:]  # all splits except `valid`
    sets = []
    for split in dict.fromkeys(splits or test_splits):
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
    """Check that a run has saved all `splits`, or, if `splits` is empty, that the corpus has a test
    set."""
    if not splits and run.splits == ["valid"]:
        raise UsageError(
            "this corpus has no test set: give --split valid, or --source FILE --reference FILE "
            "(in Python: split='valid', or source and reference)"
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
    """Return the error for two runs that have different test sets."""
    return UsageError(
        f"{run.path} and {first.path} have different test sets; give both --source FILE "
        "--reference FILE"
    )
