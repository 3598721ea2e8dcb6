"""SentencePiece subwords as tokens (Kudo and Richardson 2018)."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import atomic_path, read_regular, write_json
from seq2seq_attn.text.normalize import normalize, one_line
from seq2seq_attn.text.tokenizers.base import Side

log = logging.getLogger(__name__)

SPACE = "▁"
"""How SentencePiece writes a blank (U+2581)."""
# Training fails on 100,000 brackets in a row; what follows the first of them teaches it nothing.
_OVER_LONG = re.compile(r"([^ ]{1024})[^ ]+")


class SentencePieceTokenizer:
    """Subwords of a trained model. A run of characters that the model never saw is a token as it stands."""

    name = "sentencepiece"

    def __init__(self, model: bytes, *, lowercase: bool = False) -> None:
        from sentencepiece import SentencePieceProcessor

        self.lowercase = lowercase
        self.model = model
        self._processor: Any = SentencePieceProcessor(model_proto=model)

    @property
    def num_subwords(self) -> int:
        """The subwords that the model knows."""
        return int(self._processor.get_piece_size())

    def tokenize(self, text: str) -> list[str]:
        """The subwords of one line."""
        pieces: list[str] = self._processor.encode(normalize(text, lowercase=self.lowercase), out_type=str)
        return pieces

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        """The subwords of each line."""
        lines = [normalize(text, lowercase=self.lowercase) for text in texts]
        pieces: list[list[str]] = self._processor.encode(lines, out_type=str, num_threads=1)
        return pieces

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The subwords joined, blanks where the model wrote them."""
        # Not the library's decode: it drops tokens spelled like its specials and shows unknown ones as " ⁇ ".
        return " ".join(one_line("".join(tokens)).replace(SPACE, " ").split())

    def save(self, directory: Path, side: Side) -> None:
        """Write `<side>.tokenizer.json` and `<side>.sentencepiece.model`."""
        with atomic_path(directory / f"{side}.sentencepiece.model") as temporary:
            temporary.write_bytes(self.model)
        write_json(directory / f"{side}.tokenizer.json", {"name": self.name, "lowercase": self.lowercase})


def train_sentencepiece(
    lines: Iterable[str], *, lowercase: bool = False, vocab_size: int = 8_000, model_type: str = "unigram"
) -> SentencePieceTokenizer:
    """Train a model on training text. Same lines, same model, byte for byte. A text too small for `vocab_size` gives
    as many subwords as it has.

    Raises:
        UsageError: `vocab_size` is smaller than the number of different characters.
        UserError: all lines are blank.
    """
    from sentencepiece import SentencePieceTrainer

    written = io.BytesIO()
    normalized = filter(None, (_OVER_LONG.sub(r"\1", normalize(line, lowercase=lowercase)) for line in lines))
    first = next(normalized, None)
    if first is None:
        raise UserError("SentencePiece: no text to learn from; all training lines are blank")
    options: dict[str, Any] = {
        "vocab_size": vocab_size,
        "model_type": model_type,
        "hard_vocab_limit": False,
        "character_coverage": 1.0,
        # `normalize` has done it: with "identity" joining the subwords gives the line back
        "normalization_rule_name": "identity",
        "num_threads": 1,
        "max_sentence_length": 1 << 20,
        # ids are given by our own vocabulary: the model needs none of its specials but the unknown one
        "unk_id": 0,
        "bos_id": -1,
        "eos_id": -1,
        "pad_id": -1,
        "minloglevel": 2,
    }
    try:
        SentencePieceTrainer.train(sentence_iterator=chain([first], normalized), model_writer=written, **options)
    except RuntimeError as error:
        needed = re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error))
        reason = f"it has {needed[1]} different characters; set at least that" if needed else "choose another size"
        raise UsageError(
            f"data.tokenizer.vocab_size={vocab_size}: SentencePiece cannot learn a {model_type} model of that size "
            f"from this text; {reason}, or take data.tokenizer.name=characters"
        ) from None
    tokenizer = SentencePieceTokenizer(written.getvalue(), lowercase=lowercase)
    if (found := tokenizer.num_subwords) < vocab_size:
        log.info("SentencePiece: %d subwords, as this text gives no more (vocab_size=%d)", found, vocab_size)
    return tokenizer


def load_sentencepiece(path: Path, *, lowercase: bool) -> SentencePieceTokenizer:
    """Load a saved model.

    Raises:
        UserError: the file is missing or damaged.
    """
    try:
        model = read_regular(path)
        if model:  # SentencePiece takes no bytes for no model, and fails later
            return SentencePieceTokenizer(model, lowercase=lowercase)
    except FileNotFoundError:
        raise UserError(f"{path}: no such SentencePiece model") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except RuntimeError:
        pass
    raise UserError(f"{path}: not a SentencePiece model, or a damaged one")
