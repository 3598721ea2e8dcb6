"""The `score` command: forced decoding of given pairs for log-probability, attention and links."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path

from seq2seq_attn.cli.options import Format
from seq2seq_attn.cli.streams import STREAM, check_files, open_output
from seq2seq_attn.cli.writers import (
    AttentionFiles,
    LineWriter,
    Writer,
    as_json,
    attention_outputs,
    check_has_attention,
    open_attention_writers,
    write_all,
)
from seq2seq_attn.data.links import parse_links
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.attention import WordWeights
from seq2seq_attn.metrics.alignment import GoldAttention, Weights
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run_dir import RunDir, newest_run
from seq2seq_attn.text.corpus import read_lines
from seq2seq_attn.text.links import Link, words_of
from seq2seq_attn.text.parallel import Text, find_text
from seq2seq_attn.text.tokenizers.base import SOURCE_END, VECTORS
from seq2seq_attn.text.tokenizers.several import warn_about_tabs
from seq2seq_attn.text.vocab import UNK, extended_ids
from seq2seq_attn.translate.batching import suggest_smaller_batch
from seq2seq_attn.translate.scoring import force_decode
from seq2seq_attn.translate.translation import Translation
from seq2seq_attn.translate.translator import Translator, load

log = logging.getLogger(__name__)

_SHIFTED = {0: "", 1: ", with the weights of the next target step", -1: ", with the weights of the previous step"}


def score_pairs(
    pairs: str | None = None,
    *,
    source: Path | None = None,
    target: Path | None = None,
    run: str | Path | None = None,
    links: Path | None = None,
    alignment: str | Path | None = None,
    attention: AttentionFiles = None,
    format: Format = "text",
    device: str = "auto",
    batch_size: int | None = None,
) -> None:
    """Write one line per pair to standard output: the natural logarithm of the target's probability given its source, a
    tab, and the number of target tokens. Both include `<eos>`. The perplexity goes to the log.

    Args:
        pairs: a prefix or a table, as for `train --train`; or `source` and `target`, a sentence per line.
        run: run directory; None: the run in `runs/` that finished last.
        links: gold links between words, one line per pair (Pharaoh); the log tells how well the attention's links fit.
        alignment, attention, format: as for `translate_lines`; the objects of `json` are those of `_as_json`.
        batch_size: pairs decoded at once; None: as configured for translation.

    Raises:
        UsageError: options contradict each other or need attention that the model does not have.
        UserError: a run or file cannot be read, or a file cannot be written.
    """
    maps = attention_outputs(attention)
    text, run_dir = _find_pairs(pairs, source, target, run, links)
    inputs = [*text.paths, *([links] if links is not None else [])]
    check_files(inputs, {"the scores": STREAM, "--alignment": alignment, **maps})
    sources, targets = _read(text, reads_one_source=len(run_dir.config().data.sources) == 1)
    gold = None if links is None else _read_links(links, sources, targets)
    translator = load(run_dir.path, device)
    check_has_attention(translator, {"--alignment": alignment, "--links": links, **maps})
    summaries: list[_Totals | _LinkScores] = [
        _Totals(translator),
        *([_LinkScores(targets, gold)] if gold is not None else []),
    ]
    batch_size = batch_size or translator.search.batch_size
    with ExitStack() as stack:
        form = partial(_as_json, translator) if format == "json" else _as_text
        out = LineWriter(stack.enter_context(open_output(STREAM)), form)
        side_writers = open_attention_writers(stack, translator, alignment=alignment, attention=maps.values())
        writers = [out, *side_writers, *summaries]
        stack.enter_context(suggest_smaller_batch(batch_size))
        decoded = force_decode(translator, sources, targets, batch_size=batch_size)
        write_all(writers, count(), sources, ([pair] for pair in decoded))
    for summary in summaries:
        summary.report()


def _as_text(number: int, line: str, translations: list[Translation]) -> str:
    [pair] = translations
    return f"{pair.log_prob:.4f}\t{num_scored(pair)}"


def _as_json(translator: Translator, number: int, line: str, translations: list[Translation]) -> str:
    """The score, the tokens, and the positions of unknown tokens: source tokens outside the vocabulary, and target
    tokens that are scored as `<unk>`."""
    [pair] = translations
    return as_json(
        {
            "log_prob": round(pair.log_prob, 4) if math.isfinite(pair.log_prob) else None,
            "num_tokens": num_scored(pair),
            "tokens": pair.tokens,
            "source_tokens": pair.source_tokens,
            "links": None if pair.heaviest is None else pair.links(),
            "unknown": pair.unknown,
            "unknown_target": unknown_target(translator, pair),
        }
    )


def num_scored(pair: Translation) -> int:
    """The number of target tokens with `<eos>`; 0 for a pair with a blank source, which is not scored."""
    return len(pair.tokens) + 1 if len(pair.source_tokens) > 1 else 0


def unknown_target(translator: Translator, pair: Translation) -> list[int]:
    """The positions of target tokens that are scored as `<unk>`: not those of the source, if the output copies."""
    ids = translator.target_vocab.ids_of(pair.tokens)
    if isinstance(translator.model, Seq2Seq) and translator.model.output.copies_source:
        source = translator.target_tokenizer.spell_source(pair.source_tokens[:-1])
        ids = list(extended_ids(source, pair.tokens, translator.target_vocab).target)
    return [position for position, number in enumerate(ids) if number == UNK]


class _Totals(Writer):
    """Perplexity, with warnings about unknown tokens and blank sources."""

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self._log_probs: list[float] = []
        self._num_tokens = self._num_unknown = self._num_blank = 0

    def write(self, number: int, line: str, translations: list[Translation]) -> None:
        """See `Writer`."""
        [pair] = translations
        self._log_probs.append(pair.log_prob)
        self._num_tokens += num_scored(pair)
        self._num_unknown += len(unknown_target(self._translator, pair))
        self._num_blank += not num_scored(pair)

    def report(self) -> None:
        """Write to the log."""
        if self._num_unknown:
            message = "%d of %d target tokens are unknown to this run and were scored as <unk>"
            log.warning(message, self._num_unknown, self._num_tokens)
        num_pairs = len(self._log_probs)
        if self._num_blank:
            log.warning("%d of %d pairs have a blank source and were not scored", self._num_blank, num_pairs)
        nll = -math.fsum(self._log_probs) / max(1, self._num_tokens)
        perplexity = math.inf if nll >= 700 else math.exp(nll)
        message = "%d pairs, %d target tokens with <eos>: %.4f nats per token, perplexity %.4f"
        log.info(message, num_pairs - self._num_blank, self._num_tokens, nll, perplexity)


class _LinkScores(Writer):
    """The attention of the pairs against gold links."""

    def __init__(self, targets: Sequence[str], gold: list[tuple[Link, ...]]) -> None:
        self._targets = targets
        self._gold = gold
        self._weights: list[Weights] = []
        self._between_words = WordWeights()

    def write(self, number: int, line: str, translations: list[Translation]) -> None:
        """See `Writer`."""
        [pair] = translations
        self._weights.append(self._between_words.convert(pair, words_of(line), words_of(self._targets[number])))

    def report(self) -> None:
        """Write to the log."""
        self._between_words.warn()
        scores = GoldAttention(self._weights, self._gold).scores()
        for shift, assumption in _SHIFTED.items():
            score = scores[shift]
            if math.isnan(score.mass):  # shifted, no link is left
                continue
            rates = (score.error_rate, score.precision, score.recall, score.mass)
            log.info("links%s: AER %.3f, precision %.3f, recall %.3f, weight on gold links %.3f", assumption, *rates)


def _find_pairs(
    pairs: str | None, source: Path | None, target: Path | None, run: str | Path | None, links: Path | None
) -> tuple[Text, RunDir]:
    """The text to score, and the run that scores it."""
    if (pairs is None) == (source is None) or (source is None) != (target is None):
        raise UsageError("expected the pairs as one TEXT, or as --source FILE --target FILE")
    run_dir = RunDir(run) if run is not None else newest_run()
    if run is None:
        log.info("model: %s", run_dir.path)
    data = run_dir.config().data
    if links is not None and VECTORS in data.sources:
        raise UsageError(
            f"--links {links}: alignments are between words, and {run_dir.path} reads vectors; leave it out"
        )
    if pairs is not None:
        return find_text(pairs, *data.sources, data.target_language), run_dir
    return find_text([str(source), str(target)], data.source_name, data.target_language), run_dir


def _read(text: Text, *, reads_one_source: bool) -> tuple[list[str], list[str]]:
    pairs = list(text.pairs())
    if not pairs:
        raise UserError(f"{text.paths[0]}: no pairs to score; the file is empty")
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    if reads_one_source:
        warn_about_tabs(str(text.paths[0]), sum(SOURCE_END in source for source in sources))
    return sources, targets


def _read_links(path: Path, sources: Sequence[str], targets: Sequence[str]) -> list[tuple[Link, ...]]:
    lines = read_lines(path)
    if len(lines) != len(sources):
        raise UserError(f"{path}: {len(lines)} lines of links for {len(sources)} pairs; give one line for each pair")
    numbered = enumerate(zip(lines, sources, targets, strict=True), 1)
    return [
        parse_links(path, number, line, len(words_of(source)), len(words_of(target)))
        for number, (line, source, target) in numbered
    ]
