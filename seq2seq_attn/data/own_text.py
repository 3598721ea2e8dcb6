"""The user's own parallel text, rewritten as two files per split. Validation pairs are set aside if none are named,
chosen by a hash of the source, so that the choice does not depend on the order of the lines. All pairs with a chosen
source leave the training split."""

import heapq
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from itertools import repeat
from pathlib import Path
from typing import IO

from seq2seq_attn.config import DataConfig
from seq2seq_attn.data.links import check_num_links, parse_links
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import atomic_path
from seq2seq_attn.text.corpus import iter_lines
from seq2seq_attn.text.links import words_of
from seq2seq_attn.text.noise import Noise
from seq2seq_attn.text.normalize import normalize
from seq2seq_attn.text.parallel import KINDS, Spec, Text, find_text
from seq2seq_attn.text.tokenizers.base import NONE, SIDES, VECTORS

ONE_IN = 10
MAX_PAIRS = 1_000
"""Pairs to set aside at most: as many as common validation sets have. More would cost training time."""
_SIZE = 16
_VARIANT = re.compile(r"(?<=\S)\(\d+\)$")
"""the mark of another pronunciation of a word in dictionaries, as in `read(2)`"""
SET_ASIDE = {"one_in": ONE_IN, "max_pairs": MAX_PAIRS}
"""the settings that, with the text, determine which pairs are set aside; part of the folder's hash"""
TRAIN_LINKS = "train.links"
"""links of the training pairs that are left"""


def name_splits(data: DataConfig) -> dict[str, Spec]:
    """The text named for each split, `train` first; without `valid` if that is to be set aside. Files need not exist.

    Raises:
        UsageError: there is no training text, or a test set's name is not valid.
    """
    if data.train is None:
        raise UsageError(f"data.train is not set: with data.corpus=files, name your text by --train TEXT: {KINDS}")
    for split in data.test:
        if split in ("train", "valid") or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", split):
            raise UsageError(f"data.test.{split}: not valid as a name; use letters, digits, '_', '-' and '.'")
    return {"train": data.train, **({} if data.valid is None else {"valid": data.valid}), **data.test}


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
    """Raises UsageError if a table without a header is read in the order of its columns, but another is not: its own
    columns are most likely in that order too."""
    tables = [text for text in texts if text.columns and all(map(str.isdigit, text.columns))]
    moved = [text for text in tables if [*text.columns] != sorted(text.columns, key=int)]
    bare = [text for text in tables if text not in moved and not text.has_header]
    if moved and bare:
        raise UsageError(f"{bare[0]}: no header, but the columns of {moved[0]} are in another order; head both")


def write_splits(
    directory: Path, texts: Mapping[str, Text], *, drop: Collection[str] = (), links: Path | None = None
) -> tuple[dict[str, tuple[Path, Path]], list[str]]:
    """Write each split as `<split>.source` and `<split>.target`, without the noise that the training text is to drop.
    Without a validation text, set pairs aside as `valid`. If there are `links` of the training pairs, write those of
    the pairs that stay as `TRAIN_LINKS`. Returns the files, and notes on the text.

    Raises:
        UserError: text or links cannot be read, or there is too little text.
    """
    notes: list[str] = []
    for split, text in texts.items():
        is_train, has_no_source = split == "train", NONE in text.languages
        noise = Noise(text.pairs(), drop if is_train else ())
        chosen: set[bytes] = set()
        if is_train and "valid" not in texts:
            to_keep = Noise(text.pairs(), drop)
            kept = (pair for pair in text.pairs() if not drop or to_keep.keeps(*pair))
            chosen = choose_sources((target, target) if has_no_source else (source, target) for source, target in kept)
            if not chosen:
                raise UserError(
                    f"{text}: fewer than two distinct source sentences; add text, or name some with --valid"
                )
        counts = _write(directory, split, text, chosen, noise, links if is_train else None)
        notes += noise.notes(split)
        if chosen:
            notes.append(
                f"validation: {counts['valid']:,} of {counts.total():,} training pairs set aside (chosen by a hash of "
                f"their sources), because no --valid was given; {counts[None]:,} more (with these sources, or noise) "
                "removed from the training pairs"
            )
    names = dict.fromkeys(["train", "valid", *texts])
    return {split: (directory / f"{split}.{SIDES[0]}", directory / f"{split}.{SIDES[1]}") for split in names}, notes


def _write(
    directory: Path, split: str, text: Text, chosen: set[bytes], noise: Noise, links: Path | None
) -> Counter[str | None]:
    """Write a split, and the pairs set aside from it. Returns the number of pairs by split; None: dropped."""
    counts: Counter[str | None] = Counter()
    num_filled = 0
    if links is not None:
        check_num_links(links, sum(1 for _ in text.pairs()))
    has_no_source = NONE in text.languages
    assigned: Iterator[tuple[str, str, str | None]] = ((*pair, split) for pair in text.pairs())
    if chosen and has_no_source:  # sentences are set aside by themselves
        assigned = (("", target, part) for _, target, part in assign(((t, t) for _, t in text.pairs()), chosen))
    elif chosen:
        assigned = assign(text.pairs(), chosen)
    with ExitStack() as stack:
        kinds = SIDES if links is None else (*SIDES, "links")
        streams = {
            name: [stack.enter_context(_writer(directory / f"{name}.{kind}")) for kind in kinds]
            for name in ([split, "valid"] if chosen else [split])
        }
        lines = repeat("") if links is None else iter_lines(links)
        for number, ((source, target, part), line) in enumerate(zip(assigned, lines, strict=False), 1):
            if links is not None:
                parse_links(links, number, line, len(words_of(source)), len(words_of(target)))
            part = part if VECTORS in text.languages or noise.keeps(source, target) else None
            counts[part] += 1
            num_filled += bool((has_no_source or source.strip()) and target.strip())
            for stream, value in zip(streams[part], (source, target, line), strict=False) if part else ():
                stream.write(f"{value}\n")
    if not num_filled:
        purpose = {"train": "train", "valid": "validate"}.get(split, "evaluate")
        raise UserError(f"{text}: no sentence pair to {purpose} on: empty, or a side of every line is blank")
    return counts


@contextmanager
def _writer(path: Path) -> Iterator[IO[str]]:
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as stream:
        yield stream


def choose_sources(pairs: Iterable[tuple[str, str]]) -> set[bytes]:
    """The digests of the sources to set aside: a tenth of the distinct sources, at most 1,000; none if there are fewer
    than two. Pairs with a blank side are never chosen."""
    largest_first: list[int] = []
    kept: set[int] = set()
    for source, target in pairs:
        digest = source_digest(source)
        number = int.from_bytes(digest) if digest is not None and normalize(target) else None
        if number is None or number in kept:
            continue
        if len(kept) < ONE_IN * MAX_PAIRS:
            heapq.heappush(largest_first, -number)
            kept.add(number)
        elif number < -largest_first[0]:
            kept.remove(-heapq.heappushpop(largest_first, -number))
            kept.add(number)
    num_chosen = max(len(kept) // ONE_IN, 1) if len(kept) > 1 else 0
    return {number.to_bytes(_SIZE) for number in sorted(kept)[:num_chosen]}


def assign(pairs: Iterable[tuple[str, str]], chosen: set[bytes]) -> Iterator[tuple[str, str, str | None]]:
    """Source, target and split of each pair: `valid` for the first pair of each chosen source, None for its other
    pairs, `train` for the rest."""
    taken: set[bytes] = set()
    for source, target in pairs:
        digest = source_digest(source)
        if digest is None or digest not in chosen:
            yield source, target, "train"
        elif digest in taken or not normalize(target):
            yield source, target, None
        else:
            taken.add(digest)
            yield source, target, "valid"


def source_digest(source: str) -> bytes | None:
    """The digest of a normalized sentence, the same for all variants of a dictionary's word; None if it is blank."""
    text = normalize(source)
    text = text if " " in text else _VARIANT.sub("", text)
    return blake2b(text.encode(), digest_size=_SIZE).digest() if text else None
