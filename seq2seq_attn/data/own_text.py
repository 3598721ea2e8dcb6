"""The user's own parallel text, and any corpus as files of a line per pair. Validation pairs are
set aside if none are named, chosen by a hash of the source, so that the choice does not depend on
the order of the lines. All pairs with a chosen source leave the training split."""

import heapq
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from typing import Any

from seq2seq_attn.config import DataConfig
from seq2seq_attn.data.links import LINKS, WORDS, parse_links
from seq2seq_attn.data.store import split_path
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text import captions
from seq2seq_attn.text.corpus import KINDS, Spec, Text, find_text
from seq2seq_attn.text.lines import iter_lines
from seq2seq_attn.text.noise import NOISE, find_noise
from seq2seq_attn.text.normalize import normalize
from seq2seq_attn.text.tables import Damage
from seq2seq_attn.text.tokenizers.base import SIDES

ONE_IN = 10
MAX_PAIRS = 1_000
"""Pairs to set aside at most: as many as common validation sets have. More would cost training
time."""
_SIZE = 16
_VARIANT = re.compile(r"(?<=\S)\(\d+\)$")
"""the mark of another pronunciation of a word in dictionaries, as in `read(2)`"""
SET_ASIDE = {"one_in": ONE_IN, "max_pairs": MAX_PAIRS}
"""the settings that, with the text, determine which pairs are set aside; part of the folder's
hash"""


def name_splits(data: DataConfig) -> dict[str, Spec]:
    """The text named for each split, `train` first; without `valid` if that is to be set aside.
    Files need not exist. Raises UsageError: there is no training text, or a test set's name is not
    valid."""
    if data.train is None:
        raise UsageError(
            "data.train is not set: with data.corpus=files, name your text by --train TEXT: "
            f"{KINDS}"
        )
    for split in data.test:
        if split in ("train", "valid") or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", split):
            raise UsageError(
                f"data.test.{split}: not valid as a name; use letters, digits, '_', '-' and '.'"
            )
    return {
        "train": data.train,
        **({} if data.valid is None else {"valid": data.valid}),
        **data.test,
    }


def find_splits(data: DataConfig) -> dict[str, Text]:
    """Locate the text of each split.

    Raises:
        UsageError: as `name_splits`, or as `find_text`.
        UserError: a file does not exist.
    """
    return {split: find_data_text(spec, data) for split, spec in name_splits(data).items()}


def find_data_text(spec: Spec, data: DataConfig) -> Text:
    """`find_text` in the languages and columns of a configuration."""
    return find_text(spec, *data.sources, data.target_language, columns=data.columns)


def write_splits(
    directory: Path,
    data: DataConfig,
    texts: Mapping[str, Text],
    links: Mapping[str, Mapping[str, Path]],
) -> tuple[dict[str, int], list[str]]:
    """Write the first pairs of each split as `split_path` names its files, up to `data.limit`,
    without the noise that the training text is to drop. Without a validation text, set pairs aside
    as `valid`. Returns the number of pairs by split, and notes
    on the text.

    Args:
        directory: for the files.
        data: its filter, limits and languages are read.
        texts: by split.
        links: by split, the files of word alignments that are written beside its pairs, by kind:
            `GOLD`, `LINKS`.

    Raises:
        UserError: text or links cannot be read, or there is too little text.
    """
    notes: list[str] = []
    num_pairs = dict.fromkeys(["train", "valid", *texts], 0)
    for split, text in texts.items():
        is_checked = data.corpus == "files" and text.layout.vector_column is None
        drop = data.filter if split == "train" and is_checked else []
        noise_to_drop = _find_noise(text, drop)
        dropped = set().union(*noise_to_drop.values())
        chosen: set[bytes] = set()
        if split == "train" and "valid" not in texts:
            pairs = (pair for number, pair in enumerate(text.pairs()) if number not in dropped)
            chosen = choose_sources(pairs, sentence_side(text))
            if not chosen:
                raise UserError(
                    f"{text}: fewer than two distinct source sentences; add text, or name some "
                    "with --valid"
                )
        damage = Damage()
        counts = _write(directory, data, split, text, damage, chosen, dropped, links.get(split, {}))
        if damage.lines:
            notes.append(f"{split}: {text}: {damage.describe()}")
        parts = [split, "valid"] if chosen else [split]
        for part in parts:
            num_pairs[part] = min(counts[part], data.limit.for_split(part) or counts[part])
        for kind, numbers in noise_to_drop.items():
            notes.append(f"{split}: {len(numbers):,} {kind} dropped ({NOISE[kind]})")
        if chosen:
            notes.append(
                f"validation: {counts['valid']:,} of {counts.total():,} training pairs set aside "
                "(chosen by a hash of their sources), because no --valid was given; "
                f"{counts[None]:,} more (with these sources, or noise) removed from the training "
                "pairs"
            )
    return num_pairs, notes


def _find_noise(text: Text, kinds: Sequence[str]) -> dict[str, set[int]]:
    """By kind, the numbers (from 0) of the pairs that are noise."""
    if not kinds:
        return {}
    numbers: dict[str, set[int]] = {kind: set() for kind in kinds}
    for number, noise in enumerate(find_noise(text.pairs(), text.pairs(), kinds)):
        for kind in noise:
            numbers[kind].add(number)
    return numbers


def _write(
    directory: Path,
    data: DataConfig,
    split: str,
    text: Text,
    damage: Damage,
    chosen: set[bytes],
    dropped: Container[int],
    links: Mapping[str, Path],
) -> Counter[str | None]:
    """Write a split, and the pairs set aside from it, without those whose numbers (from 0) are in
    `dropped`. Returns the number of pairs by split; None: dropped."""
    counts: Counter[str | None] = Counter()
    is_empty, side = True, sentence_side(text)
    limits = {
        part: data.limit.for_split(part) for part in ([split, "valid"] if chosen else [split])
    }
    with ExitStack() as stack:
        streams = {
            part: [
                stack.enter_context(
                    split_path(directory, part, kind).open("w", encoding="utf-8", newline="\n")
                )
                for kind in (*SIDES, *links)
            ]
            for part in limits
        }
        lines_by_kind = [
            iter_lines(path) if kind == LINKS else captions.read_links(path, data.source_name)
            for kind, path in links.items()
        ]
        pairs = text.pairs(damage)
        parts = (
            assign(pairs, chosen, dropped, side)
            if chosen or dropped
            else ((pair, split) for pair in pairs)
        )
        missing = (None, None)  # if the pairs, or a file of links, end early
        rows: Iterator[Any] = zip_longest(parts, *lines_by_kind, fillvalue=missing)
        for number, ((pair, part), *lines) in enumerate(rows, 1):
            if pair is None or missing in lines:
                names = " and ".join(map(str, links.values()))
                raise UserError(
                    f"{names}: expected a line for each pair of {text}; they differ at line "
                    f"{number:,}"
                )
            for (kind, path), line in zip(links.items(), lines, strict=False):
                parse_links(path, number, line, *(len(WORDS[kind](sentence)) for sentence in pair))
            counts[part] += 1
            is_empty = is_empty and not all(map(str.strip, pair[side:]))
            if part is not None and counts[part] <= (limits[part] or counts[part]):
                for stream, value in zip(streams[part], (*pair, *lines), strict=False):
                    stream.write(f"{value}\n")
    if is_empty:
        purpose = {"train": "train", "valid": "validate"}.get(split, "evaluate")
        raise UserError(
            f"{text}: no sentence pair to {purpose} on: empty, or a side of every line is blank"
        )
    return counts


def sentence_side(text: Text) -> int:
    """The index in a pair of the sentence by which the pair is set aside: that of the source, if
    the text has one."""
    return 0 if text.layout.columns else 1


def choose_sources(pairs: Iterable[tuple[str, str]], side: int = 0) -> set[bytes]:
    """The digests of the sources (`side` 1: targets) to set aside: a tenth of the distinct ones, at
    most 1,000; none if there are fewer than two. Pairs with a blank side are never chosen."""
    largest_first: list[int] = []
    kept: set[int] = set()
    for pair in pairs:
        digest = source_digest(pair[side])
        if digest is None or (number := int.from_bytes(digest)) in kept:
            continue
        is_full = len(kept) == ONE_IN * MAX_PAIRS
        if (is_full and number >= -largest_first[0]) or not normalize(pair[1]):
            continue
        if is_full:
            kept.remove(-heapq.heappop(largest_first))
        heapq.heappush(largest_first, -number)
        kept.add(number)
    num_chosen = max(len(kept) // ONE_IN, 1) if len(kept) > 1 else 0
    return {number.to_bytes(_SIZE) for number in sorted(kept)[:num_chosen]}


def assign(
    pairs: Iterable[tuple[str, str]],
    chosen: Container[bytes],
    dropped: Container[int] = (),
    side: int = 0,
) -> Iterator[tuple[tuple[str, str], str | None]]:
    """Assign each training pair to a split. The first pair with a chosen source (`side` 1: target)
    goes to `valid`, and its other pairs to no split (None), like those numbered in `dropped` (from
    0). All the rest goes to `train`."""
    taken: set[bytes] = set()
    for number, pair in enumerate(pairs):
        digest = source_digest(pair[side]) if chosen else None
        if number in dropped:
            yield pair, None
        elif digest is None or digest not in chosen:
            yield pair, "train"
        elif digest in taken or not normalize(pair[1]):
            yield pair, None
        else:
            taken.add(digest)
            yield pair, "valid"


def source_digest(source: str) -> bytes | None:
    """The digest of a normalized sentence, the same for all variants of a dictionary's word; None
    if it is blank."""
    text = normalize(source)
    text = text if " " in text else _VARIANT.sub("", text)
    return blake2b(text.encode(), digest_size=_SIZE).digest() if text else None
