"""Translate strings. The Python API, `translate`, `evaluate` and validation in training all use this module.

>>> translator = load()  # the run that finished last           # doctest: +SKIP
>>> translator.translate(["Der kleine Hund, den die Frau sieht, schläft heute."])[0].text  # doctest: +SKIP
'The small dog that the woman sees is sleeping today.'

A line with more tokens than the run's `data.max_length` is split into segments, if possible at sentence ends. They are
translated separately and joined by spaces, so lines of any length need no more memory than a batch. A line is
never split if its target consists of source positions.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.variants import SCORER, build_variant
from seq2seq_attn.run_dir import ModelInfo, RunDir, newest_run
from seq2seq_attn.runtime.cpus import Load
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.runtime.precision import translation_precision
from seq2seq_attn.runtime.threads import Watch, choose_threads
from seq2seq_attn.search.base import (
    Hypothesis,
    Scorer,
    Search,
    SearchSource,
    StepModel,
    find_search,
)
from seq2seq_attn.search.steps import step_model
from seq2seq_attn.text.tokenizers.base import PositionTokenizer, Tokenizer
from seq2seq_attn.text.tokenizers.several import find_vector_source, num_sources
from seq2seq_attn.text.vocab import BOS, UNK, Vocab, extended_ids
from seq2seq_attn.translate.attention_map import heaviest_token
from seq2seq_attn.translate.batching import (
    batches_by_length,
    chunks,
    eval_mode,
    list_of_lines,
    read_line_vectors,
    unknown_positions,
)
from seq2seq_attn.translate.ensemble import load_models
from seq2seq_attn.translate.translation import (
    EOS_TOKEN,
    Translation,
    distinct,
    empty_translation,
    join_n_best,
    split_line,
)

__all__ = ["Translation", "Translator", "load"]

log = logging.getLogger(__name__)


class _Segment(NamedTuple):
    """The part of a line that is translated at once."""

    number: int
    """index of the line"""
    line: str
    source: list[str]
    prefix: Sequence[str]
    """tokens that its translation begins with"""


class _Plan(NamedTuple):
    """How segments are translated."""

    search: Search
    options: SearchConfig
    scorers: Sequence[Scorer]
    keep_attention: bool


class Translator:
    """A model with its tokenizers and vocabularies. It is not thread-safe: give each thread its own."""

    def __init__(
        self,
        model: Seq2Seq | StepModel[Any],
        *,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        source_vocab: Vocab,
        target_vocab: Vocab,
        search: SearchConfig,
        device: torch.device,
        max_source_length: int = 100,
        precision: str = "auto",
        watch: Watch | None = None,
        infos: Sequence[ModelInfo] = (),
    ) -> None:
        """`model`: a `Seq2Seq`, whose weights stay as they are from the first translation on, or another `StepModel`
        such as an ensemble. `search`: settings for options that a call does not give. `max_source_length`: the maximum
        number of source tokens (without EOS) in a segment. `precision`: as in `load`. `watch`: checked before each
        batch. `infos`: one for each loaded model.
        """
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.source_vocab = source_vocab
        self.target_vocab = target_vocab
        self.search = search
        self.device = device
        self._num_sources = num_sources(source_tokenizer)
        self._max_source_length = max(1, max_source_length)
        self._precision = translation_precision(precision, device)
        self.watch = watch
        self.infos = infos
        self._copies = isinstance(target_tokenizer, PositionTokenizer) or not (
            isinstance(model, Seq2Seq) and not model.output.copies_source
        )
        self._others: dict[str, Translator] = {}  # runs that scorers read

    def __repr__(self) -> str:
        sizes = f"{len(self.source_vocab):,} source and {len(self.target_vocab):,} target types"
        return f"Translator({type(self.model).__name__}, {sizes}, {self.device}, {self._precision})"

    def with_max_source_length(self, max_source_length: int) -> Translator:
        """The same translator with another maximum length of segments."""
        other = copy(self)
        other._max_source_length = max(1, max_source_length)
        return other

    @cached_property
    def has_attention(self) -> bool:
        """Whether translations come with attention over source positions; not with a fixed vector, for example."""
        if isinstance(self.model, Seq2Seq):
            return self.model.has_attention
        with torch.inference_mode():
            vectors = find_vector_source(self.source_tokenizer)
            rows = None if vectors is None else [np.zeros((1, vectors[1]), dtype=np.float32)]
            source = collate_source([[UNK]], None, rows)
            state = self.model.start(source.to(self.device), 1)
            tokens, _ = self.model.step(torch.tensor([BOS], device=self.device), state)
            return tokens.weights_RS is not None

    def translate(self, texts: Iterable[str], *, keep_attention: bool = True, **options: Any) -> list[Translation]:
        """The best translation of each line, in order. The translation of a blank line is empty.

        Args:
            texts: lines, in a list or any other iterable; line breaks inside count as spaces, tabs separate sources;
                vectors are named by their file.
            keep_attention: False leaves `attention` out, which saves a little time.
            options: options of the search, for example `beam_size=1`, `prefix="A man"`, `unk="copy"` or
                `method="sample"` (docs/configuration.md, section `search`); those of the run where a call has none.

        Raises:
            UsageError: an option is unknown or not allowed, or `unk="copy"` with a model without attention over source
                positions.
        """
        if n_best := options.get("n_best"):
            raise TypeError(f"translate gives one translation per line; use translate_n_best(texts, n_best={n_best})")
        lines = list_of_lines(texts, "texts", "translate([text])")
        return [best for best, *_ in self.translate_lines(lines, keep_attention=keep_attention, **options)]

    def translate_n_best(self, texts: Iterable[str], *, n_best: int, **options: Any) -> list[list[Translation]]:
        """Up to `n_best` translations of each line, best first and different as token sequences; otherwise as
        `translate`. `n_best` is at most the beam size. With `method="sample"`, `n_best` samples, which may be equal."""
        lines = list_of_lines(texts, "texts", f"translate_n_best([text], n_best={n_best})")
        return list(self.translate_lines(lines, n_best=n_best, **options))

    def score(
        self, sources: Iterable[str], targets: Iterable[str], *, batch_size: int | None = None
    ) -> list[Translation]:
        """Forced decoding: each target as a translation of its source, with the model's log-probability and attention
        (`scoring.force_decode`)."""
        from seq2seq_attn.translate.scoring import force_decode

        return list(force_decode(self, sources, targets, batch_size=batch_size))

    def search_options(self, options: Mapping[str, object]) -> SearchConfig:
        """The options of a search: those given, and the run's for the rest. Raises UsageError as `translate`."""
        return find_search(self.search, options)[1]

    def translate_lines(
        self, lines: Iterable[str], *, keep_attention: bool = True, **options: Any
    ) -> Iterator[list[Translation]]:
        """`translate_n_best` for the lines of any iterable, in bounded memory; `n_best` as configured."""
        search, values = find_search(self.search, options)
        if values.unk == "copy" and not self.has_attention:
            raise UsageError(
                "unk='copy': this model has no attention over source positions to copy by; use 'keep' or 'forbid'"
            )
        scorers = [
            build_variant(SCORER, name, own, load_steps=self._load_steps) for name, own in values.scorers.items()
        ]
        plan = _Plan(search, values, scorers, keep_attention and self.has_attention)
        pieces = chunks(lines, num_results=values.n_best)
        return (translations for piece in pieces for translations in self._translate_chunk(piece, plan))

    def _translate_chunk(self, lines: Sequence[str], plan: _Plan) -> list[list[Translation]]:
        """The translations of each line: split lines into segments, translate these in batches by length, and join
        them."""
        prefix = self.target_tokenizer.tokenize(plan.options.prefix)
        segments = [
            _Segment(index, lines[index], tokens, [] if rank else prefix)
            for index, line_tokens in enumerate(self.source_tokenizer.tokenize_many(lines))
            if line_tokens
            for rank, tokens in enumerate(self._split(line_tokens))
        ]
        by_segment: list[list[Translation]] = [[] for _ in segments]
        num_segments = max(1, plan.options.batch_size // plan.options.rows_per_sentence)
        with eval_mode(self.model):
            for indices in batches_by_length([len(segment.source) for segment in segments], num_segments):
                if self.watch is not None:
                    self.watch.check()
                batch = self._translate_batch([segments[index] for index in indices], plan)
                for index, translations in zip(indices, batch, strict=True):
                    by_segment[index] = translations
        by_line: dict[int, list[list[Translation]]] = defaultdict(list)
        for segment, translations in zip(segments, by_segment, strict=True):
            by_line[segment.number].append(translations)
        blank = empty_translation(plan.keep_attention)
        return [join_n_best(by_line[n], self._num_sources) if n in by_line else [blank] for n in range(len(lines))]

    def _split(self, line: Sequence[str]) -> list[list[str]]:
        """The segments of a line. A target of source positions is not split: they count from the start of the line."""
        whole = isinstance(self.target_tokenizer, PositionTokenizer)
        return split_line(line, len(line) if whole else self._max_source_length, self._num_sources)

    @cached_property
    def _steps(self) -> StepModel[Any]:
        """The model with its weights prepared for search."""
        if not isinstance(self.model, Seq2Seq):
            return self.model
        with torch.inference_mode():
            return step_model(self.model, self._precision)

    def _load_steps(self, run: str, line: str) -> tuple[StepModel[Any], list[int], int]:
        """The steps of another run, the ids of a source line in it, and the number of target ids, for a scorer."""
        other = self._others[run] if run in self._others else load(run, str(self.device), precision=self._precision)
        self._others[run] = other
        if other.target_vocab != self.target_vocab:
            raise UsageError(f"{run}: another target vocabulary than that of the run that translates")
        return other._steps, other.source_vocab.ids_of(other.source_tokenizer.tokenize(line)), len(other.target_vocab)

    def _translate_batch(self, segments: Sequence[_Segment], plan: _Plan) -> list[list[Translation]]:
        source = self._source(segments, plan)
        best = [
            [self._translation(segment, hypothesis, plan) for hypothesis in hypotheses]
            for segment, hypotheses in zip(segments, plan.search(self._steps, source, plan.options), strict=True)
        ]
        # copying may make hypotheses equal; samples may be equal from the start
        return best if plan.options.rows_per_sentence > 1 else [distinct(translations) for translations in best]

    def _source(self, segments: Sequence[_Segment], plan: _Plan) -> SearchSource:
        sources = [segment.source for segment in segments]
        prefixes, spelled = [self.target_vocab.ids_of(segment.prefix) for segment in segments], None
        if self._copies:
            spell = self.target_tokenizer.spell_source
            pairs = [extended_ids(spell(segment.source), segment.prefix, self.target_vocab) for segment in segments]
            prefixes, spelled = [[*pair.target] for pair in pairs], [pair.source for pair in pairs]
        ids = [*map(self.source_vocab.ids_of, sources)]
        vectors = read_line_vectors([segment.line for segment in segments], sources, self.source_tokenizer)
        batch = collate_source(ids, spelled, vectors)
        return SearchSource(
            batch.to(self.device),
            [len(segment.prefix) + plan.options.max_length(len(segment.source)) for segment in segments],
            prefixes,
            plan.scorers,
            keeps_weights=plan.keep_attention or plan.options.unk == "copy",
            to_ids=lambda text: self.target_vocab.ids_of(self.target_tokenizer.tokenize(text)),
            to_text=lambda row, hypothesis: self._translation(segments[row], hypothesis, plan).text,
        )

    def _translation(self, segment: _Segment, hypothesis: Hypothesis, plan: _Plan) -> Translation:
        source = segment.source
        spelled = self.target_tokenizer.spell_source(source) if self._copies else source
        tokens = self.target_vocab.tokens_of(hypothesis.ids, beyond=spelled)
        weights_TS = hypothesis.weights_TS
        heaviest = None if weights_TS is None else weights_TS[: len(tokens)].argmax(axis=1).tolist()
        if plan.options.unk == "copy" and weights_TS is not None:
            for position, token_id in enumerate(hypothesis.ids):
                if token_id == UNK:
                    tokens[position] = heaviest_token(spelled, weights_TS[position])
        tokens[: len(segment.prefix)] = segment.prefix  # also where the vocabulary lacks them
        return Translation(
            text=self.target_tokenizer.detokenize(tokens),
            tokens=tokens,
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            source_tokens=[*source, EOS_TOKEN],
            attention=weights_TS if plan.keep_attention else None,
            is_finished=hypothesis.is_finished,
            heaviest=heaviest,
            is_cut=hypothesis.is_cut,
            unknown=unknown_positions(source, self.source_vocab, self.source_tokenizer),
        )


def load(
    run: str | Path | Sequence[str | Path] | None = None, device: str = "auto", *, precision: str = "auto"
) -> Translator:
    """The translator of a run directory, with its best model.

    On a CPU, it chooses torch's number of threads by the model's size and the load of the machine, unless
    OMP_NUM_THREADS or `torch.set_num_threads` has set it (to another number than torch's default).

    Args:
        run: the directory; None: the run in `runs/` that finished last. For a list of several, their ensemble, which
            averages the models' probabilities and uses the first run's search settings.
        device: `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:N`.
        precision: arithmetic of matrix products: `fp32`; `bf16`, faster on hardware that supports it; `int8`, faster on
            most CPUs and only there (with the encoder in bf16 if possible); `auto`: fp32, as the others change BLEU.

    Raises:
        UserError: there is no run, or a file of it is missing, damaged or of another version.
        UsageError: the device does not exist or lacks the precision, or runs differ in tokenizers or vocabularies.
    """
    on_device = resolve_device(device)
    named = [run] if isinstance(run, str | Path) else run
    run_dirs = [newest_run()] if named is None else [RunDir(path) for path in named]
    if named is None:
        log.info("model: %s", run_dirs[0].path)
    machine = Load()
    model, infos = load_models(run_dirs, on_device, translation_precision(precision, on_device))
    num_bytes = max(run.model_path.stat().st_size for run in run_dirs)
    watch = Watch(choose_threads(num_bytes // 4, machine)) if on_device.type == "cpu" else None  # float32
    run_dir, config = run_dirs[0], run_dirs[0].config()
    return Translator(
        model,
        source_tokenizer=run_dir.tokenizer("source"),
        target_tokenizer=run_dir.tokenizer("target"),
        source_vocab=run_dir.vocab("source"),
        target_vocab=run_dir.vocab("target"),
        search=config.search,
        device=on_device,
        max_source_length=config.data.max_length,
        precision=precision,
        watch=watch,
        infos=infos,
    )
