"""The `score` command: forced decoding of given pairs for log-probability, attention and links."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from seq2seq_attn.cli.streams import STREAM, check_files, open_output
from seq2seq_attn.cli.translation import check_has_attention
from seq2seq_attn.cli.writers import Format, Writer, check_attention_name, open_attention_writers
from seq2seq_attn.data.links import parse_links
from seq2seq_attn.data.surface import spell_source, surface_of_tokens
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.attention import WordWeights
from seq2seq_attn.evaluation.attention_scores import GoldAttention
from seq2seq_attn.metrics.alignment import Weights
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run_dir import RunDir, newest_run
from seq2seq_attn.text.corpus import read_lines
from seq2seq_attn.text.links import Link, words_of
from seq2seq_attn.text.parallel import find_text
from seq2seq_attn.text.parallel_files import Text
from seq2seq_attn.text.tokenizers.base import SOURCE_END, VECTORS
from seq2seq_attn.text.tokenizers.several import warn_of_tabs
from seq2seq_attn.text.vocab import UNK
from seq2seq_attn.translate.batching import explained_batch_size
from seq2seq_attn.translate.scoring import force_decode
from seq2seq_attn.translate.translation import Translation
from seq2seq_attn.translate.translator import Translator, load

log = logging.getLogger(__name__)

_SHIFTED = {0: "", 1: ", with the weights of the next target step", -1: ", with the weights of the previous step"}


@dataclass(frozen=True)
class ScoringRequest:
    """Pairs to score, the run that scores them, and files to write."""

    pairs: str | None = None
    """a prefix, a .tsv or a .jsonl, as for `train --train`, unless `source` and `target` are given"""
    source: Path | None = None
    """one sentence per line, plain or .gz"""
    target: Path | None = None
    """the translation of each"""
    run: str | Path | None = None
    """run directory; None: the run in `runs/` that finished last"""
    links: Path | None = None
    """gold links in Pharaoh format, one line per pair, between words split at spaces and tabs and counted from 0;
    alignment error rate, precision and recall of the attention's links go to the log"""
    alignment: str | Path | None = None
    attention: str | Path | None = None
    """files to write, as in `TranslationRequest`"""
    format: Format = "text"
    """`json` writes an object per line: `log_prob`, `num_tokens`, `tokens`, `source_tokens`, `links`, `unknown`
    (positions of source tokens outside the vocabulary), `unknown_target` (those of target tokens that are scored as
    `<unk>`)"""
    batch_size: int | None = None
    """pairs decoded at once; changes speed and memory only"""
    device: str = "auto"

    @property
    def attention_files(self) -> dict[str, str | Path | None]:
        """The files that attention is written to, by option."""
        return {"alignment": self.alignment, "attention": self.attention}


def score(request: ScoringRequest) -> None:
    """Write one line per pair to standard output: the natural logarithm of the target's probability given its source, a
    tab, and the number of target tokens. Both include `<eos>`. The perplexity goes to the log.

    Raises:
        UsageError: options contradict each other or need attention that the model does not have.
        UserError: a run or file cannot be read, or a file cannot be written.
    """
    if (request.pairs is None) == (request.source is None) or (request.source is None) != (request.target is None):
        raise UsageError("expected the pairs as one TEXT, or as --source FILE --target FILE")
    check_attention_name(request.attention)
    run = RunDir(request.run) if request.run is not None else newest_run()
    if request.run is None:
        log.info("model: %s", run.path)
    sources, targets, gold = _read_inputs(request, run)
    translator = load(run.path, request.device)
    check_has_attention(translator, **request.attention_files, links=request.links)
    summary = _Summary(translator)
    with ExitStack() as stack:
        out = stack.enter_context(open_output(None))
        writers = [
            ScoreWriter(out, request.format, translator),
            *open_attention_writers(stack, **request.attention_files),
        ]
        stack.enter_context(explained_batch_size(request.batch_size or translator.search.batch_size))
        weights: list[Weights] = []
        between_words = WordWeights()
        decoded = force_decode(translator, sources, targets, batch_size=request.batch_size)
        for number, (line, pair) in enumerate(zip(sources, decoded, strict=True)):
            for writer in writers:
                writer.write(number, line, [pair])
            summary.add(pair)
            if gold is not None:
                weights.append(between_words.of(pair, words_of(line), words_of(targets[number])))
        out.flush()
    summary.report()
    between_words.warn()
    if gold is not None:
        _report_links(GoldAttention(weights, gold))


class ScoreWriter(Writer):
    """Log-probability and number of target tokens of each pair."""

    def __init__(self, out: BinaryIO, format: Format, translator: Translator) -> None:
        self._out = out
        self._format = format
        self._translator = translator

    def write(self, number: int, line: str, translations: list[Translation]) -> None:
        """See `Writer`."""
        [pair] = translations
        text = f"{pair.log_prob:.4f}\t{num_scored(pair)}" if self._format == "text" else self._as_json(pair)
        self._out.write(f"{text}\n".encode())

    def _as_json(self, pair: Translation) -> str:
        values = {
            "log_prob": round(pair.log_prob, 4) if math.isfinite(pair.log_prob) else None,
            "num_tokens": num_scored(pair),
            "tokens": pair.tokens,
            "source_tokens": pair.source_tokens,
            "links": None if pair.heaviest is None else pair.links(),
            "unknown": pair.unknown,
            "unknown_target": unknown_target(self._translator, pair),
        }
        return json.dumps(values, ensure_ascii=False, allow_nan=False)


def num_scored(pair: Translation) -> int:
    """The number of target tokens with `<eos>`; 0 for a pair with a blank source, which is not scored."""
    return len(pair.tokens) + 1 if len(pair.source_tokens) > 1 else 0


def unknown_target(translator: Translator, pair: Translation) -> list[int]:
    """The positions of target tokens that are scored as `<unk>`: not those of the source, if the output copies."""
    ids = translator.target_vocab.ids_of(pair.tokens)
    if isinstance(translator.model, Seq2Seq) and translator.model.output.copies_source:
        source = spell_source(pair.source_tokens[:-1], translator.target_tokenizer)
        ids = list(surface_of_tokens(source, pair.tokens, translator.target_vocab).target)
    return [position for position, number in enumerate(ids) if number == UNK]


@dataclass
class _Summary:
    """The totals over all pairs."""

    translator: Translator
    log_probs: list[float] = field(default_factory=list)
    num_tokens: int = 0
    num_unknown: int = 0
    num_blank: int = 0

    def add(self, pair: Translation) -> None:
        """Count a pair."""
        self.log_probs.append(pair.log_prob)
        self.num_tokens += num_scored(pair)
        self.num_unknown += len(unknown_target(self.translator, pair))
        self.num_blank += not num_scored(pair)

    def report(self) -> None:
        """Log the perplexity, with warnings about unknown tokens and blank sources."""
        if self.num_unknown:
            message = "%d of %d target tokens are unknown to this run and were scored as <unk>"
            log.warning(message, self.num_unknown, self.num_tokens)
        if self.num_blank:
            log.warning("%d of %d pairs have a blank source and were not scored", self.num_blank, len(self.log_probs))
        nll = -math.fsum(self.log_probs) / max(1, self.num_tokens)
        perplexity = math.inf if nll >= 700 else math.exp(nll)
        message = "%d pairs, %d target tokens with <eos>: %.4f nats per token, perplexity %.4f"
        log.info(message, len(self.log_probs) - self.num_blank, self.num_tokens, nll, perplexity)


def _report_links(gold: GoldAttention) -> None:
    scores = gold.scores()
    for shift, assumption in _SHIFTED.items():
        alignment_score = scores[shift]
        if math.isnan(alignment_score.mass):  # shifted, no link is left
            continue
        rates = (alignment_score.error_rate, alignment_score.precision, alignment_score.recall, alignment_score.mass)
        log.info("links%s: AER %.3f, precision %.3f, recall %.3f, weight on gold links %.3f", assumption, *rates)


def _read_inputs(request: ScoringRequest, run: RunDir) -> tuple[list[str], list[str], list[tuple[Link, ...]] | None]:
    """Source lines, target lines, and the gold links of each pair, if they are given."""
    data, links = run.config().data, request.links
    if links is not None and VECTORS in data.sources:
        raise UsageError(f"--links {links}: alignments are between words, and {run.path} reads vectors; leave it out")
    if request.pairs is not None:
        text = find_text(request.pairs, *data.sources, data.target_language)
    else:
        text = find_text([str(request.source), str(request.target)], data.source_name, data.target_language)
    inputs = [*text.paths, *([links] if links is not None else [])]
    outputs = {"the scores": STREAM, "--alignment": request.alignment, "--attention": request.attention}
    check_files(inputs, outputs)
    sources, targets = _read(text)
    if len(data.sources) == 1:
        warn_of_tabs(str(text.paths[0]), sum(SOURCE_END in source for source in sources))
    return sources, targets, None if links is None else _read_links(links, sources, targets)


def _read(text: Text) -> tuple[list[str], list[str]]:
    pairs = list(text.pairs())
    if not pairs:
        raise UserError(f"{text.paths[0]}: no pairs to score; the file is empty")
    return [source for source, _ in pairs], [target for _, target in pairs]


def _read_links(path: Path, sources: Sequence[str], targets: Sequence[str]) -> list[tuple[Link, ...]]:
    lines = read_lines(path)
    if len(lines) != len(sources):
        raise UserError(f"{path}: {len(lines)} lines of links for {len(sources)} pairs; give one line for each pair")
    numbered = enumerate(zip(lines, sources, targets, strict=True), 1)
    return [
        parse_links(path, number, line, len(words_of(source)), len(words_of(target)))
        for number, (line, source, target) in numbered
    ]
