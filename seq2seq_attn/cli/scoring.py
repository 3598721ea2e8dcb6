"""The `score` command: forced decoding of given pairs for log-probability, attention and links."""

import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from seq2seq_attn.cli.options import Format
from seq2seq_attn.cli.streams import STREAM, check_files, open_output
from seq2seq_attn.cli.writers import (
    as_json,
    attention_outputs,
    check_attention,
    line_writer,
    open_attention_writers,
    write_lines,
)
from seq2seq_attn.data.links import parse_links
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.attention import word_weights
from seq2seq_attn.metrics.attention import AlignmentScore, score_shifts
from seq2seq_attn.run import Run, newest_run
from seq2seq_attn.runtime.memory import paused_collector, suggest_smaller_batch
from seq2seq_attn.text.corpus import Text, find_text
from seq2seq_attn.text.lines import read_lines, warn_about_tabs
from seq2seq_attn.text.links import Link, words_of
from seq2seq_attn.text.vocab import UNK, extended_ids
from seq2seq_attn.translate.load import load
from seq2seq_attn.translate.scoring import force_decode
from seq2seq_attn.translate.translation import Translation
from seq2seq_attn.translate.translator import Translator

log = logging.getLogger(__name__)

_SHIFTED = {
    0: "",
    1: ", with the weights of the next target step",
    -1: ", with the weights of the previous step",
}


class PairScore(NamedTuple):
    """A pair that was read by the model."""

    log_prob: float
    """in nats"""
    num_tokens: int
    """target tokens with `<eos>`; 0 for a pair with a blank source, which is not scored"""
    unknown_target: list[int]
    """the positions of target tokens that are scored as `<unk>`: not those of the source, if the
    output copies"""


def score_pairs(
    pairs: str | None = None,
    *,
    source: Path | None = None,
    target: Path | None = None,
    run: Sequence[Path] = (),
    links: Path | None = None,
    alignment: Path | None = None,
    attention: Sequence[Path] = (),
    format: Format = "text",
    device: str = "auto",
    batch_size: int | None = None,
) -> None:
    """Write one line per pair to standard output: the natural logarithm of the target's probability
    given its source, a tab, and the number of target tokens. Both include `<eos>`. The arguments
    are the options of the command.

    Raises:
        UsageError: options contradict each other or need attention that the model does not have.
        UserError: a run or file cannot be read, or a file cannot be written.
    """
    files = attention_outputs(alignment, attention)
    text, run_dir = _find_pairs(pairs, source, target, run, links)
    check_files([*text.paths, *([links] if links else [])], {"the scores": STREAM, **files})
    sources, targets = _read(text, reads_one_source=len(run_dir.config.data.layout.columns) == 1)
    gold = None if links is None else _read_links(links, sources, targets)
    with paused_collector():
        translator = load(run_dir, device)
    check_attention(translator, {**files, "--links": links})
    scores: list[PairScore] = []
    pairs_with_links: list[tuple[Translation, list[str], list[str]]] = []

    def form(number: int, line: str, translations: list[Translation]) -> str:
        pair, score = translations[0], score_pair(translator, translations[0])
        scores.append(score)
        if gold is not None:
            pairs_with_links.append((pair, words_of(line), words_of(targets[number])))
        return (
            _as_json(score, pair)
            if format == "json"
            else f"{score.log_prob:.4f}\t{score.num_tokens}"
        )

    batch_size = batch_size or translator.search.batch_size
    with ExitStack() as stack, suggest_smaller_batch(batch_size):
        out = line_writer(stack.enter_context(open_output(STREAM)), form)
        writers = [out, *open_attention_writers(stack, translator, alignment, attention)]
        decoded = force_decode(translator, sources, targets, batch_size=batch_size)
        write_lines(writers, sources, ([pair] for pair in decoded))
    _log_totals(scores)
    if gold is not None:
        weights = [weights_TS for _, weights_TS in word_weights(pairs_with_links)]
        _log_fit(score_shifts([*zip(weights, gold, strict=True)]))


def score_pair(translator: Translator, pair: Translation) -> PairScore:
    """The score of a pair from forced decoding."""
    ids = translator.target_vocab.ids_of(pair.tokens)
    if translator.copies_source:
        source = translator.target_tokenizer.spell_source(pair.source_tokens[:-1])
        ids = list(extended_ids(source, pair.tokens, translator.target_vocab).target)
    unknown = [position for position, number in enumerate(ids) if number == UNK]
    num_tokens = len(pair.tokens) + 1 if len(pair.source_tokens) > 1 else 0
    return PairScore(pair.log_prob, num_tokens, unknown)


def _as_json(score: PairScore, pair: Translation) -> str:
    return as_json(
        {
            "log_prob": round(score.log_prob, 4),
            "num_tokens": score.num_tokens,
            "tokens": pair.tokens,
            "source_tokens": pair.source_tokens,
            "links": None if pair.heaviest is None else pair.links(),
            "unknown": pair.unknown,
            "unknown_target": score.unknown_target,
        }
    )


def _log_totals(scores: Sequence[PairScore]) -> None:
    """Log the perplexity, and warn of unknown tokens and blank sources."""
    num_tokens = sum(score.num_tokens for score in scores)
    if num_unknown := sum(len(score.unknown_target) for score in scores):
        message = "%d of %d target tokens are unknown to this run and were scored as <unk>"
        log.warning(message, num_unknown, num_tokens)
    if num_blank := sum(not score.num_tokens for score in scores):
        log.warning(
            "%d of %d pairs have a blank source and were not scored", num_blank, len(scores)
        )
    nll = -math.fsum(score.log_prob for score in scores) / max(1, num_tokens)
    perplexity = math.inf if nll >= 700 else math.exp(nll)
    message = "%d pairs, %d target tokens with <eos>: %.4f nats per token, perplexity %.4f"
    if num_tokens:
        log.info(message, len(scores) - num_blank, num_tokens, nll, perplexity)


def _log_fit(scores: Mapping[int, AlignmentScore]) -> None:
    for shift, assumption in _SHIFTED.items():
        score = scores[shift]
        if not math.isnan(score.mass):  # otherwise no link is left after the shift
            rates = (score.error_rate, score.precision, score.recall, score.mass)
            log.info(
                "links%s: AER %.3f, precision %.3f, recall %.3f, weight on gold links %.3f",
                assumption,
                *rates,
            )


def _find_pairs(
    pairs: str | None,
    source: Path | None,
    target: Path | None,
    run: Sequence[Path],
    links: Path | None,
) -> tuple[Text, Run]:
    """The text to score, and the run that scores it."""
    if (pairs is None) == (source is None) or (source is None) != (target is None):
        raise UsageError("expected the pairs as one TEXT, or as --source FILE --target FILE")
    if len(run) > 1:
        raise UsageError(
            f"--run given {len(run)} times: score takes one run, not an ensemble; score each run "
            "by itself"
        )
    run_dir = Run.open(run[0]) if run else newest_run()
    if not run:
        log.info("model: %s", run_dir.path)
    data = run_dir.config.data
    if not data.layout.columns:
        raise UsageError(
            f"{run_dir.path}: a language model, which reads no source; name a run that translates"
        )
    if links is not None and data.layout.vector_column is not None:
        raise UsageError(
            f"--links {links}: alignments are between words, and {run_dir.path} reads vectors; "
            "leave it out"
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
        warn_about_tabs(f"{text.paths[0]}: ", sum("\t" in source for source in sources))
    return sources, targets


def _read_links(
    path: Path, sources: Sequence[str], targets: Sequence[str]
) -> list[tuple[Link, ...]]:
    lines = read_lines(path)
    if len(lines) != len(sources):
        raise UserError(
            f"{path}: {len(lines)} lines of links for {len(sources)} pairs; give one line for each "
            "pair"
        )
    numbered = enumerate(zip(lines, sources, targets, strict=True), 1)
    return [
        parse_links(path, number, line, len(words_of(source)), len(words_of(target)))
        for number, (line, source, target) in numbered
    ]
