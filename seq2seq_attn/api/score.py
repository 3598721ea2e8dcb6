"""Score given pairs by forced decoding, for `seq2seq score`.

The scores are log-probabilities. Further results are the attention, its word links, and how well
the attention agrees with gold word links.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from seq2seq_attn.api.streams import STREAM, check_files, open_output
from seq2seq_attn.api.writers import (
    as_json,
    attention_outputs,
    check_attention,
    line_writer,
    open_attention_writers,
    write_lines,
)
from seq2seq_attn.config import DataConfig
from seq2seq_attn.data.links import check_links
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.attention import gold_pairs
from seq2seq_attn.metrics.attention import AlignmentScore, score_shifts
from seq2seq_attn.run import Run, open_runs
from seq2seq_attn.runtime.memory import paused_collector, suggest_smaller_batch
from seq2seq_attn.text.corpus import Text, find_text
from seq2seq_attn.text.lines import read_lines, warn_about_tabs
from seq2seq_attn.text.links import words_of
from seq2seq_attn.text.tables import Damage
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
"""Descriptions of the shifts, in target steps. With a shift of 1, the weights of the step after a
token are compared with the token's gold links."""


def score_pairs(
    pairs: str | None = None,
    *,
    columns: str | None = None,
    source: Path | None = None,
    target: Path | None = None,
    run: Sequence[Path] = (),
    links: Path | None = None,
    alignment: Path | None = None,
    attention: Sequence[Path] = (),
    format: str = "text",
    device: str = "auto",
    batch_size: int | None = None,
) -> None:
    """Write the score of each pair to standard output. The arguments are the options of the
    command.

    A line of text has the natural logarithm of the target's probability given the source, a tab,
    and the number of target tokens. Both numbers include `<eos>`.

    Raises:
        UsageError: options contradict each other or need attention that the model does not have.
        UserError: a run or file cannot be read, or a file cannot be written.
    """
    files = attention_outputs(alignment, attention)
    run_dir = _choose_run(run, links)
    data = run_dir.config.data
    text = _find_pairs(pairs, source, target, data, columns)
    inputs = list(text.paths)
    if links is not None:
        inputs.append(links)
    check_files(inputs, {"the scores": STREAM, **files})
    sources, targets = _read(text, reads_one_source=len(data.layout.columns) == 1)
    gold = None if links is None else _read_links(links, sources, targets)
    with paused_collector():
        translator = load(run_dir, device)
    if links is not None:
        check_attention(translator, "--links", links)
    scores = _Scores(translator, targets, gold, format)
    batch_size = batch_size or translator.search.batch_size
    with ExitStack() as stack, suggest_smaller_batch(batch_size):
        out = line_writer(stack.enter_context(open_output(STREAM)), scores.record)
        writers = [out, *open_attention_writers(stack, translator, files)]
        decoded = force_decode(translator, sources, targets, batch_size=batch_size)
        write_lines(writers, sources, ([pair] for pair in decoded))
    scores.log()


class PairScore(NamedTuple):
    """The score of a pair from forced decoding."""

    log_prob: float
    """The log-probability of the target in nats."""
    num_tokens: int
    """The number of target tokens, `<eos>` included. It is 0 for a pair with a blank source, which
    is not scored."""
    unknown_target: list[int]
    """The positions of target tokens that are scored as `<unk>`. If the output copies source
    tokens, a target token that occurs in the source is not scored as `<unk>`."""


@dataclass
class _Scores:
    """The scores of the pairs so far; and the pairs themselves if there are gold links."""

    translator: Translator
    targets: Sequence[str]
    gold: Sequence[str] | None
    format: str
    pairs: list[PairScore] = field(default_factory=list)
    with_links: list[tuple[Translation, list[str], list[str]]] = field(default_factory=list)

    def record(self, number: int, line: str, translations: list[Translation]) -> str:
        """Score a pair, and return its line of output. This method has the signature of a
        `LineForm`."""
        pair = translations[0]
        score = score_pair(self.translator, pair)
        self.pairs.append(score)
        if self.gold is not None:
            self.with_links.append((pair, words_of(line), words_of(self.targets[number])))
        if self.format == "json":
            return _as_json(score, pair)
        return f"{score.log_prob:.4f}\t{score.num_tokens}"

    def log(self) -> None:
        """Log totals, and how well the attention agrees with the gold links."""
        _log_totals(self.pairs)
        if self.gold is not None:
            _log_fit(score_shifts(gold_pairs(self.with_links, self.gold)))


def score_pair(translator: Translator, pair: Translation) -> PairScore:
    """Return the score of a pair that `force_decode` has read."""
    ids = translator.target_vocab.ids_of(pair.tokens)
    if translator.copies_source:
        source = translator.target_tokenizer.spell_source(pair.source_tokens[:-1])
        ids = list(extended_ids(source, pair.tokens, translator.target_vocab).target)
    unknown = [position for position, number in enumerate(ids) if number == UNK]
    has_source = len(pair.source_tokens) > 1  # besides <eos>
    num_tokens = len(pair.tokens) + 1 if has_source else 0
    return PairScore(pair.log_prob, num_tokens, unknown)


def _as_json(score: PairScore, pair: Translation) -> str:
    """Return the line of output for a pair as a JSON object."""
    return as_json(
        {
            "log_prob": round(score.log_prob, 4),
            "num_tokens": score.num_tokens,
            "tokens": pair.tokens,
            "source_tokens": pair.source_tokens,
            "links": None if pair.heaviest is None else pair.links(),
            "unknown": pair.unknown_positions,
            "unknown_target": score.unknown_target,
        }
    )


def _log_totals(scored: Sequence[PairScore]) -> None:
    """Log the perplexity of all pairs, and warn about unknown tokens and blank sources."""
    num_tokens = 0
    num_unknown = 0
    num_blank = 0
    for score in scored:
        num_tokens += score.num_tokens
        num_unknown += len(score.unknown_target)
        if score.num_tokens == 0:
            num_blank += 1
    if num_unknown:
        log.warning(
            f"{num_unknown} of {num_tokens} target tokens are unknown to this run and were scored "
            "as <unk>"
        )
    if num_blank:
        log.warning(f"{num_blank} of {len(scored)} pairs have a blank source and were not scored")
    if num_tokens:
        nll = -math.fsum(score.log_prob for score in scored) / num_tokens
        perplexity = math.inf if nll >= 700 else math.exp(nll)
        log.info(
            f"{len(scored) - num_blank} pairs, {num_tokens} target tokens with <eos>: {nll:.4f} "
            f"nats per token, perplexity {perplexity:.4f}"
        )


def _log_fit(scores: Mapping[int, AlignmentScore]) -> None:
    """Log how well the attention agrees with the gold links, for each shift in `_SHIFTED`."""
    message = "links%s: AER %.3f, precision %.3f, recall %.3f, weight on gold links %.3f"
    for shift, assumption in _SHIFTED.items():
        score = scores[shift]
        if not math.isnan(score.mass):  # the mass is NaN if the shift leaves no link
            rates = (score.error_rate, score.precision, score.recall, score.mass)
            log.info(message, assumption, *rates)


def _choose_run(run: Sequence[Path], links: Path | None) -> Run:
    """Open the run and return it. Raises UsageError if there are several runs, if the run is a
    language model, or if `links` are given and the run reads vectors."""
    if len(run) > 1:
        raise UsageError(
            f"--run given {len(run)} times: score takes one run, not an ensemble; score each run "
            "by itself"
        )
    [run_dir] = open_runs(run or None)
    layout = run_dir.config.data.layout
    if not layout.columns:
        raise UsageError(
            f"{run_dir.path}: a language model, which reads no source; name a run that translates"
        )
    if links is not None and layout.vector_column is not None:
        raise UsageError(
            f"--links {links}: alignments are between words, and {run_dir.path} reads vectors; "
            "leave it out"
        )
    return run_dir


def _find_pairs(
    pairs: str | None,
    source: Path | None,
    target: Path | None,
    data: DataConfig,
    columns: str | None,
) -> Text:
    """Return the text to score, either `pairs` or the files `source` and `target`. Raises
    UsageError if there is neither or both, and the errors of `find_text`."""
    if pairs is not None and source is None and target is None:
        chosen = columns.split(",") if columns else data.columns
        return find_text(pairs, *data.sources, data.target_language, columns=chosen)
    if pairs is None and source is not None and target is not None:
        return find_text([str(source), str(target)], data.source_name, data.target_language)
    raise UsageError("expected the pairs as one TEXT, or as --source FILE --target FILE")


def _read(text: Text, *, reads_one_source: bool) -> tuple[list[str], list[str]]:
    """Read the source and target lines. Raises UserError if the text is damaged or empty."""
    damage = Damage()
    rows = list(text.pairs(damage))
    if damage.lines:
        raise UserError(f"{text}: {damage.describe()}; correct them, as each row gets a score")
    if not rows:
        raise UserError(f"{text.paths[0]}: no pairs to score; the file is empty")
    first_pair = text.describe_first_pair()
    if first_pair:
        log.info(first_pair)
    sources, targets = map(list, zip(*rows, strict=True))
    if reads_one_source:
        warn_about_tabs(f"{text.paths[0]}: ", sum("\t" in source for source in sources))
    return sources, targets


def _read_links(path: Path, sources: Sequence[str], targets: Sequence[str]) -> list[str]:
    """Read and check the line of gold word links of each pair.

    Raises UserError if the number of lines is wrong, a line is not in Pharaoh format, or a link
    lies outside its pair.
    """
    lines = read_lines(path)
    if len(lines) != len(sources):
        raise UserError(
            f"{path}: expected a line of links for each pair, so {len(sources)}, not {len(lines)}"
        )
    for number, (line, source, target) in enumerate(zip(lines, sources, targets, strict=True), 1):
        sizes = (len(words_of(source)), len(words_of(target)))
        check_links(path, number, line, *sizes)
    return lines
