"""The user's own parallel text: read in place, or rewritten as two files per split.

It is rewritten if a split is a table, or if validation pairs are set aside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import IO

from seq2seq_attn.config import DataConfig, shorten
from seq2seq_attn.data.links import check_num_links, parse_links
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import atomic_path
from seq2seq_attn.text.corpus import iter_lines
from seq2seq_attn.text.links import words_of
from seq2seq_attn.text.parallel import KINDS, Spec, find_text
from seq2seq_attn.text.parallel_files import Table, Text, ends_in_cr
from seq2seq_attn.text.set_aside import MAX_PAIRS, ONE_IN, assign, choose_sources
from seq2seq_attn.text.tokenizers.base import SIDES

SET_ASIDE = {"one_in": ONE_IN, "max_pairs": MAX_PAIRS}
"""the settings that, with the text, determine which pairs are set aside; part of the folder's hash"""
TRAIN_LINKS = "train.links"
"""links of the pairs that stay training pairs"""


def name_splits(data: DataConfig) -> dict[str, Spec]:
    """The text named for each split, `train` first; without `valid` if that is to be set aside. Files need not exist.

    Raises:
        UsageError: there is no training text, a test set's name is not valid, or a list does not name a file per side.
    """
    if data.train is None:
        raise UsageError(
            f"data.train is not set: with data.corpus=files, name your text by --train TEXT or --set data.train=TEXT: "
            f"{KINDS}"
        )
    specs: dict[str, Spec] = {"train": data.train}
    if data.valid is not None:
        specs["valid"] = data.valid
    for split, spec in data.test.items():
        if split in ("train", "valid"):
            raise UsageError(f"data.test.{split}: this name is taken; call the test set something else")
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", split):
            raise UsageError(f"data.test: {split!r} is not a valid name; use letters, digits, '_', '-' and '.'")
        specs[split] = spec
    for split, named in specs.items():
        if not isinstance(named, str) and len(named) != len(data.sources) + 1:
            files = "two files, [source file, target file]"
            if len(data.sources) > 1:
                files = f"{len(data.sources) + 1} files, those of {', '.join(data.sources)} and the target file"
            key = f"data.{split}" if split in ("train", "valid") else f"data.test.{split}"
            raise UsageError(f"{key}={shorten(named)}: expected a prefix or {files}")
    return specs


def find_splits(data: DataConfig) -> dict[str, Text]:
    """Locate the text of each split.

    Raises:
        UsageError: as `name_splits`, a name is nearly right, or the columns of tables are in different orders.
        UserError: a file does not exist.
    """
    languages = (*data.sources, data.target_language)
    texts = {split: find_text(spec, *languages) for split, spec in name_splits(data).items()}
    check_headers([*texts.values()])
    return texts


def check_headers(texts: Sequence[Text]) -> None:
    """Warn of a first line that may be a header. Raises UsageError if a table has no header where that of another names
    the columns in an unusual order: its own columns are most likely in that order too."""
    tables = [text for text in texts if isinstance(text, Table) and text.kind == "tsv"]
    headers = [(table, table.header()) for table in tables]
    bare = [table for table, header in headers if header is None]
    for table in bare:
        table.warn_of_header()
    unusual = [(table, header) for table, header in headers if header not in (None, [*table.languages])]
    if bare and unusual:
        table, header = unusual[0]
        raise UsageError(
            f"{bare[0].path}: no header, but the columns of {table.path} are {', '.join(header or [])} by its header; "
            f"expected {', '.join(table.languages)}, or a header in both"
        )


def check_texts(texts: Mapping[str, Text]) -> None:
    """Raises UserError if no pair of a split has text on both sides, or if lines end in CR alone."""
    for split, text in texts.items():
        pairs = text.pairs()
        first = list(islice(pairs, 2))
        for path, side in zip(text.paths, first[0] if len(first) == 1 else (), strict=False):
            if "\r" in side:
                raise UserError(f"{path}: {ends_in_cr(path)}")
        if not any(source.strip() and target.strip() for source, target in chain(first, pairs)):
            names = " and ".join(map(str, text.paths))
            purpose = {"train": "train", "valid": "validate"}.get(split, "evaluate")
            raise UserError(
                f"{names}: no sentence pair to {purpose} on: empty, or a side of every line is blank; name files with "
                "text"
            )


def write_splits(
    directory: Path, texts: Mapping[str, Text], links: Path | None = None
) -> tuple[dict[str, tuple[Path, Path]], list[str]]:
    """Write each split as `<split>.source` and `<split>.target`. Without a validation text, set pairs aside as `valid`
    (and write `TRAIN_LINKS`, if there are `links` of the training pairs). Returns the files, and one note per change to
    the text.

    Raises:
        UserError: text or links cannot be read, or there is too little text.
    """
    notes: list[str] = []
    names = list(dict.fromkeys(["train", "valid", *texts]))
    if "valid" not in texts:
        chosen = _choose(texts["train"])
        notes.append(_write_parts(directory, texts["train"], chosen))
        if links is not None:
            _write_train_links(directory / TRAIN_LINKS, links, texts["train"], chosen)
    for split, text in texts.items():
        if split != "train" or "valid" in texts:
            _write(directory, ((*pair, split) for pair in text.pairs()), [split])
    return {split: (directory / f"{split}.{SIDES[0]}", directory / f"{split}.{SIDES[1]}") for split in names}, notes


def _choose(train: Text) -> set[bytes]:
    chosen = choose_sources(train.pairs())
    if not chosen:
        names = " and ".join(map(str, train.paths))
        raise UserError(
            f"{names}: fewer than two distinct source sentences, so no pair can be set aside for validation; add text, "
            "or name validation pairs with --valid"
        )
    return chosen


def _write_parts(directory: Path, train: Text, chosen: set[bytes]) -> str:
    counts = _write(directory, assign(train.pairs(), chosen), ["train", "valid"])
    note = (
        f"validation: {counts['valid']:,} of {sum(counts.values()):,} training pairs set aside (chosen by a hash of "
        "their sources), because no --valid was given"
    )
    if counts[None]:
        note += f"; {counts[None]:,} more with the same sources removed from the training pairs"
    return note


def _write_train_links(path: Path, links: Path, train: Text, chosen: set[bytes]) -> None:
    """Write the lines of a Pharaoh file, checked, for the pairs that stay in the training split."""
    check_num_links(links, sum(1 for _ in train.pairs()))
    assigned = zip(enumerate(iter_lines(links), 1), assign(train.pairs(), chosen), strict=True)
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as stream:
        for (number, line), (source, target, split) in assigned:
            parse_links(links, number, line, len(words_of(source)), len(words_of(target)))
            if split == "train":
                stream.write(f"{line}\n")


def _write(
    directory: Path, pairs: Iterable[tuple[str, str, str | None]], splits: Sequence[str]
) -> dict[str | None, int]:
    """Write the pairs, except those of split None. Returns the number of pairs by split."""
    counts: dict[str | None, int] = dict.fromkeys([*splits, None], 0)
    with ExitStack() as stack:

        def opened(path: Path) -> IO[str]:
            temporary = stack.enter_context(atomic_path(path))
            return stack.enter_context(temporary.open("w", encoding="utf-8", newline="\n"))

        streams = {split: [opened(directory / f"{split}.{side}") for side in SIDES] for split in splits}
        for source, target, split in pairs:
            counts[split] += 1
            if split is not None:
                for stream, line in zip(streams[split], (source, target), strict=True):
                    stream.write(f"{line}\n")
    return counts
