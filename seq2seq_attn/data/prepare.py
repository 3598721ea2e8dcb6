"""Prepare a corpus: read and check its text, tokenize it, count tokens, and write ids.

The prepared corpus is a folder whose name contains a hash of everything that decides its content.
It is reused as long as the hash is the same.
"""

import importlib.metadata
import logging
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress, repeat
from pathlib import Path
from typing import Any

from tqdm import tqdm

from seq2seq_attn.config import Config, DataConfig
from seq2seq_attn.config.load import load_run_config
from seq2seq_attn.data.audit import describe_dropped
from seq2seq_attn.data.builder import SplitBuilder, read_chunks, tokenize_chunk
from seq2seq_attn.data.count_words import count_words
from seq2seq_attn.data.draft import EXTRA, Draft, held_out_keys, write_extra, write_texts
from seq2seq_attn.data.links import (
    IBM1,
    LinkFile,
    find_links,
    links_identity,
    write_estimated_links,
    write_pharaoh_links,
)
from seq2seq_attn.data.processes import map_in_order
from seq2seq_attn.data.sources import RawCorpus, extra_identity, find_extra, find_raw_corpus
from seq2seq_attn.data.store import (
    FORMAT_VERSION,
    LINKS,
    META_NAME,
    PreparedCorpus,
    iter_exact,
    side_paths,
    split_path,
    vocab_path,
    write_vectors,
)
from seq2seq_attn.data.vocabs import (
    check_unknown,
    find_vocab_dir,
    make_tokenizers,
    make_vocabs,
    vocab_identity,
)
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import (
    ListedFiles,
    list_files,
    read_regular,
    sha256_of_values,
    write_json,
    write_lines,
)
from seq2seq_attn.leftovers import remove_leftovers, swap_folder, temporary_folder
from seq2seq_attn.runtime.extras import require
from seq2seq_attn.runtime.threads import num_available_cpus
from seq2seq_attn.text.known_words import WORDS, KnownWords
from seq2seq_attn.text.tables import Damage
from seq2seq_attn.text.tokenizers.base import SIDES

log = logging.getLogger(__name__)

_DECISIVE_SETTINGS = {
    "target_language",
    "limit",
    "max_length",
    "max_length_ratio",
    "tokenizer",
    "vocab",
}
"""the settings in `data` that decide the content of the prepared corpus, besides the text and the
source languages"""
SMALL_CORPUS = 100_000
"""A corpus with fewer pairs is tokenized in one process, which ends before worker processes would
have started."""


def prepare_corpus(
    config: Config,
    *,
    own_run: Path | None = None,
) -> PreparedCorpus:
    """Return the prepared corpus of a configuration, a folder in `data_dir/prepared/`. The folder
    is reused if the same text was prepared with the same settings before.

    Args:
        config: the configuration, of which the `data` section is read.
        own_run: the directory of a run that was trained on this corpus. Its copies of tokenizers
            and vocabularies replace the run `data.vocab_from`, which may no longer exist.

    Raises:
        UsageError: the configuration does not name a valid corpus.
        UserError: raw files cannot be found or read, or do not match each other; or a package that
            the preparation needs is not installed.
    """
    require("train", "torchtext")
    if config.data.tokenizer.name == "spacy":
        require("words", "spacy")
    raw = find_raw_corpus(config.data)
    vocab_dir = find_vocab_dir(config.data, own_run)
    identity = _identity(config.data, raw, vocab_dir)
    name = f"{config.data.corpus}-{sha256_of_values(identity)[:12]}"
    folder = config.data.data_dir / "prepared" / name
    prepared = _open_if_whole(folder)
    if prepared is not None:
        log.info("%s: prepared before, reused", folder)
    else:
        started = time.monotonic()
        remove_leftovers(folder.parent, "*")  # of interrupted preparations
        with temporary_folder(folder) as temporary:
            _build(temporary, config.data, raw, vocab_dir, identity)
            # The files may have changed after they were hashed.
            if _identity(config.data, find_raw_corpus(config.data), vocab_dir) != identity:
                raise UserError(
                    "the text changed while it was prepared; stop what writes to it, then try again"
                )
            if _open_if_whole(folder) is None:  # another process may have been faster
                swap_folder(temporary, folder)
        prepared = PreparedCorpus(folder)
        log.info("%s: prepared in %.1f s", folder, time.monotonic() - started)
    return prepared


def _open_if_whole(folder: Path) -> PreparedCorpus | None:
    """Return the corpus of a folder, or None if the folder does not exist or is damaged."""
    if not folder.exists():
        return None
    try:
        return PreparedCorpus(folder)
    except UserError as error:
        # The advice after the semicolon is for a user, who need not act: the folder is replaced.
        problem, _, _ = str(error).partition(";")
        log.info("%s; preparing the data again", problem)
        return None


def _identity(data: DataConfig, raw: RawCorpus, vocab_dir: Path | None) -> dict[str, Any]:
    """Return the values that decide the content of the prepared corpus. A hash of these values
    names the folder. The location of files and the settings of the model do not count."""
    # Another version of the library that tokenizes may split text into other tokens.
    versions = {}
    if data.tokenizer.name in ("spacy", "sentencepiece"):
        versions[data.tokenizer.name] = importlib.metadata.version(data.tokenizer.name)
    settings = data.model_dump(include=_DECISIVE_SETTINGS)
    return {
        "format": FORMAT_VERSION,
        "raw": raw.identity,
        "config": {"source_language": data.source_name, **settings},
        "links": links_identity(data),
        **extra_identity(data),
        **vocab_identity(data, vocab_dir),
        "versions": versions,
    }


def _build(
    directory: Path,
    data: DataConfig,
    raw: RawCorpus,
    vocab_dir: Path | None,
    identity: dict[str, Any],
) -> None:
    """Write all files of a prepared corpus to an empty folder. The arguments after `directory` are
    the `data` section, its raw text, and the results of `find_vocab_dir` and `_identity`."""
    with tempfile.TemporaryDirectory(prefix="builder.", dir=directory) as draft_dir:
        # read and check
        draft = Draft(Path(draft_dir))
        links = find_links(data, raw.gold)
        write_texts(draft, data, raw.locate(), links)
        _write_extra_texts(draft, data, identity)

        # tokenize and count
        source, target_tokenizer = make_tokenizers(draft, data, vocab_dir)
        source.save(directory, "source")
        target_tokenizer.save(directory, "target")
        splits = {split: SplitBuilder(directory, split) for split in draft.num_pairs}
        train = splits["train"]
        files = [(split, draft.files(split)) for split in splits]
        _tokenize(splits, directory, data, files, sum(draft.num_pairs.values()))
        token_counts = train.token_counts()
        if draft.num_extra:
            _tokenize(splits, directory, data, [("train", draft.files(EXTRA))], draft.num_extra)
            if data.extra_in_vocab:
                token_counts = train.token_counts()  # now with the extra pairs
        _check_not_empty(train, identity["config"])

        notes = draft.notes + _write_links(directory, draft, data, links, splits)
        _write_words(directory, data, vocab_dir)

        # make vocabularies and write ids
        vocabs = make_vocabs(token_counts, data, vocab_dir)
        audit = {}
        for split, builder in splits.items():
            builder.write_ids(vocabs)
            audit[split] = builder.audit(vocabs, train)
        if source.vector_size is not None:
            for split in splits:
                write_vectors(directory, split, source)
        if vocab_dir is not None:
            notes += check_unknown(token_counts, vocabs)
    for side, vocab in zip(SIDES, vocabs, strict=True):
        vocab.save(vocab_path(directory, side))
    meta = {**identity, "notes": notes, "splits": list(splits), "audit": audit}
    write_json(directory / META_NAME, meta)
    list_files(directory, directory.iterdir())


def _write_words(directory: Path, data: DataConfig, vocab_dir: Path | None) -> None:
    """Write the known words: the words of the training text and of the run in `vocab_dir`.

    Nothing is written if the source is not a single text, if the ends of its sentences are marked,
    or if targets are source positions. `translate/unknown.py` serves none of these runs.
    """
    tokenizer = data.tokenizer
    if not data.layout.is_one_text or tokenizer.sentences or tokenizer.target == "positions":
        return
    files = side_paths(directory, "train", "txt")
    languages = (data.source_name, data.target_language)
    words = count_words(files, languages, lowercase=tokenizer.lowercase)
    if vocab_dir is not None and (vocab_dir / WORDS).exists():
        old = KnownWords.load(vocab_dir / WORDS, read_regular)
        words = words._replace(known=words.known | old.known)
    words.save(directory / WORDS)


def _write_extra_texts(draft: Draft, data: DataConfig, identity: Mapping[str, Any]) -> None:
    """Write the extra training pairs: all pairs of `data.extra`, and the pairs that `data.mix`
    draws from the training text of another run."""
    if not data.extra and not data.mix:
        return
    held_out = held_out_keys(draft, data.layout)
    for text in find_extra(data):
        damage = Damage()
        write_extra(draft, str(text), text.pairs(damage), data.layout, held_out)
        draft.note_table(text, damage)
    if data.mix and data.vocab_from is not None:
        old = _old_corpus(data.vocab_from, identity["mix"]["text"])
        drawn = draw_pairs(old, round(data.mix * draft.num_pairs["train"]))
        write_extra(draft, f"data.mix={data.mix:g}", drawn, data.layout, held_out)


def draw_pairs(corpus: PreparedCorpus, number: int) -> Iterator[tuple[str, str]]:
    """Yield `number` training pairs of a corpus in the order of its text.

    Each of the n training pairs occurs `number` // n times in succession. For the remainder,
    `number` % n of the pairs are drawn at random with a fixed seed, and occur once more.
    """
    num_pairs = len(corpus.pairs("train"))
    num_times, num_drawn = divmod(number, num_pairs)
    drawn = set(random.Random("mix").sample(range(num_pairs), num_drawn))
    lines = map(iter_exact, side_paths(corpus.directory, "train", "txt"))
    for index, pair in enumerate(zip(*lines, strict=True)):
        yield from repeat(pair, num_times)
        if index in drawn:
            yield pair


def _old_corpus(run_dir: Path, text_hash: str) -> PreparedCorpus:
    """Return the corpus of the run from which `data.mix` draws pairs.

    Args:
        run_dir: the directory of the run.
        text_hash: the hash of the training text that the run was trained on.

    Raises:
        UserError: the corpus cannot be prepared, or its training text has changed.
    """
    try:
        old = prepare_corpus(load_run_config(ListedFiles(run_dir)), own_run=run_dir)
    except UserError as error:
        raise type(error)(f"data.mix: {error}") from None
    if old.text_hashes()["train"] != text_hash:
        raise UserError(
            f"data.mix: the training text of {run_dir} has changed; put it back, or set data.mix=0"
        )
    return old


def _tokenize(
    splits: Mapping[str, SplitBuilder],
    directory: Path,
    data: DataConfig,
    files: Iterable[tuple[str, Sequence[Path]]],
    num_pairs: int,
) -> None:
    """Tokenize pairs, and add the tokens to the builders of their splits.

    Args:
        splits: the builder of each split.
        directory: the folder in which the tokenizers are saved.
        data: the `data` section of the configuration.
        files: the names of splits, each with a file of source lines and a file of target lines.
        num_pairs: the number of pairs in all files.
    """
    limits = data.model_dump(include={"max_length", "max_length_ratio"})
    tokenize = partial(tokenize_chunk, tokenizer_dir=directory, **limits)
    num_processes = data.num_processes
    if num_processes is None:
        num_processes = num_available_cpus() if num_pairs >= SMALL_CORPUS else 1
    chunks = map_in_order(tokenize, read_chunks(files), num_processes=num_processes)
    with tqdm(total=2 * num_pairs, desc="tokenizing", unit="line", disable=None) as bar:
        for chunk, tokenized in chunks:
            splits[chunk.split].add(chunk, tokenized)
            bar.update(2 * len(chunk.sources))


def _check_not_empty(train: SplitBuilder, limits: Mapping[str, Any]) -> None:
    """Raise UserError if all training pairs are dropped."""
    if train.keep.any():
        return
    dropped = ", ".join(describe_dropped(train.dropped, limits))
    raise UserError(
        f"train: no pair is left: {dropped}; look at the files, or raise data.max_length or "
        "data.max_length_ratio"
    )


def _write_links(
    directory: Path,
    draft: Draft,
    data: DataConfig,
    links: Mapping[str, LinkFile],
    splits: Mapping[str, SplitBuilder],
) -> list[str]:
    """Write the gold links of each split as lines of text. For the training pairs, also write the
    links between tokens that `data.links` asks for, and return a note about them for the user.

    Args:
        directory: the folder of the prepared corpus.
        draft: the draft, with the lines of links of all pairs.
        data: the `data` section of the configuration.
        links: the result of `find_links`.
        splits: the builder of each split, which knows the kept pairs.
    """

    def kept_lines(split: str) -> Iterator[str]:
        """Yield the lines of links of the kept pairs."""
        lines = iter_exact(split_path(draft.directory, split, LINKS))
        return compress(lines, splits[split].keep)

    for split, file in links.items():
        if file.is_gold:
            write_lines(split_path(directory, split, LINKS), kept_lines(split))
    if "train" in links:
        lines = kept_lines("train")
        return [write_pharaoh_links(directory, lines, links["train"], str(data.links))]
    return [write_estimated_links(directory)] if data.links == IBM1 else []
