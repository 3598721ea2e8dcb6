"""Test sets: splits of the runs' corpus or files of sentence pairs, as they are or with K pairs
concatenated into one."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from seq2seq_attn.config import Config, DataConfig, shorten
from seq2seq_attn.data.links import links_file
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.sources import split_names
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.run import Run
from seq2seq_attn.text.captions import tokenize_caption
from seq2seq_attn.text.concatenation import concatenate_lines, concatenate_links, equal_groups
from seq2seq_attn.text.lines import aligned_lines, warn_about_tabs
from seq2seq_attn.text.tokenizers.base import PositionTokenizer

log = logging.getLogger(__name__)

_WITHOUT_EXTRA = {"extra": [], "extra_in_vocab": False, "mix": 0.0}
"""settings for preparing the corpus alone, because the extra files may not be on this machine"""
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
    configs: Sequence[Config],
    splits: Sequence[str] = (),
    *,
    source: Path | None = None,
    references: Sequence[Path] = (),
    concatenate: Sequence[int] = (),
    show_progress: bool = False,
) -> list[EvaluationSet]:
    """The sets that all runs are evaluated on; with `concatenate`, for each K in it the sets of K
    concatenated pairs.

    Raises:
        UsageError: files and splits together, one file without the other, an unknown split, runs of
            different data or numbers of sources, a number of pairs that a set does not have, pairs
            of several sources to be concatenated.
        UserError: a file that cannot be read.
    """
    for run, data in (
        (run, config.data) for run, config in zip(runs, configs, strict=True) if concatenate
    ):
        if (
            len(data.layout.columns) > 1
            or data.layout.vector_column is not None
            or data.tokenizer.target == PositionTokenizer.name
        ):
            raise UsageError(
                f"--concatenate {concatenate[0]}: concatenates pairs of two texts, and {run.path} "
                "reads several sources or vectors, or writes positions; leave --concatenate out"
            )
    if (source is None) != (not references):
        raise UsageError("--source and --reference go together: name both files, or neither")
    if source is None:
        sets = _corpus_sets(runs, configs, splits, show_progress)
    elif splits:
        raise UsageError(
            "--split and --source: give splits of the corpus or a pair of files, not both"
        )
    else:
        sets = [_file_set(runs, configs, source, references)]
    return [
        concatenated(test_set, k) for k in dict.fromkeys(concatenate or [1]) for test_set in sets
    ]


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
        # The words of the parts, not those of the concatenated lines, in which full stops stand
        # elsewhere.
        source_words, target_words = (
            [[word for pair in group for word in words[pair]] for group in groups]
            for words in (gold.source_words, gold.target_words)
        )
        gold = GoldLinks(links, source_words, target_words)
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


def concatenated_name(name: str, num_concatenated: int) -> str:
    """The name of a set of concatenated pairs, `test.x3`."""
    return name if num_concatenated == 1 else f"{name}.x{num_concatenated}"


def caption_links(
    sources: Sequence[str], targets: Sequence[str], links: Sequence[str]
) -> GoldLinks:
    """The gold links of captions (Pharaoh lines) with the words that they are numbered in."""
    return GoldLinks(
        list(links), [*map(tokenize_caption, sources)], [*map(tokenize_caption, targets)]
    )


def set_name(path: Path) -> str:
    """The name of a set that is a file."""
    return path.name.removesuffix(".gz")


def has_test_set(data: DataConfig) -> bool:
    """Whether the corpus has more than training and validation pairs."""
    return split_names(data) != ["train", "valid"]


def _file_set(
    runs: Sequence[Run], configs: Sequence[Config], source: Path, references: Sequence[Path]
) -> EvaluationSet:
    num_sources = len(configs[0].data.layout.columns)
    for run, config in zip(runs, configs, strict=True):
        if len(config.data.layout.columns) != num_sources:
            raise UsageError(
                f"--source: {runs[0].path} and {run.path} read lines of {num_sources} and "
                f"{len(config.data.layout.columns)} sources; evaluate each on a file of its own"
            )
    columns = [*map(list, zip(*aligned_lines([source, *references]), strict=True))]
    if not columns:
        raise UserError(f"{source}: no lines to evaluate; the file is empty")
    lines, first, *rest = columns
    if num_sources == 1:
        warn_about_tabs(f"{source}: ", sum("\t" in line for line in lines))
    return EvaluationSet(set_name(source), lines, first, is_file=True, other_references=tuple(rest))


def _corpus_sets(
    runs: Sequence[Run], configs: Sequence[Config], splits: Sequence[str], show_progress: bool
) -> list[EvaluationSet]:
    """Splits of the corpus that all runs share. What the settings alone show to be wrong is an
    error before minutes are spent on preparing it."""
    for run, config in zip(runs, configs, strict=True):
        data, first = config.data, configs[0].data
        for split in splits:
            if split not in split_names(data):
                raise UsageError(
                    f"--split {split!r}: this corpus has {', '.join(split_names(data))}"
                )
        if not splits and not has_test_set(data):
            raise UsageError(
                "this corpus has no test set: give --split valid, or --source FILE --reference FILE"
            )
        has_other_sides = (data.sources, data.target_language) != (
            first.sources,
            first.target_language,
        )
        if has_other_sides or (
            data.corpus != first.corpus and "files" not in (data.corpus, first.corpus)
        ):
            raise _different(run, runs[0])
    corpora: dict[str, PreparedCorpus] = {}  # the same settings prepare the same text
    sets: list[EvaluationSet] = []
    for run, config in zip(runs, configs, strict=True):
        key = config.data.model_dump_json()
        if key not in corpora:
            prepared = corpora[key] = _prepare_for(run, config, show_progress)
            run_sets = []
            for split in dict.fromkeys(splits or prepared.test_splits):
                text, links = prepared.text(split), prepared.links(split)
                run_sets.append(
                    EvaluationSet(
                        split, *text, None if links is None else caption_links(*text, links)
                    )
                )
            if sets and run_sets != sets:
                raise _different(run, runs[0])
            sets = run_sets
        _check_text(run, config.data, corpora[key], splits)
    return sets


def _different(run: Run, first: Run) -> UsageError:
    return UsageError(
        f"{run.path} and {first.path} have different test sets; give both --source FILE "
        "--reference FILE"
    )


def _prepare_for(run: Run, config: Config, show_progress: bool) -> PreparedCorpus:
    # A run that was trained in another folder has its `data` there: beside `runs`, or further up.
    above = [folder / config.data.data_dir for folder in run.path.resolve().parents]
    try:
        return prepare_corpus(
            config.model_copy(update={"data": config.data.model_copy(update=_WITHOUT_EXTRA)}),
            own_run=run.path,
            also_in=above,
            before_build=lambda: _check_paths(run, config),
            show_progress=show_progress,
        )
    except UserError as error:  # the training text may not be on this machine
        raise type(error)(
            f"{error}; or evaluate on files: --source FILE --reference FILE"
        ) from None


def _check_text(
    run: Run, data: DataConfig, prepared: PreparedCorpus, splits: Sequence[str]
) -> None:
    """Warn if the run was trained on other training pairs. Check that it was validated on these
    validation pairs. Otherwise some of them may be its training pairs: the text may have changed
    since they were set aside, or the run is a reverse model, whose pairs were set aside by the
    source side of the first model. The content hash cannot tell, because it also depends on extra
    pairs, test sets and tokenizer versions. Raises UserError: the run was validated on other
    pairs."""
    try:
        trained_on, now = run.text_hashes, prepared.text_hashes()
    except UserError:  # translation raises the error that explains it
        return
    if "train" in splits and not (data.extra or data.mix) and trained_on["train"] != now["train"]:
        log.warning(
            "%s: trained on other pairs than --split train has now: the text has changed", run.path
        )
    if data.corpus != "files" or data.valid is not None or "valid" not in splits:
        return
    if trained_on["valid_sources"] != now["valid_sources"]:
        raise UserError(
            f"{run.path} was validated on other pairs than those that are set aside from "
            f"data.train={shorten(data.train)} now, which may be training pairs of the run: the "
            "text has changed, or the pairs were set aside for the model of the other direction; "
            "put the text back, or name the sets with --source and --reference"
        )


def _check_paths(run: Run, config: Config) -> None:
    """Raise UserError if a path in a run's configuration lies outside the current folder: the run
    may come from a stranger."""
    data = config.data
    named = {
        "data_dir": [data.data_dir],
        "source_dir": [data.source_dir] if data.source_dir else [],
    }
    if data.corpus == "files":
        texts = {
            "train": data.train,
            "valid": data.valid,
            **{f"test.{name}": spec for name, spec in data.test.items()},
        }
        for key, spec in texts.items():
            named[key] = [Path(part) for part in ([spec] if isinstance(spec, str) else spec or [])]
    if (links := links_file(data)) is not None:
        named["links"] = [links]
    for key, paths in named.items():
        for path in paths:
            leads_out = _is_inside(path, run.path) and not _is_inside(
                path.resolve(), run.path.resolve()
            )
            if leads_out or not _is_inside(path, Path.cwd()):
                alone = " --set 'data.extra=[]'" if data.extra else ""
                alone += (
                    f" --set data.vocab_from={run.path} --set data.mix=0" if data.vocab_from else ""
                )
                raise UserError(
                    f"data.{key}={path}: {run.path} names it, and it lies outside the current "
                    "folder; if you trust the run, run `seq2seq prepare -c "
                    f"{run.path}/config.yaml{alone}`"
                )


def _is_inside(path: Path, folder: Path) -> bool:
    # as it is written: `data` may be a link to a larger disk
    return Path(os.path.abspath(path)).is_relative_to(os.path.abspath(folder))
