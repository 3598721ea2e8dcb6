"""Build, save and load tokenizers. Each kind is imported when it is first used."""

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_json, read_regular
from seq2seq_attn.text.tokenizers.base import (
    NONE,
    SOURCE_END,
    VECTORS,
    CharacterTokenizer,
    NoTokenizer,
    PositionTokenizer,
    SpaceTokenizer,
    Tokenizer,
)
from seq2seq_attn.text.tokenizers.several import (
    SENTENCES,
    SEVERAL,
    SentenceTokenizer,
    SeveralTokenizer,
)
from seq2seq_attn.text.tokenizers.vectors import VectorsTokenizer, read_vectors

_SIMPLE = {kind.name: kind for kind in (CharacterTokenizer, SpaceTokenizer, PositionTokenizer)}
UNTRAINED = ("spacy", *_SIMPLE)
"""kinds that need no training"""


def build_tokenizers(
    source_lines: Iterable[str],
    target_lines: Iterable[str],
    *,
    name: str,
    target: str | None,
    source_languages: Sequence[str],
    target_language: str,
    lowercase: bool,
    vocab_size: int,
    joint: bool,
    model_type: str,
    sentences: bool,
) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of both sides; `target` is the name of the target's where it differs.
    SentencePiece is trained on the lines: one model for both sides if `joint`, else one per side.
    The other kinds need no training. With several source languages, a source line holds a text in
    each, separated by tabs; for the language `vectors`, it holds the name of a file instead. With
    `sentences`, the source's tokenizer marks the end of each sentence.

    Raises:
        UserError: spaCy lacks a language, the lines are blank, or a file of vectors cannot be read.
        UsageError: the text does not allow this `vocab_size`.
    """
    texts = [language for language in source_languages if language not in (NONE, VECTORS)]
    first_file = ""
    if VECTORS in source_languages:
        source_lines, first_file = _split_off_vectors(source_lines, source_languages.index(VECTORS))
    if name == "sentencepiece":
        from seq2seq_attn.text.tokenizers.sentencepiece import train_sentencepiece

        sides = [*([source_lines] if texts else []), *([target_lines] if target is None else [])]
        texts_to_train = [chain(*sides)] if joint and len(sides) > 1 else sides
        train = partial(
            train_sentencepiece, lowercase=lowercase, vocab_size=vocab_size, model_type=model_type
        )
        with ThreadPoolExecutor() as pool:  # training releases the interpreter's lock
            trained: list[Tokenizer] = [*pool.map(train, texts_to_train)]
        sources = trained[:1] * len(texts)
    else:
        sources = [_untrained(name, language, lowercase=lowercase) for language in texts]
    if target is None and name == "sentencepiece":
        target_tokenizer = trained[-1]
    else:
        target_tokenizer = _untrained(target or name, target_language, lowercase=lowercase)
    if first_file:
        size = read_vectors(first_file).shape[1]
        sources.insert(source_languages.index(VECTORS), VectorsTokenizer(size))
    if len(sources) > 1:
        return SeveralTokenizer(source_languages, sources), target_tokenizer
    source = sources[0] if sources else NoTokenizer()
    return SentenceTokenizer(source) if sentences else source, target_tokenizer


def _split_off_vectors(lines: Iterable[str], number: int) -> tuple[list[str], str]:
    """The lines without source `number`, which names files of vectors, and the first of these file
    names. Raises UserError: all lines are blank there."""
    sources = [line.split(SOURCE_END) for line in lines]
    first = next(
        (line[number].strip() for line in sources if len(line) > number and line[number].strip()),
        None,
    )
    if first is None:
        raise UserError(f"{VECTORS}: all lines are blank; each names a .npy file, or FILE.npz:KEY")
    return [SOURCE_END.join(line[:number] + line[number + 1 :]) for line in sources], first


def _untrained(name: str, language: str, *, lowercase: bool) -> Tokenizer:
    """A tokenizer of any kind but SentencePiece's."""
    if name in _SIMPLE:
        return _SIMPLE[name](lowercase=lowercase)
    from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer

    return SpacyTokenizer(language, lowercase=lowercase)


def load_tokenizer(
    directory: Path, side: str, read: Callable[[Path], bytes] = read_regular
) -> Tokenizer:
    """Load the tokenizer of a side from files that `read` reads. Raises UserError: a file is
    missing or damaged, or the kind is unknown to this version."""
    path = directory / f"{side}.tokenizer.json"
    damaged = UserError(f"{path}: not a tokenizer file of seq2seq-attn; prepare the data again")
    saved = read_json(path, read)
    try:
        name = saved["name"]
        if name in (SENTENCES, SEVERAL):
            names = [*map(str, saved["parts"])]
            if not names or not all(
                re.fullmatch(rf"{re.escape(side)}\.[A-Za-z_-]+", part) for part in names
            ):
                raise damaged  # the files of the parts lie beside this one
            parts = {part: load_tokenizer(directory, part, read) for part in names}
            if name == SENTENCES:
                return SentenceTokenizer(parts[names[0]])
            return SeveralTokenizer(saved["languages"], [parts[part] for part in names])
        if name == NONE:
            return NoTokenizer()
        if name == VECTORS:
            return VectorsTokenizer(saved["size"])
        lowercase = bool(saved["lowercase"])
        if name in UNTRAINED:
            return _untrained(name, saved.get("language", ""), lowercase=lowercase)
        if name == "sentencepiece":
            from seq2seq_attn.text.tokenizers.sentencepiece import load_sentencepiece

            model_path = directory / f"{side}.sentencepiece.model"
            return load_sentencepiece(model_path, lowercase=lowercase, read=read)
    except UserError:
        raise
    except Exception:  # of any values
        raise damaged from None
    raise UserError(
        f"{path}: unknown tokenizer {name!r}; this version has sentencepiece, "
        f"{', '.join(UNTRAINED)}"
    )
