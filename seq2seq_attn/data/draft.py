"""Read and check the text of a corpus, and write a file of lines for each split and side.

Each split is cut off at its limit (`data.limit`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from seq2seq_attn.config import DataConfig
from seq2seq_attn.config.layout import SourceLayout
from seq2seq_attn.data.links import LinkFile, check_links
from seq2seq_attn.data.set_aside import assign, choose_sources
from seq2seq_attn.data.shifts import MAX_PAIRS, WINDOW, check_sides
from seq2seq_attn.data.store import LINKS, iter_exact, open_lines, side_paths, split_path
from seq2seq_attn.errors import UserError
from seq2seq_attn.text.corpus import Text
from seq2seq_attn.text.noise import NOISE, find_noise
from seq2seq_attn.text.normalize import bare
from seq2seq_attn.text.tables import Damage
from seq2seq_attn.text.tokenizers.base import SIDES
from seq2seq_attn.text.tokenizers.vectors import real_name

Pair = tuple[str, str]
Assigned = Iterable[tuple[Pair, str | None]]
"""pairs, each with the name of its split; None marks a dropped pair"""
EXTRA = ".extra"
"""the name that stands for a split in the paths of extra training pairs"""


@dataclass
class Draft:
    """The text of a corpus after it is checked and before it is tokenized: a folder with a file of
    lines for each split and side. The folder is removed when the corpus is prepared."""

    directory: Path
    num_pairs: dict[str, int] = field(default_factory=dict)
    """number of pairs by split: `train`, `valid`, then the test sets"""
    num_extra: int = 0
    """number of extra training pairs"""
    notes: list[str] = field(default_factory=list)
    """messages for the user about dropped rows and pairs"""

    def files(self, split: str) -> list[Path]:
        """Return the paths of the source lines and the target lines of a split."""
        return side_paths(self.directory, split)

    def note_table(self, text: Text, damage: Damage) -> None:
        """Add notes about a table: its damaged rows, which were left out, and its first pair, which
        may be a header in other words than names of languages."""
        if damage.lines:
            self.notes.append(f"{text}: {damage.describe()}")
        note = text.describe_first_pair()
        if note:
            self.notes.append(note)


def write_texts(
    draft: Draft, data: DataConfig, texts: Mapping[str, Text], links: Mapping[str, LinkFile]
) -> None:
    """Write the pairs of each split, and their lines of word alignments.

    If the corpus has no validation text, training pairs are set aside as `valid`.

    Args:
        draft: receives the files, the numbers of pairs and notes.
        data: the `data` section of the configuration.
        texts: the text of each split.
        links: the file of word alignments of each split that has one.

    Raises:
        UserError: text or links cannot be read, or there is too little text.
    """
    draft.num_pairs = dict.fromkeys(["train", "valid", *texts], 0)
    for split, text in texts.items():
        damage = Damage()
        pairs = text.pairs(damage)
        split_links = links.get(split)
        if split == "train":
            sets_aside = "valid" not in texts
            _write_training_text(draft, data, text, pairs, split_links, sets_aside)
        else:
            assigned = ((pair, split) for pair in pairs)
            _write_pairs(draft, data, text, assigned, split_links, [split])
        draft.note_table(text, damage)


def _write_training_text(
    draft: Draft,
    data: DataConfig,
    text: Text,
    pairs: Iterable[Pair],
    links: LinkFile | None,
    sets_aside: bool,
) -> None:
    """Write the training pairs, except the noise that `data.filter` names. If `sets_aside`, write
    some of the pairs to `valid` instead of `train`."""
    dropped = set()
    # Only a text of the user may have noise, and names of files of vectors are no sentences.
    if data.corpus == "files" and text.layout.vector_column is None:
        for kind, numbers in find_noise(text.pairs, data.filter).items():
            dropped |= numbers
            draft.notes.append(f"train: {len(numbers):,} {kind} dropped ({NOISE[kind]})")
    side = _sentence_side(text)
    chosen = set()
    splits = ["train"]
    if sets_aside:
        kept = (pair for number, pair in enumerate(text.pairs()) if number not in dropped)
        chosen = choose_sources(kept, side)
        splits.append("valid")
        if not chosen:
            raise UserError(
                f"{text}: fewer than two distinct source sentences; add text, or name some with "
                "--valid"
            )
    assigned = assign(pairs, chosen, dropped, side)
    counts = _write_pairs(draft, data, text, assigned, links, splits)
    if sets_aside:
        note = (
            f"validation: {counts['valid']:,} of {counts.total():,} training pairs set aside "
            "(chosen by a hash of their sources), because no --valid was given; "
            f"{counts[None]:,} more (with these sources, or noise) removed from the training pairs"
        )
        if data.vocab_from is not None:
            note += f"; {data.vocab_from} may have been trained on them: then use --valid"
        draft.notes.append(note)


def _sentence_side(text: Text) -> int:
    """Return the index in a pair of the first sentence that is not always blank: 0 for the source,
    or 1 for the target if the text has no source."""
    return 0 if text.layout.columns else 1


def _write_pairs(
    draft: Draft,
    data: DataConfig,
    text: Text,
    assigned: Assigned,
    links: LinkFile | None,
    splits: Sequence[str],
) -> Counter[str | None]:
    """Write each pair and its lines of word alignments to the files of its split.

    Pairs beyond the limit of a split (`data.limit`) are read and counted but not written.

    Returns:
        The number of pairs by split, before the limits. The key None counts the dropped pairs.
    """
    counts = Counter[str | None]()
    first_side = _sentence_side(text)
    kinds = SIDES if links is None else (*SIDES, LINKS)
    has_pair = False
    sample = []
    stride = 1
    with ExitStack() as stack:
        streams = {}
        for name in splits:
            paths = [split_path(draft.directory, name, kind) for kind in kinds]
            streams[name] = [stack.enter_context(open_lines(path)) for path in paths]
        for number, (lines, split) in enumerate(_with_links(assigned, links, text)):
            # Sample windows of pairs at equal distances, which grow with the text.
            if number // WINDOW % stride == 0:
                sample.append((number, lines[0], lines[1]))
                if len(sample) > MAX_PAIRS:
                    stride *= 2
                    sample = [row for row in sample if row[0] // WINDOW % stride == 0]
            counts[split] += 1
            # If the text has no sources, only the target must not be blank.
            has_pair = has_pair or all(sentence.strip() for sentence in lines[first_side:2])
            if split is None:
                continue
            limit = data.limit.for_split(split)
            if limit is None or draft.num_pairs[split] < limit:
                draft.num_pairs[split] += 1
                for stream, line in zip(streams[split], lines, strict=True):
                    stream.write(f"{line}\n")
    if not has_pair:
        raise UserError(f"{text}: no sentence pair: empty, or a side of every line is blank")
    if text.layout.is_one_text:
        draft.notes += check_sides(str(text), sample)
    return counts


def _with_links(
    assigned: Assigned, links: LinkFile | None, text: Text
) -> Iterator[tuple[tuple[str, ...], str | None]]:
    """Yield the lines of each pair with its split: source, target and, if there are `links`, the
    line of word alignments, after a check of this line.

    Raises:
        UserError: the file of word alignments has more or fewer lines than the text has pairs, or a
            line is invalid.
    """
    if links is None:
        yield from assigned
        return
    rows: Iterator[Any] = zip_longest(assigned, links.lines())
    for number, (item, line) in enumerate(rows, 1):
        if item is None or line is None:
            raise UserError(
                f"{links.path}: expected a line for each pair of {text}; they differ at line "
                f"{number:,}"
            )
        pair, split = item
        num_words = [len(links.words(sentence)) for sentence in pair]
        check_links(links.path, number, line, *num_words)
        yield (*pair, line), split


def held_out_keys(draft: Draft, layout: SourceLayout) -> set[str]:
    """Return the keys (`sentence_keys`) of all sentences of the validation and test sets, sources
    and targets."""
    keys = set()
    for split in draft.num_pairs:
        if split != "train":
            sources, targets = map(iter_exact, draft.files(split))
            keys |= sentence_keys(sources, layout) | sentence_keys(targets)
    return keys


def write_extra(
    draft: Draft, name: str, pairs: Iterable[Pair], layout: SourceLayout, held_out: set[str]
) -> None:
    """Add the pairs of a text to the extra training pairs. Pairs with a sentence of a validation or
    test set are left out.

    Args:
        draft: receives the pairs, their number and a note.
        name: the name of the text in the note.
        pairs: source and target of each pair.
        layout: the columns of the source lines.
        held_out: the keys of the sentences of validation and test sets (`held_out_keys`).
    """
    num_kept = 0
    num_dropped = 0
    source_path, target_path = draft.files(EXTRA)
    with open_lines(source_path, "a") as sources, open_lines(target_path, "a") as targets:
        for source, target in pairs:
            keys = sentence_keys([source], layout) | sentence_keys([target])
            if not held_out.isdisjoint(keys):
                num_dropped += 1
                continue
            num_kept += 1
            # A language model has blank sources, even if the extra text comes with sources.
            sources.write(f"{source}\n" if layout.columns else "\n")
            targets.write(f"{target}\n")
    draft.num_extra += num_kept
    draft.notes.append(
        f"extra: {name}: {num_kept:,} pairs; {num_dropped:,} dropped, because they contain a "
        "sentence of a validation or test set"
    )


def sentence_keys(lines: Iterable[str], layout: SourceLayout | None = None) -> set[str]:
    """Return the keys by which sentences of different texts are compared, without blank sentences.

    The key of a sentence is the result of `bare`. The key of a file of vectors is its real path.

    Args:
        lines: source lines or target lines.
        layout: the columns of the source lines, each of which holds a sentence. None stands for
            target lines, which hold one sentence each.
    """
    keys = set()
    for line in lines:
        sentences = [line] if layout is None else layout.split(line)
        for column, sentence in enumerate(sentences):
            is_file = layout is not None and column == layout.vector_column
            keys.add(real_name(sentence) if is_file else bare(sentence))
    return keys - {""}
