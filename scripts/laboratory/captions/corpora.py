"""Corpora of captions as text: the embedded one, and those of the laboratory's experiments.

A corpus is a folder for `data.source_dir`, with `data.corpus=captions`: `SPLIT.de`, `SPLIT.en`, and
the gold links of German to English in `SPLIT.links`. Each function writes the same lines whenever
it is called.
"""

import bz2
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from scripts.laboratory.captions.generator import CaptionPair, draw_splits
from seq2seq_attn.files import atomic_path, write_lines
from seq2seq_attn.text.captions import tokenize_caption
from seq2seq_attn.text.concatenation import Group, concatenate_lines, concatenate_links

Splits = Mapping[str, Sequence[CaptionPair]]

SIZES = {"train": 30_000, "valid": 200, "test": 1_000}
NUM_EXPERIMENT_PAIRS = 16_000
"""training pairs of the experiments, of which the embedded corpus had no more when they were
recorded"""
LENGTHS = (4, 30)
"""source tokens of the shortest and the longest captions"""
SHORT_LENGTHS = (4, 10)
"""those of the bottleneck experiment"""
JOINED, JOINED_EPOCHS = (1, 2, 3, 4, 5, 6), 16
"""captions per training pair, equally often; how often all captions are grouped anew"""


def write_embedded(directory: Path) -> None:
    """The corpus that travels with the package, compressed."""
    for name, lines in _lines_by_name(draw_splits(SIZES, LENGTHS)).items():
        text = "".join(f"{line}\n" for line in lines)
        with atomic_path(directory / f"{name}.bz2") as path:
            path.write_bytes(bz2.compress(text.encode("utf-8")))


def write_single(directory: Path) -> None:
    """Short captions (bottleneck experiment)."""
    _write(directory, _short_captions())


def write_joined(directory: Path) -> None:
    """The same captions; a training pair joins one to six of them. The groups are those of 16
    epochs, one after the other."""
    splits = _short_captions()
    train = splits["train"]
    groups = []
    for epoch in range(JOINED_EPOCHS):
        groups += mixed_groups(len(train), JOINED, seed=f"1/{epoch}")
    _write(directory, {**splits, "train": join_pairs(train, groups)})


CORPORA: dict[str, Callable[[Path], None]] = {
    "captions": write_embedded,
    "bottleneck-single": write_single,
    "bottleneck-joined": write_joined,
}


def mixed_groups(num_pairs: int, sizes: Sequence[int], *, seed: str) -> list[Group]:
    """Random disjoint groups that cover every index once, equally many of each size. Indices left
    over become groups of one."""
    order = list(range(num_pairs))
    random.Random(f"stitch {seed}").shuffle(order)  # another word would change every draw
    num_each = num_pairs // sum(sizes)
    groups: list[Group] = []
    for size in sorted(sizes):
        for _ in range(num_each):
            groups.append(tuple(order[:size]))
            del order[:size]
    return groups + [(index,) for index in order]


def join_pairs(pairs: Sequence[CaptionPair], groups: Sequence[Group]) -> list[CaptionPair]:
    """A pair for each group, the captions at its indices joined."""
    sources = [pair.source for pair in pairs]
    targets = [pair.target for pair in pairs]
    links = concatenate_links(
        [pair.links for pair in pairs],
        groups,
        source_lengths=[len(tokenize_caption(source)) for source in sources],
        target_lengths=[len(tokenize_caption(target)) for target in targets],
    )
    joined = zip(
        concatenate_lines(sources, groups), concatenate_lines(targets, groups), links, strict=True
    )
    return [CaptionPair(*pair) for pair in joined]


def _short_captions() -> Splits:
    return draw_splits({**SIZES, "train": NUM_EXPERIMENT_PAIRS, "test": 1_500}, SHORT_LENGTHS)


def _write(directory: Path, splits: Splits) -> None:
    for name, lines in _lines_by_name(splits).items():
        write_lines(directory / name, lines)


def _lines_by_name(splits: Splits) -> dict[str, list[str]]:
    return {
        f"{split}.{kind}": [pair[column] for pair in pairs]
        for split, pairs in splits.items()
        for column, kind in enumerate(("de", "en", "links"))
    }
