"""Translate strings. The Python API, `translate`, `evaluate` and validation in training all use this module.

>>> translator = load()  # the run that finished last           # doctest: +SKIP
>>> translator.translate(["Der kleine Hund, den die Frau sieht, schläft heute."])[0].text  # doctest: +SKIP
'The small dog that the woman sees is sleeping today.'

A line with more tokens than the run's `data.max_length` is split into segments, if possible at sentence ends. They are
translated separately and joined by spaces, so lines of any length need no more memory than a batch. A line is
never split if its target consists of source positions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.data.surface import POSITIONS, Ids, spell_source, surface_of_tokens
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run_dir import ModelInfo, RunDir, newest_run
from seq2seq_attn.runtime.cpus import Load
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.runtime.precision import translation_precision
from seq2seq_attn.runtime.threads import Watch, choose_threads
from seq2seq_attn.search.beam import beam_search
from seq2seq_attn.search.greedy import greedy_search
from seq2seq_attn.search.hypothesis import Hypothesis, StepModel
from seq2seq_attn.search.options import AS_CONFIGURED, SearchOptions, Unk
from seq2seq_attn.search.sample import sample_search
from seq2seq_attn.search.steps import step_model, weights_version
from seq2seq_attn.text.tokenizers.base import Tokenizer
from seq2seq_attn.text.tokenizers.several import num_sources
from seq2seq_attn.text.vocab import BOS, UNK, Vocab
from seq2seq_attn.translate.attention_map import heaviest_token
from seq2seq_attn.translate.batching import (
    batches_by_length,
    chunks,
    collate_tokens,
    eval_mode,
    list_of_lines,
    unknown_positions,
    watched,
)
from seq2seq_attn.translate.ensemble import load_models
from seq2seq_attn.translate.mbr import least_risk
from seq2seq_attn.translate.translation import (
    EOS_TOKEN,
    Translation,
    distinct,
    empty_translation,
    join_n_best,
    split_line,
)

__all__ = ["SearchOptions", "Translation", "Translator", "Unk", "load"]


class _Segment(NamedTuple):
    """The part of a line that is translated at once."""

    line: int
    """its index"""
    source: list[str]
    prefix: Sequence[str]
    """tokens that its translation begins with"""


class Translator:
    """A model with its tokenizers and vocabularies."""

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
        """`model`: a `Seq2Seq`, or another `StepModel` such as an ensemble. `search`: settings for options that a call
        does not give. `max_source_length`: the maximum number of source tokens (without EOS) in a segment.
        `precision`: as in `load`. `watch`: checked before each batch. `infos`: one for each loaded model.
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
        self._prepared: tuple[list[Any], StepModel[Any]] | None = None

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
            state = self.model.start(self._collate([[""]]), 1)
            tokens, _ = self.model.step(torch.tensor([BOS], device=self.device), state)
            return tokens.weights_RS is not None

    def translate(
        self,
        texts: Iterable[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        max_length_ratio: float | None = None,
        batch_size: int | None = None,
        unk: Unk = "keep",
        keep_attention: bool = True,
        **more: Any,
    ) -> list[Translation]:
        """The best translation of each line, in order. The translation of a blank line is empty.

        Args:
            texts: lines, in a list or any other iterable; line breaks inside count as spaces, tabs separate sources;
                vectors are named by their file.
            beam_size: hypotheses kept per line; 1 is greedy search. None: as configured in the run.
            length_penalty: exponent a of the score log_prob / length ** a; 0: none. None: as configured.
            max_length_ratio: the maximum number of target tokens per source token, to which the configured
                `max_length_extra` is added. Translations cut there have `is_cut` set. None: as configured.
            batch_size: sentences translated at once; changes speed and memory only. None: as configured.
            unk: what to do with `<unk>` in a translation; `copy` needs a model with attention over source positions. A
                model whose output copies can write source tokens in any case.
            keep_attention: False leaves `attention` out, which saves a little time.
            more: other fields of `SearchOptions`, for example `prefix="A man"` or `method="sample"`.

        Raises:
            UsageError: a value is not allowed, or `unk="copy"` with a model without such attention.
        """
        if n_best := more.get("n_best"):
            raise TypeError(f"translate gives one translation per line; use translate_n_best(texts, n_best={n_best})")
        options = SearchOptions.given(
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_length_ratio=max_length_ratio,
            batch_size=batch_size,
            unk=unk,
            keep_attention=keep_attention,
            **more,
        )
        lines = list_of_lines(texts, "texts", "translate([text])")
        return [translations[0] for translations in self.translate_lines(lines, options)]

    def translate_n_best(self, texts: Iterable[str], *, n_best: int, **options: Any) -> list[list[Translation]]:
        """Up to `n_best` translations of each line, best first and different as token sequences; otherwise as
        `translate`. `n_best` is at most the beam size. With `method="sample"`, `n_best` samples, which may be equal."""
        lines = list_of_lines(texts, "texts", f"translate_n_best([text], n_best={n_best})")
        return list(self.translate_lines(lines, SearchOptions.given(n_best=n_best, **options)))

    def score(
        self, sources: Iterable[str], targets: Iterable[str], *, batch_size: int | None = None
    ) -> list[Translation]:
        """Forced decoding: each target as a translation of its source, with the model's log-probability and attention
        (`scoring.force_decode`)."""
        from seq2seq_attn.translate.scoring import force_decode

        return list(force_decode(self, sources, targets, batch_size=batch_size))

    def translate_lines(
        self, lines: Iterable[str], options: SearchOptions = AS_CONFIGURED
    ) -> Iterator[list[Translation]]:
        """`translate_n_best` for the lines of any iterable, in bounded memory."""
        options = self._resolve(options)
        pieces = chunks(lines, num_results=options.n_best)
        return (translations for piece in pieces for translations in self._translate_chunk(piece, options))

    def _resolve(self, options: SearchOptions) -> SearchOptions:
        options = options.over(self.search)
        if options.unk == "copy" and not self.has_attention:
            raise UsageError(
                "unk='copy': this model has no attention over source positions to copy by; use 'keep' or 'forbid'"
            )
        if options.coverage_penalty and not self.has_attention:
            raise UsageError(
                f"coverage_penalty={options.coverage_penalty:g}: this model has no attention over source positions; "
                "use coverage_penalty=0"
            )
        return options

    def _translate_chunk(self, lines: Sequence[str], options: SearchOptions) -> list[list[Translation]]:
        """The translations of each line: split lines into segments, translate these in batches by length, and join
        them."""
        prefix = self.target_tokenizer.tokenize(options.prefix)
        segments = [
            _Segment(index, tokens, [] if rank else prefix)
            for index, line in enumerate(self.source_tokenizer.tokenize_many(lines))
            if line
            for rank, tokens in enumerate(self._split(line))
        ]
        of_segment: list[list[Translation]] = [[] for _ in segments]
        with eval_mode(self.model):
            model = self._step_model()
            num_segments = max(1, options.batch_size // options.samples_per_sentence)
            batches = batches_by_length([len(segment.source) for segment in segments], num_segments)
            for batch_indices in watched(batches, self.watch):
                batch = self._translate_batch(model, [segments[index] for index in batch_indices], options)
                for index, translations in zip(batch_indices, batch, strict=True):
                    of_segment[index] = translations
        of_line: dict[int, list[list[Translation]]] = defaultdict(list)
        for segment, translations in zip(segments, of_segment, strict=True):
            of_line[segment.line].append(translations)
        blank = empty_translation(options.keep_attention and self.has_attention)
        return [join_n_best(of_line[n], self._num_sources) if n in of_line else [blank] for n in range(len(lines))]

    def _split(self, line: Sequence[str]) -> list[list[str]]:
        """The segments of a line; one if the target is numbers of source positions, which count from its start."""
        whole = self.target_tokenizer.name == POSITIONS
        return split_line(line, len(line) if whole else self._max_source_length, self._num_sources)

    def _collate(self, lines: Sequence[Sequence[str]], surfaces: Sequence[Ids] | None = None) -> SourceBatch:
        return collate_tokens(lines, self.source_tokenizer, self.source_vocab, surfaces).to(self.device)

    def _step_model(self) -> StepModel[Any]:
        """The model with its weights prepared for search, again after they have changed; a change through
        `Parameter.data` goes unnoticed, as it does in autograd."""
        if not isinstance(self.model, Seq2Seq):
            return self.model
        version = weights_version(self.model)
        if self._prepared is None or self._prepared[0] != version:
            with torch.inference_mode():
                self._prepared = version, step_model(self.model, self._precision)
        return self._prepared[1]

    def _translate_batch(
        self, model: StepModel[Any], segments: Sequence[_Segment], options: SearchOptions
    ) -> list[list[Translation]]:
        of_segment = [
            [self._translation(segment, hypothesis, options) for hypothesis in best]
            for segment, best in zip(segments, self._search_batch(model, segments, options), strict=True)
        ]
        if options.method == "mbr":
            return [least_risk(samples, options.n_best) for samples in of_segment]
        return [distinct(best) for best in of_segment] if options.method == "beam" else of_segment

    def _search_batch(
        self, model: StepModel[Any], segments: Sequence[_Segment], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each segment, best first; of samples, in the order in which they were drawn."""
        num_rows = options.samples_per_sentence
        rows = [segment for segment in segments for _ in range(num_rows)]
        surfaces = [
            surface_of_tokens(spell_source(row.source, self.target_tokenizer), row.prefix, self.target_vocab)
            for row in rows
        ]
        batch = self._collate([row.source for row in rows], [surface.source for surface in surfaces])
        prefixes = [list(surface.target) for surface in surfaces]
        max_lengths_B = [len(row.prefix) + options.max_length(len(row.source)) for row in rows]
        if options.method != "beam":
            numbers_B = list(range(num_rows)) * len(segments)
            samples = sample_search(
                model, batch, options, numbers_B=numbers_B, max_lengths_B=max_lengths_B, prefixes=prefixes
            )
            return [samples[first : first + num_rows] for first in range(0, len(rows), num_rows)]
        if options.beam_size == 1 and not options.coverage_penalty:
            hypotheses = greedy_search(model, batch, options, max_lengths_B=max_lengths_B, prefixes=prefixes)
            return [[hypothesis] for hypothesis in hypotheses]
        return beam_search(model, batch, options, max_lengths_B=max_lengths_B, prefixes=prefixes)

    def _translation(self, segment: _Segment, hypothesis: Hypothesis, options: SearchOptions) -> Translation:
        source, spelled = segment.source, spell_source(segment.source, self.target_tokenizer)
        tokens = self.target_vocab.tokens_of(hypothesis.ids, beyond=spelled)
        weights_TS = hypothesis.weights_TS
        heaviest = None if weights_TS is None else weights_TS[: len(tokens)].argmax(axis=1).tolist()
        if options.unk == "copy" and weights_TS is not None:
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
            attention=weights_TS if options.keep_attention else None,
            is_finished=hypothesis.is_finished,
            heaviest=heaviest,
            is_cut=hypothesis.is_cut,
            unknown=unknown_positions(source, self.source_vocab),
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
