"""Notices of the `translate` command on stderr: translations to distrust, and progress through a long file."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal

from tqdm import tqdm

from seq2seq_attn.cli.writers import Writer
from seq2seq_attn.errors import UserError
from seq2seq_attn.text.corpus import iter_raw_lines
from seq2seq_attn.text.tokenizers.base import SOURCE_END, SPACE, Tokenizer
from seq2seq_attn.text.tokenizers.several import num_sources, warn_of_tabs
from seq2seq_attn.translate.batching import unknown_positions
from seq2seq_attn.translate.translator import Translation, Translator

BAR_AFTER_S = 1.0
LOG_EVERY_S = 30.0
_UNITS = {"spacy": "words", "sentencepiece": "subwords", "characters": "characters", "spaces": "tokens"}
_MAX_EXAMPLES, _MAX_CHARACTERS = 10, 30

log = logging.getLogger(__name__)


class Notices(Writer):
    """Reports source tokens unknown to the run, lines cut by the length limit, and tabs where they separate nothing:
    for single sentences at once, for a file in total at its end."""

    def __init__(self, name: str | None, *, tokenizer: Tokenizer, length_limit: str) -> None:
        """Take the file's name (None: sentences), the source tokenizer, and a description of the length limit."""
        self._name = name
        self._tokenizer = tokenizer
        self._length_limit = length_limit
        self._num_with_tabs = 0
        self._num_lines = self._num_tokens = 0
        self._num_cut = self._num_broken = self._num_unknown = self._num_lines_unknown = 0
        self._examples: dict[str, None] = {}

    def write(self, number: int, line: str, translations: list[Translation]) -> None:
        """See `Writer`."""
        best = translations[0]
        tokens = best.source_tokens[:-1]
        unknown = [_shown(tokens[position]) for position in best.unknown]
        self._num_lines += 1
        self._num_with_tabs += SOURCE_END in line
        self._num_tokens += len(tokens)
        self._num_cut += best.is_cut
        self._num_broken += bool(tokens) and not math.isfinite(best.log_prob)
        self._num_unknown += len(unknown)
        self._num_lines_unknown += bool(unknown)
        if self._name is not None:
            self._examples.update(dict.fromkeys(unknown[: _MAX_EXAMPLES - len(self._examples)]))
        elif not tokens:
            log.warning("line %d: blank, so its translation is blank", number + 1)
        elif unknown:
            _warn_of_unknown(f"line {number + 1}", unknown, len(tokens), self._tokenizer)

    def report(self) -> None:
        """Log the totals."""
        if num_sources(self._tokenizer) == 1:
            warn_of_tabs(self._name, self._num_with_tabs)
        prefix = "" if self._name is None else f"{self._name}: "
        lines = "line" if self._num_lines == 1 else "lines"
        if self._name is not None and self._num_unknown:
            counts = f"{self._num_unknown:,} of {self._num_tokens:,} {_unit(self._tokenizer)}"
            where = f"{self._num_lines_unknown:,} of {self._num_lines:,} lines"
            examples = ", ".join(self._examples)
            log.warning("%s%s unknown to this run, on %s; for example: %s", prefix, counts, where, examples)
        if self._num_broken:
            text = "%s%s of %s %s not translated: the model's probabilities are 0 or not numbers; try --precision fp32"
            log.warning(text, prefix, f"{self._num_broken:,}", f"{self._num_lines:,}", lines)
        if self._num_cut:
            text = "%s%s of %s %s cut at the length limit (%s); raise it with --max-length-ratio"
            lines_were = f"{lines} {'was' if self._num_cut == 1 else 'were'}"
            log.warning(text, prefix, f"{self._num_cut:,}", f"{self._num_lines:,}", lines_were, self._length_limit)


def warn_of_prefix(translator: Translator, prefix: str) -> None:
    """Warn of words in `--prefix` that the run does not know."""
    tokens = translator.target_tokenizer.tokenize(prefix)
    unknown = [_shown(tokens[position]) for position in unknown_positions(tokens, translator.target_vocab)]
    if unknown:
        _warn_of_unknown("--prefix", unknown, len(tokens), translator.target_tokenizer)


def _warn_of_unknown(where: str, unknown: Sequence[str], num_tokens: int, tokenizer: Tokenizer) -> None:
    counts = f"{len(unknown):,} of {num_tokens:,} {_unit(tokenizer)}"
    log.warning("%s: %s unknown to this run: %s", where, counts, _listed(list(dict.fromkeys(unknown))))


def _unit(tokenizer: Tokenizer) -> str:
    return _UNITS.get(tokenizer.name, "tokens")


def _shown(token: str) -> str:
    text = token.removeprefix(SPACE) or token
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 1]}…"


def _listed(words: Sequence[str]) -> str:
    rest = len(words) - _MAX_EXAMPLES
    return ", ".join(words[:_MAX_EXAMPLES]) + (f" and {rest:,} more" if rest > 0 else "")


class Progress:
    """Progress of a translation: a bar on stderr, or a log line every half minute."""

    def __init__(self, num_lines: int | None, shown_as: Literal["bar", "log", "nothing"]) -> None:
        """Start. `num_lines` is the total, if known."""
        self._total = "" if num_lines is None else f" of {num_lines:,}"
        self._bar = tqdm(total=num_lines, unit="line", delay=BAR_AFTER_S, disable=shown_as != "bar", file=sys.stderr)
        self._is_logged = shown_as == "log"
        self._num_lines = 0
        self._began_at = self._logged_at = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.close()

    def add(self, num_lines: int) -> None:
        """Count lines."""
        self._num_lines += num_lines
        self._bar.update(num_lines)
        now = time.monotonic()
        if self._is_logged and now - self._logged_at >= LOG_EVERY_S:
            self._logged_at = now
            rate = self._num_lines / (now - self._began_at)
            shown = f"{rate:,.0f} per second" if rate >= 10 else f"{rate:.1f} per second"
            if rate < 0.1:
                shown = f"{1 / rate:,.0f} seconds per line"
            log.info("%s%s lines translated, %s", f"{self._num_lines:,}", self._total, shown)


def count_lines(path: Path) -> int | None:
    """The number of lines of a file, plain or .gz; None if it cannot be read twice (a pipe) or at all."""
    try:
        return sum(1 for _ in iter_raw_lines(path)) if path.is_file() else None
    except UserError:
        return None
