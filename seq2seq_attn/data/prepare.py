"""Prepare a corpus: read, tokenize, filter, count and numericalize raw text. The result is reused
if nothing changed."""

import importlib.metadata
import logging
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any

from tqdm import tqdm

from seq2seq_attn.config import Config, DataConfig
from seq2seq_attn.config.load import load_run_config
from seq2seq_attn.data.audit import describe_dropped
from seq2seq_attn.data.builder import SplitBuilder, read_chunks, tokenize_chunk
from seq2seq_attn.data.links import (
    GOLD,
    IBM1,
    LINKS,
    links_file,
    links_identity,
    write_estimated_links,
    write_pharaoh_links,
)
from seq2seq_attn.data.own_text import write_splits
from seq2seq_attn.data.processes import map_in_order
from seq2seq_attn.data.reuse import count_unknown, draw_pairs, find_vocab_dir, reuse_identity
from seq2seq_attn.data.sources import (
    EXTRA,
    RawCorpus,
    extra_identity,
    find_extra,
    find_raw_corpus,
    write_extra,
)
from seq2seq_attn.data.store import (
    FORMAT_VERSION,
    META_NAME,
    PreparedCorpus,
    split_path,
    vocab_path,
    write_vectors,
)
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import list_files, naming, sha256_of_values, temporary_name, write_json
from seq2seq_attn.runtime.threads import num_available_cpus
from seq2seq_attn.text.lines import iter_lines
from seq2seq_attn.text.tokenizers.base import SIDES, Side, Tokenizer
from seq2seq_attn.text.tokenizers.factory import build_tokenizers, load_source, load_tokenizer
from seq2seq_attn.text.tokenizers.source import NoSource, Source
from seq2seq_attn.text.vocab import Vocab, build_vocab

log = logging.getLogger(__name__)

SMALL_CORPUS = 100_000
"""Corpora below this number of pairs use one process, which finishes before worker processes would
have started."""
MAX_TRAINING_LINES = 100_000
"""Lines per side that a tokenizer is trained on, approximately."""
_STALE_AFTER_S = 24 * 3600.0
"""A temporary folder of this age was left by a killed process."""


def prepare_corpus(
    config: Config,
    *,
    own_run: Path | None = None,
    show_progress: bool = False,
) -> PreparedCorpus:
    """The prepared corpus of a configuration. It is reused from `data_dir/prepared/` if the same
    text was prepared the same way before.

    Args:
        config: its `data` section is read.
        own_run: a run that was trained on this corpus; it replaces `data.vocab_from`, which may be
            gone.
        show_progress: draw tqdm bars on stderr.

    Raises:
        UsageError: the configuration does not name a valid corpus.
        UserError: raw files cannot be found or read, or do not match each other.
    """
    raw = find_raw_corpus(config.data, show_progress=show_progress)
    vocab_dir = find_vocab_dir(config.data, own_run)
    identity = _identity(config.data, raw, vocab_dir)
    name = f"{config.data.corpus}-{sha256_of_values(identity)[:12]}"
    folder = config.data.data_dir / "prepared" / name
    prepared = _reusable(folder)
    if prepared is not None:
        log.info("%s: prepared before, reused", prepared.directory)
    else:
        started = time.monotonic()
        with _temporary_folder(folder) as temporary:
            _build(temporary, config.data, raw, vocab_dir, identity, show_progress)
            if _identity(config.data, find_raw_corpus(config.data), vocab_dir) != identity:
                raise UserError(
                    "the text changed while it was prepared; stop what writes to it, then try again"
                )
            prepared = _put(temporary, folder)
        log.info("%s: prepared in %.1f s", folder, time.monotonic() - started)
    for note in prepared.meta["notes"]:
        log.info("%s", note)
    return prepared


def _identity(data: DataConfig, raw: RawCorpus, vocab_dir: Path | None) -> dict[str, Any]:
    """Everything that decides the folder's content, and nothing else (not the location of files,
    not the model)."""
    used = (
        None
        if data.tokenizer.name == "sentencepiece"
        else {"name", "target", "lowercase", "sentences"}
    )
    package = data.tokenizer.name if data.tokenizer.name in ("spacy", "sentencepiece") else None
    return {
        "format": FORMAT_VERSION,
        "raw": raw.identity,
        "config": {
            "source_language": data.source_name,
            "target_language": data.target_language,
            "limit": data.limit.model_dump(),
            "max_length": data.max_length,
            "max_length_ratio": data.max_length_ratio,
            "tokenizer": data.tokenizer.model_dump(include=used),
            "vocab": data.vocab.model_dump(),
        },
        **links_identity(data),
        **extra_identity(data),
        **reuse_identity(data, vocab_dir),
        "versions": {package: importlib.metadata.version(package)} if package else {},
    }


def _reusable(directory: Path) -> PreparedCorpus | None:
    if not directory.exists():
        return None
    try:
        return PreparedCorpus(directory)
    except UserError as error:
        log.info("%s; preparing the data again", str(error).partition(";")[0])
        return None


def _build(
    directory: Path,
    data: DataConfig,
    raw: RawCorpus,
    vocab_dir: Path | None,
    identity: dict[str, Any],
    show_progress: bool,
) -> None:
    """Write all files of a prepared corpus."""
    with tempfile.TemporaryDirectory(prefix="builder.", dir=directory) as drafts:
        draft_dir = Path(drafts)
        texts, train_links = raw.locate(), links_file(data)
        links: dict[str, dict[str, Path]] = {
            split: {GOLD: path} for split, path in raw.gold.items()
        }
        if train_links is not None:
            links["train"] = {**links.get("train", {}), LINKS: train_links}
        num_pairs, notes = write_splits(draft_dir, data, texts, links)
        extra_texts = [
            (", ".join(map(str, extra.paths)), extra.pairs()) for extra in find_extra(data)
        ]
        if data.mix and data.vocab_from is not None:
            old = _old_corpus(data.vocab_from, identity["mix"]["text"])
            extra_texts.append(
                (f"data.mix={data.mix:g}", draw_pairs(old, round(data.mix * num_pairs["train"])))
            )
        num_extra, extra_notes = write_extra(draft_dir, extra_texts, data, [*num_pairs][1:])
        in_vocab = {
            "train": num_pairs["train"],
            **({EXTRA: num_extra} if data.extra_in_vocab else {}),
        }
        source, target_tokenizer = _tokenizers(draft_dir, data, in_vocab, vocab_dir)
        source.save(directory, "source")
        target_tokenizer.save(directory, "target")
        splits = {split: SplitBuilder(directory, split) for split in num_pairs}
        train = splits["train"]
        files = {
            split: [split_path(draft_dir, split, side) for side in SIDES]
            for split in (*num_pairs, EXTRA)
        }
        extra_files = {"train": files.pop(EXTRA)}
        _tokenize(splits, files, directory, data, sum(num_pairs.values()), show_progress)
        notes += extra_notes
        vocabs = _vocabs(data, train, vocab_dir)
        notes += count_unknown(train, vocabs) if vocab_dir else []
        if num_extra:
            _tokenize(splits, extra_files, directory, data, num_extra, show_progress)
            vocabs = _vocabs(data, train, vocab_dir) if data.extra_in_vocab else vocabs
        _check_not_empty(train, identity["config"])
        for builder in splits.values():
            builder.write_ids(vocabs)
        audit = {
            name: builder.audit(vocabs, None if builder is train else train)
            for name, builder in splits.items()
        }
        for split in num_pairs if source.vector_size is not None else ():
            write_vectors(directory, split, source)
        notes += _write_all_links(directory, draft_dir, data, links, splits)
    for name, vocab in zip(SIDES, vocabs, strict=True):
        vocab.save(vocab_path(directory, name))
    write_json(
        directory / META_NAME, {**identity, "notes": notes, "splits": list(splits), "audit": audit}
    )
    list_files(directory, directory.iterdir())


def _old_corpus(run_dir: Path, text_hash: str) -> PreparedCorpus:
    """The corpus of the run whose text is mixed in. Raises UserError if it cannot be prepared or
    has changed."""
    try:
        old = prepare_corpus(load_run_config(run_dir), own_run=run_dir)
    except UserError as error:
        raise type(error)(f"data.mix: {error}") from None
    if old.text_hashes()["train"] != text_hash:
        raise UserError(
            f"data.mix: the training text of {run_dir} has changed; put it back, or set data.mix=0"
        )
    return old


def _check_not_empty(train: SplitBuilder, limits: Mapping[str, Any]) -> None:
    """Warns if more than 5 % of the training pairs are dropped. Raises UserError if none is
    kept."""
    reasons = describe_dropped(train.dropped, limits)
    dropped = ", ".join(f"{count} because {reason}" for reason, count in reasons.items())
    keep = train.keep
    if not keep.any():
        raise UserError(
            f"train: no pair is left: {dropped}; look at the files, or raise data.max_length or "
            "data.max_length_ratio"
        )
    if keep.mean() < 0.95:
        message = (
            "dropped from %s training pairs: %s; see data.max_length and data.max_length_ratio"
        )
        log.warning(message, f"{len(keep):,}", dropped)


def _write_all_links(
    directory: Path,
    draft_dir: Path,
    data: DataConfig,
    links: Mapping[str, Mapping[str, Path]],
    splits: Mapping[str, SplitBuilder],
) -> list[str]:
    """Write the links that the corpus has or `data.links` asks for. Returns a note for the user, if
    any."""
    for split in [split for split, kinds in links.items() if GOLD in kinds]:
        if split != "train" or not (data.extra or data.mix):  # extra pairs have no gold links
            kept = compress(iter_lines(split_path(draft_dir, split, GOLD)), splits[split].keep)
            with split_path(directory, split, "links").open(
                "w", encoding="utf-8", newline="\n"
            ) as stream:
                stream.writelines(f"{line}\n" for line in kept)
    if data.links == IBM1:
        return [write_estimated_links(directory, draft_dir)]
    if data.links is None:
        return []
    path = split_path(draft_dir, "train", GOLD if data.links == GOLD else LINKS)
    return [write_pharaoh_links(directory, path, splits["train"].keep, data.links)]


def _tokenizers(
    draft_dir: Path, data: DataConfig, num_pairs: Mapping[str, int], vocab_dir: Path | None
) -> tuple[Source, Tokenizer]:
    """The tokenizers of both sides: those of `vocab_dir`, or new ones, trained on these splits."""
    if vocab_dir is not None:
        source = load_source(vocab_dir) if data.layout.columns else NoSource()
        return source, load_tokenizer(vocab_dir, "target")

    def sample(side: Side) -> Iterator[str]:
        """All lines of a side, or a random sample of about `MAX_TRAINING_LINES`, always the
        same."""
        total = sum(num_pairs.values())
        for split in num_pairs:
            generator = random.Random("tokenizer")
            with split_path(draft_dir, split, side).open(encoding="utf-8", newline="\n") as lines:
                for line in lines:
                    if (
                        total <= MAX_TRAINING_LINES
                        or generator.random() * total < MAX_TRAINING_LINES
                    ):
                        yield line[:-1]

    return build_tokenizers(sample("source"), sample("target"), data)


def _tokenize(
    splits: Mapping[str, SplitBuilder],
    files: Mapping[str, Sequence[Path]],
    tokenizer_dir: Path,
    data: DataConfig,
    num_pairs: int,
    show_progress: bool,
) -> None:
    limits = data.model_dump(include={"max_length", "max_length_ratio"})
    tokenize = partial(tokenize_chunk, tokenizer_dir=tokenizer_dir, **limits)
    num_processes = data.num_processes or (num_available_cpus() if num_pairs >= SMALL_CORPUS else 1)
    with tqdm(
        total=2 * num_pairs, desc="tokenizing", unit="line", disable=not show_progress
    ) as bar:
        for chunk, tokenized in map_in_order(
            tokenize, read_chunks(files), num_processes=num_processes
        ):
            splits[chunk.split].add(chunk, tokenized)
            bar.update(2 * len(chunk.sources))


def _vocabs(data: DataConfig, train: SplitBuilder, vocab_dir: Path | None) -> list[Vocab]:
    if vocab_dir is not None:
        vocabs = [Vocab.load(vocab_path(vocab_dir, side)) for side in SIDES]
        return (
            [build_vocab(Counter()), vocabs[1]]
            if not data.layout.columns and not data.vocab.joint
            else vocabs
        )
    counters = [side.kept for side in train.sides]
    if data.vocab.joint:
        counters = [counters[0] + counters[1]] * 2
    limits = data.vocab.model_dump(exclude={"joint"})
    return [build_vocab(counter, **limits) for counter in counters]


@contextmanager
def _temporary_folder(directory: Path) -> Iterator[Path]:
    """A folder beside `directory`, removed at the end."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    for left_over in directory.parent.glob(".*.tmp"):
        with suppress(FileNotFoundError):  # another process may have finished with it
            if time.time() - left_over.stat().st_mtime > _STALE_AFTER_S:
                shutil.rmtree(left_over, ignore_errors=True)
    temporary = temporary_name(directory)
    temporary.mkdir()
    try:
        with naming(directory):
            yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _put(temporary: Path, directory: Path) -> PreparedCorpus:
    """Rename a complete folder to its name, unless another process has done so."""
    with suppress(UserError):
        return PreparedCorpus(directory)
    with (
        tempfile.TemporaryDirectory(".tmp", ".", directory.parent) as rubbish,
        suppress(FileNotFoundError),
    ):
        directory.rename(Path(rubbish, "damaged"))  # at once, so that nobody sees it half removed
    try:
        temporary.rename(directory)
    except OSError:  # another process was faster
        if not directory.exists():
            raise
    return PreparedCorpus(directory)
