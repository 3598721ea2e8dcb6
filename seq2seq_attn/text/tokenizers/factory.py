"""Build and load the `Source` and the `Tokenizer` of a run.

A `Source` tokenizes the lines of the source side, which may be text, several columns or names of
files of vectors (`source.py`). A `Tokenizer` is a source of one text that can also detokenize; the
target side always has a `Tokenizer`. The libraries SentencePiece and spaCy are imported when they
are first used.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from seq2seq_attn.config import DataConfig
from seq2seq_attn.config.layout import SourceLayout
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import Read, read_json, read_regular
from seq2seq_attn.text.normalize import has_dotless_i
from seq2seq_attn.text.tokenizers.base import (
    CharacterTokenizer,
    PositionTokenizer,
    SpaceTokenizer,
    Tokenizer,
)
from seq2seq_attn.text.tokenizers.several import SentenceSource, SeveralSources
from seq2seq_attn.text.tokenizers.source import NoSource, Source
from seq2seq_attn.text.tokenizers.vectors import VectorSource, read_vectors

_SIMPLE = {kind.name: kind for kind in (CharacterTokenizer, SpaceTokenizer, PositionTokenizer)}


def build_tokenizers(
    source_lines: Iterable[str], target_lines: Iterable[str], data: DataConfig
) -> tuple[Source, Tokenizer]:
    """Build the `Source` of the source side and the `Tokenizer` of the target side.

    SentencePiece is trained on the lines: a model for both sides if `data.tokenizer.joint` is set,
    or else a model per side. All tokenizers but SentencePiece need no training.

    Raises:
        UserError: spaCy lacks a language, the lines are blank, or a file of vectors cannot be read.
        UsageError: the text does not allow the size of SentencePiece's vocabulary.
    """
    # SentencePiece must not read the column that names files of vectors.
    layout = data.layout
    column = layout.vector_column
    size = 0
    if column is not None:
        source_lines = list(source_lines)
        size = _find_vector_size(source_lines, layout)
        source_lines = _without_column(source_lines, layout, column)

    settings = data.tokenizer
    target_name = settings.target or settings.name
    if settings.lowercase and {settings.name, target_name} != {"spacy"}:
        _check_lowercase([*layout.texts, data.target_language])
    corpora = []
    if settings.name == "sentencepiece" and layout.texts:
        corpora.append(source_lines)
    if target_name == "sentencepiece":
        corpora.append(target_lines)
    if settings.joint and len(corpora) == 2:
        corpora = [chain(*corpora)]
    models = _train(corpora, data)

    sources: list[Source] = []
    for language in layout.texts:
        if settings.name == "sentencepiece":
            sources.append(models[0])
        else:
            sources.append(_untrained(settings.name, language, settings.lowercase))
    if column is not None:
        sources.insert(column, VectorSource(size))
    if target_name == "sentencepiece":
        target = models[-1]
    else:
        target = _untrained(target_name, data.target_language, settings.lowercase)
    if len(sources) > 1:
        return SeveralSources(layout.columns, sources), target
    source = sources[0] if sources else NoSource()
    return SentenceSource(source) if settings.sentences else source, target


def _check_lowercase(languages: Sequence[str]) -> None:
    """Raise UsageError if a language has a dotless i, whose lower case only spaCy's tokenizer
    knows."""
    if any(map(has_dotless_i, languages)):
        raise UsageError(
            "data.tokenizer.lowercase=true: tokenizers but spacy lack the lower case of Turkish "
            "and Azerbaijani; set it to false, or data.tokenizer.name=spacy"
        )


def _train(corpora: list[Iterable[str]], data: DataConfig) -> list[Tokenizer]:
    """Train a SentencePiece model on the lines of each corpus, in parallel."""
    if not corpora:
        return []
    from seq2seq_attn.text.tokenizers.sentencepiece import train_sentencepiece

    settings = data.tokenizer.model_dump(include={"lowercase", "vocab_size", "model_type"})
    with ThreadPoolExecutor() as pool:  # training releases the interpreter's lock
        return list(pool.map(partial(train_sentencepiece, **settings), corpora))


def _without_column(lines: Iterable[str], layout: SourceLayout, index: int) -> Iterator[str]:
    """Yield each line without the column at `index`. The column holds names of files, on which
    SentencePiece must not be trained."""
    for line in lines:
        columns = layout.split(line)
        if index < len(columns):  # a blank line has a single column
            del columns[index]
        yield "\t".join(columns)


def _find_vector_size(lines: Iterable[str], layout: SourceLayout) -> int:
    """Return the dimension of the vectors in the first file that a line names.

    Raises:
        UserError: no line names a file, or the first file cannot be read.
    """
    file = next(filter(None, layout.vector_files(lines)), None)
    if file is None:
        raise UserError("vectors: all lines are blank; each names a .npy file, or FILE.npz:KEY")
    return int(read_vectors(file).shape[1])


def _untrained(name: str, language: str, lowercase: bool) -> Tokenizer:
    """Build a tokenizer that needs no training, which is any but SentencePiece's."""
    if name != "spacy":
        return _SIMPLE[name](lowercase=lowercase)
    from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer

    return SpacyTokenizer(language, lowercase=lowercase)


def load_source(directory: Path, side: str = "source", read: Read = read_regular) -> Source:
    """Load a saved `Source`.

    Args:
        directory: the folder of the saved files.
        side: the first word of their names, `source` or `target`.
        read: returns the bytes of a file.

    Raises:
        UserError: a file is missing or damaged, or this version does not know the kind of source.
    """
    path = directory / f"{side}.tokenizer.json"

    def build(settings: dict[str, Any]) -> Source:
        match settings["name"]:
            case "none":
                return NoSource()
            case "vectors":
                return VectorSource(settings["size"])
            case "sentencepiece":
                from seq2seq_attn.text.tokenizers.sentencepiece import load_sentencepiece

                model_path = directory / f"{side}.sentencepiece.model"
                lowercase = bool(settings["lowercase"])
                return load_sentencepiece(model_path, lowercase=lowercase, read=read)
            case name:
                language = settings.get("language", "")
                return _untrained(name, language, bool(settings["lowercase"]))

    saved = read_json(path, read)
    try:
        if saved["name"] == "several":
            return SeveralSources(saved["languages"], list(map(build, saved["columns"])))
        if saved["name"] == "sentences":
            return SentenceSource(build(saved["text"]))
        return build(saved)
    except UserError:
        raise
    except Exception:  # a damaged file may hold any values
        raise _unknown(path) from None


def load_tokenizer(directory: Path, side: str, read: Read = read_regular) -> Tokenizer:
    """Load a saved tokenizer.

    Raises:
        UserError: a file is missing or damaged, or the saved source is not a `Tokenizer`.
    """
    source = load_source(directory, side, read)
    if not isinstance(source, Tokenizer):
        raise _unknown(directory / f"{side}.tokenizer.json")
    return source


def _unknown(path: Path) -> UserError:
    """Return the error for a tokenizer file that cannot be loaded."""
    return UserError(f"{path}: not a tokenizer file of this version; prepare the data again")
