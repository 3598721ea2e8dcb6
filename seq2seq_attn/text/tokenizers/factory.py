"""Build, save and load sources and tokenizers. Each kind is imported when it is first used."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from seq2seq_attn.config.layout import SourceLayout
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_json, read_regular
from seq2seq_attn.text.tokenizers.base import (
    CharacterTokenizer,
    PositionTokenizer,
    SpaceTokenizer,
    Tokenizer,
)
from seq2seq_attn.text.tokenizers.several import (
    SENTENCES,
    SEVERAL,
    SentenceSource,
    SeveralSources,
)
from seq2seq_attn.text.tokenizers.source import NoSource, Source
from seq2seq_attn.text.tokenizers.vectors import VectorSource, read_vectors

_SIMPLE = {kind.name: kind for kind in (CharacterTokenizer, SpaceTokenizer, PositionTokenizer)}
UNTRAINED = ("spacy", *_SIMPLE)
"""kinds that need no training"""


def build_tokenizers(
    source_lines: Iterable[str],
    target_lines: Iterable[str],
    *,
    layout: SourceLayout,
    target_language: str,
    name: str,
    target: str | None,
    sentences: bool,
    joint: bool,
    lowercase: bool,
    **training: Any,
) -> tuple[Source, Tokenizer]:
    """The source of lines with these columns, and the tokenizer of the target. `target` is the name
    of the target's tokenizer where it differs. SentencePiece is trained on the lines: one model for
    both sides if `joint`, else one per side, with these settings of `training`. The other kinds
    need no training. `sentences`: mark the end of each sentence of the source.

    Raises:
        UserError: spaCy lacks a language, the lines are blank, or a file of vectors cannot be read.
        UsageError: the text does not allow the size of SentencePiece's vocabulary.
    """
    texts: Iterable[str] = source_lines
    size = 0
    if layout.vector_column is not None:
        source_lines = [*source_lines]
        texts = _without_column(source_lines, layout, layout.vector_column)
        size = _find_vector_size(source_lines, layout)
    target_name = target or name
    if name == "sentencepiece":
        sides: list[Iterable[str]] = []
        if layout.texts:
            sides.append(texts)
        if target is None:
            sides.append(target_lines)
        if joint and len(sides) == 2:
            sides = [chain(*sides)]
        trained = _train(sides, lowercase=lowercase, **training)
        sources: list[Source] = [*trained[:1] * len(layout.texts)]
    else:
        trained = []
        sources = [_untrained(name, language, lowercase=lowercase) for language in layout.texts]
    if target_name == "sentencepiece":
        target_tokenizer = trained[-1]
    else:
        target_tokenizer = _untrained(target_name, target_language, lowercase=lowercase)
    if layout.vector_column is not None:
        sources.insert(layout.vector_column, VectorSource(size))
    return _combine(layout.columns, sources, sentences=sentences), target_tokenizer


def _combine(languages: Sequence[str], sources: Sequence[Source], *, sentences: bool) -> Source:
    if not sources:
        return NoSource()
    if len(sources) > 1:
        return SeveralSources(languages, sources)
    return SentenceSource(sources[0]) if sentences else sources[0]


def _train(sides: Sequence[Iterable[str]], **settings: Any) -> list[Tokenizer]:
    """A SentencePiece model for each side, in parallel."""
    from seq2seq_attn.text.tokenizers.sentencepiece import train_sentencepiece

    with ThreadPoolExecutor() as pool:  # training releases the interpreter's lock
        return [*pool.map(partial(train_sentencepiece, **settings), sides)]


def _without_column(lines: Iterable[str], layout: SourceLayout, index: int) -> Iterator[str]:
    """The lines without a column."""
    for line in lines:
        columns = layout.split(line)
        del columns[index : index + 1]
        yield "\t".join(columns)


def _find_vector_size(lines: Iterable[str], layout: SourceLayout) -> int:
    """The dimension of the vectors in the first file that is named. Raises UserError: none is
    named, or it cannot be read."""
    file = next(filter(None, layout.vector_files(lines)), None)
    if file is None:
        raise UserError("vectors: all lines are blank; each names a .npy file, or FILE.npz:KEY")
    return int(read_vectors(file).shape[1])


def _untrained(name: str, language: str, *, lowercase: bool) -> Tokenizer:
    """A tokenizer of any kind but SentencePiece's."""
    if name in _SIMPLE:
        return _SIMPLE[name](lowercase=lowercase)
    from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer

    return SpacyTokenizer(language, lowercase=lowercase)


def load_source(
    directory: Path, side: str = "source", read: Callable[[Path], bytes] = read_regular
) -> Source:
    """Load a saved source from files that `read` reads. Raises UserError: a file is missing or
    damaged, or the kind is unknown to this version."""
    path = directory / f"{side}.tokenizer.json"
    saved = read_json(path, read)
    try:
        source = _load(directory, side, saved, read)
    except UserError:
        raise
    except Exception:  # of any values
        raise _damaged(path) from None
    if source is None:
        raise UserError(
            f"{path}: unknown tokenizer {saved['name']!r}; this version has sentencepiece, "
            f"{', '.join(UNTRAINED)}"
        )
    return source


def load_tokenizer(
    directory: Path, side: str, read: Callable[[Path], bytes] = read_regular
) -> Tokenizer:
    """Load the saved tokenizer of a text. Raises UserError as `load_source`, or the side is not a
    text."""
    source = load_source(directory, side, read)
    if not isinstance(source, Tokenizer):
        raise _damaged(directory / f"{side}.tokenizer.json")
    return source


def _load(directory: Path, side: str, saved: Any, read: Callable[[Path], bytes]) -> Source | None:
    name = saved["name"]
    if name == SENTENCES:
        return SentenceSource(load_tokenizer(directory, f"{side}.text", read))
    if name == SEVERAL:
        sources: dict[str, Source] = {}
        for column in saved["parts"]:
            if not re.fullmatch(rf"{re.escape(side)}\.[A-Za-z_-]+", column):
                raise ValueError(column)  # the files of columns lie beside this one
            if column not in sources:
                sources[column] = load_source(directory, column, read)
        return SeveralSources(saved["languages"], [sources[column] for column in saved["parts"]])
    if name == NoSource.name:
        return NoSource()
    if name == VectorSource.name:
        return VectorSource(saved["size"])
    lowercase = bool(saved["lowercase"])
    if name in UNTRAINED:
        return _untrained(name, saved.get("language", ""), lowercase=lowercase)
    if name == "sentencepiece":
        from seq2seq_attn.text.tokenizers.sentencepiece import load_sentencepiece

        model_path = directory / f"{side}.sentencepiece.model"
        return load_sentencepiece(model_path, lowercase=lowercase, read=read)
    return None


def _damaged(path: Path) -> UserError:
    return UserError(f"{path}: not a tokenizer file of seq2seq-attn; prepare the data again")
