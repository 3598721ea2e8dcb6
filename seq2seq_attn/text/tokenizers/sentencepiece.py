"""SentencePiece subwords as tokens (Kudo and Richardson 2018)."""

import io
import logging
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import Read, read_regular
from seq2seq_attn.text.tokenizers.base import Tokenizer, join_marked, normalize_marked

log = logging.getLogger(__name__)

_UNKNOWN = 0
"""SentencePiece's id of unknown characters"""
# Training fails on 100,000 brackets in a row, so only the first 1,024 characters of a run without
# spaces are used.
_OVER_LONG = re.compile(r"([^ ]{1024})[^ ]+")


class SentencePieceTokenizer(Tokenizer):
    """Split text into the subwords of a trained model. Several unknown characters in a row are one
    token."""

    name = "sentencepiece"

    def __init__(self, model: bytes, *, lowercase: bool = False) -> None:
        from sentencepiece import SentencePieceProcessor

        super().__init__(lowercase=lowercase)
        self.model = model
        self._processor: Any = SentencePieceProcessor(model_proto=model)
        self.num_subwords: int = self._processor.get_piece_size()

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        lines = [normalize_marked(text, lowercase=self.lowercase) for text in texts]
        tokenized: list[list[str]] = self._processor.encode(lines, out_type=str, num_threads=1)
        return tokenized

    def detokenize(self, tokens: Sequence[str]) -> str:
        # SentencePiece's own decoder drops tokens that are spelled like its special tokens, and
        # writes " ⁇ " for unknown tokens.
        return join_marked(tokens)

    def scores(self) -> dict[str, float]:
        """Return the score of each subword. The special token for unknown characters is left
        out."""
        scores = {}
        for number in range(self.num_subwords):
            if number != _UNKNOWN:
                subword = self._processor.id_to_piece(number)
                scores[subword] = self._processor.get_score(number)
        return scores


_OPTIONS: dict[str, Any] = {
    "hard_vocab_limit": False,
    "character_coverage": 1.0,
    # `normalize` has been applied; "identity" keeps detokenization exact
    "normalization_rule_name": "identity",
    "num_threads": 1,
    "max_sentence_length": 1 << 20,
    # ids come from `Vocab`, so the model needs no special token but that for unknown characters
    "unk_id": _UNKNOWN,
    "bos_id": -1,
    "eos_id": -1,
    "pad_id": -1,
    "minloglevel": 2,
}
"""options of SentencePiece's training that are always the same"""


def train_sentencepiece(
    lines: Iterable[str],
    *,
    lowercase: bool = False,
    vocab_size: int = 8_000,
    model_type: str = "unigram",
) -> SentencePieceTokenizer:
    """Train a SentencePiece model. Equal lines give equal models, byte for byte. A text that is too
    small for `vocab_size` gives fewer subwords.

    Raises:
        UsageError: `vocab_size` is smaller than the number of distinct characters.
        UserError: all lines are blank.
    """
    from sentencepiece import SentencePieceTrainer

    model_file = io.BytesIO()
    shortened = (
        _OVER_LONG.sub(r"\1", normalize_marked(line, lowercase=lowercase)) for line in lines
    )
    normalized = filter(None, shortened)
    first = next(normalized, None)
    if first is None:
        raise UserError("SentencePiece: all training lines are blank; add text")
    options = {**_OPTIONS, "vocab_size": vocab_size, "model_type": model_type}
    try:
        SentencePieceTrainer.train(
            sentence_iterator=chain([first], normalized), model_writer=model_file, **options
        )
    except RuntimeError as error:
        needed = re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error))
        reason = "choose another size"
        if needed:
            reason = f"it has {needed[1]} distinct characters; set at least that"
        raise UsageError(
            f"data.tokenizer.vocab_size={vocab_size}: SentencePiece cannot train a {model_type} "
            f"model of that size on this text; {reason}, or use data.tokenizer.name=characters"
        ) from None
    tokenizer = SentencePieceTokenizer(model_file.getvalue(), lowercase=lowercase)
    if tokenizer.num_subwords < vocab_size:
        message = "SentencePiece: %d subwords, all that this text gives (vocab_size=%d)"
        log.info(message, tokenizer.num_subwords, vocab_size)
    return tokenizer


def load_sentencepiece(
    path: Path, *, lowercase: bool, read: Read = read_regular
) -> SentencePieceTokenizer:
    """Load a saved model from a file. `read` returns the bytes of the file.

    Raises:
        UserError: the file is missing or damaged.
    """
    try:
        model = read(path)
        if not model:  # SentencePiece accepts an empty file and fails later
            raise RuntimeError("it is empty")
        return SentencePieceTokenizer(model, lowercase=lowercase)
    except UserError:
        raise
    except Exception as error:  # a damaged file may hold any bytes
        raise UserError(
            f"{path}: not a readable SentencePiece model ({error}); copy or prepare it again"
        ) from None
