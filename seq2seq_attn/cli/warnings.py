"""Warnings of the `translate` command about translations that cannot be trusted."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

from seq2seq_attn.cli.writers import Writer
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.text.tokenizers.base import SOURCE_END, SPACE, Tokenizer
from seq2seq_attn.text.tokenizers.several import num_sources, warn_of_tabs
from seq2seq_attn.translate.batching import unknown_positions
from seq2seq_attn.translate.translator import Translation, Translator

_UNITS = {"spacy": "words", "sentencepiece": "subwords", "characters": "characters"}
_MAX_EXAMPLES, _MAX_CHARACTERS = 10, 30

log = logging.getLogger(__name__)


class Warnings(Writer):
    """Warns of source tokens unknown to the run, lines cut by the length limit, and tabs where they separate nothing:
    per sentence for texts on the command line, as totals for a file."""

    def __init__(self, name: str, tokenizer: Tokenizer, search: SearchOptions) -> None:
        """Take the file's name (empty: texts), the source tokenizer and the options of the search."""
        self._name = name
        self._tokenizer = tokenizer
        self._search = search
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
        if self._name:
            self._examples.update(dict.fromkeys(unknown[: _MAX_EXAMPLES - len(self._examples)]))
        elif not tokens:
            log.warning("line %d: blank, so its translation is blank", number + 1)
        elif unknown:
            _warn_of_unknown(f"line {number + 1}", unknown, len(tokens), self._tokenizer)

    def report(self) -> None:
        """Log the totals."""
        if num_sources(self._tokenizer) == 1:
            warn_of_tabs(self._name or None, self._num_with_tabs)
        prefix = f"{self._name}: " if self._name else ""
        num_lines = f"{self._num_lines:,} {'line' if self._num_lines == 1 else 'lines'}"
        if self._name and self._num_unknown:
            counts = f"{self._num_unknown:,} of {self._num_tokens:,} {_unit(self._tokenizer)}"
            where = f"{self._num_lines_unknown:,} of {num_lines}"
            examples = ", ".join(self._examples)
            log.warning("%s%s unknown to this run, on %s; for example: %s", prefix, counts, where, examples)
        if self._num_broken:
            text = "%s%s of %s not translated: the model's probabilities are 0 or not numbers; try --precision fp32"
            log.warning(text, prefix, f"{self._num_broken:,}", num_lines)
        if self._num_cut:
            limit = f"{self._search.length_ratio:g} * source tokens + {self._search.max_length_extra}"
            verb = "was" if self._num_cut == 1 else "were"
            text = "%s%s of %s %s cut at the length limit (%s); raise it with --max-length-ratio"
            log.warning(text, prefix, f"{self._num_cut:,}", num_lines, verb, limit)


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
