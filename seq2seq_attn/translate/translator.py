"""Strings to strings: what the Python API, `translate`, `evaluate` and training's validation all translate through.

>>> translator = load("runs/multi30k")                          # doctest: +SKIP
>>> translator.translate(["Ein Hund rennt."])[0].text           # doctest: +SKIP
'A dog runs.'

A line of more tokens than the run's `data.max_length` is cut into segments, at sentence ends where there are any, which
are translated one by one and joined by a blank: no line is too long, and none takes more memory than a batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.data.surface import surface_of_tokens
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run_dir import RunDir, newest_run
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.runtime.precision import translation_precision
from seq2seq_attn.search.beam import beam_search
from seq2seq_attn.search.greedy import greedy_search
from seq2seq_attn.search.hypothesis import Hypothesis, StepModel
from seq2seq_attn.search.options import AS_CONFIGURED, SearchOptions, Unk
from seq2seq_attn.search.steps import step_model
from seq2seq_attn.text.tokenizers.base import Tokenizer
from seq2seq_attn.text.vocab import BOS, UNK, Vocab
from seq2seq_attn.translate.batching import batches_by_length, chunks, eval_mode
from seq2seq_attn.translate.ensemble import load_models
from seq2seq_attn.translate.translation import EOS_TOKEN, Translation, empty_translation, join_n_best, split_source

__all__ = ["SearchOptions", "Translation", "Translator", "Unk", "load"]


class Translator:
    """A model with the text processing that belongs to it."""

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
    ) -> None:
        """Put the parts together. `search` gives what a call leaves open; `max_source_length` is the most source tokens
        (without EOS) that the model sees at once; `precision` as in `load`."""
        self._model = model
        self._source_tokenizer = source_tokenizer
        self._target_tokenizer = target_tokenizer
        self._source_vocab = source_vocab
        self._target_vocab = target_vocab
        self._search = search
        self._device = device
        self._max_source_length = max(1, max_source_length)
        self._precision = translation_precision(precision, device)
        self._prepared: tuple[list[tuple[int, int]], StepModel[Any]] | None = None

    def with_max_source_length(self, max_source_length: int) -> Translator:
        """The same, but lines are cut where they have more tokens than this."""
        other = copy(self)
        other._max_source_length = max(1, max_source_length)
        return other

    @property
    def model(self) -> Seq2Seq | StepModel[Any]:
        """What translates; `scoring.py` forces given pairs through it."""
        return self._model

    @property
    def source_tokenizer(self) -> Tokenizer:
        """Text to the tokens that the model sees."""
        return self._source_tokenizer

    @property
    def target_tokenizer(self) -> Tokenizer:
        """Text to the tokens that the model makes."""
        return self._target_tokenizer

    @property
    def source_vocab(self) -> Vocab:
        """Of the source tokens."""
        return self._source_vocab

    @property
    def target_vocab(self) -> Vocab:
        """Of the target tokens."""
        return self._target_vocab

    @property
    def search(self) -> SearchConfig:
        """What a call leaves open."""
        return self._search

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self._device

    @cached_property
    def has_attention(self) -> bool:
        """Whether translations come with attention over source positions; false for the fixed-vector models."""
        if isinstance(self._model, Seq2Seq):
            return self._model.shows_weights
        with torch.inference_mode():
            state = self._model.start(collate_source([[UNK]]).to(self._device), 1)
            tokens, _ = self._model.step(torch.tensor([BOS], device=self._device), state)
            return tokens.weights_RS is not None

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        max_length_ratio: float | None = None,
        batch_size: int | None = None,
        unk: Unk = "keep",
        keep_attention: bool = True,
        n_best: None = None,
    ) -> list[Translation]:
        """The best translation of each line, in order; of a blank line an empty one.

        Args:
            texts: lines; a line break inside one counts as a blank.
            beam_size: hypotheses kept per line; 1 is greedy search. None: as the run's configuration says.
            length_penalty: exponent a of the score log_prob / length ** a; 0: none. None: as configured.
            max_length_ratio: the most target tokens per source token, to which the configured `max_length_extra` is
                added; a translation cut there says so (`is_cut`). None: as configured.
            batch_size: sentences translated at once; changes speed and memory only. None: as configured.
            unk: what to do with `<unk>` in a translation; `copy` needs a model with attention over source positions. A
                model with the output `copy` makes source tokens itself, whatever is said here.
            keep_attention: False leaves `attention` out, which saves a little time.

        Raises:
            UsageError: a value outside what is allowed, or `unk="copy"` with a model that has no such attention.
        """
        if n_best is not None:
            raise TypeError(f"translate gives one translation per line; use translate_n_best(texts, n_best={n_best})")
        options = SearchOptions.given(
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_length_ratio=max_length_ratio,
            batch_size=batch_size,
            unk=unk,
            keep_attention=keep_attention,
        )
        return [translations[0] for translations in self._translate_list(texts, options)]

    def translate_n_best(self, texts: Sequence[str], *, n_best: int, **options: Any) -> list[list[Translation]]:
        """Up to `n_best` different translations of each line, best first; otherwise as `translate`. `n_best` is at most
        the beam size."""
        return self._translate_list(texts, SearchOptions.given(n_best=n_best, **options))

    def _translate_list(self, texts: Sequence[str], options: SearchOptions) -> list[list[Translation]]:
        if isinstance(texts, str | bytes):
            raise TypeError("texts: expected a list of lines, got one string; write translate([text])")
        for place, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"texts[{place}]: expected a string, got {type(text).__name__} {text!r}")
        return list(self.translate_lines(texts, options))

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, batch_size: int | None = None
    ) -> list[Translation]:
        """Forced decoding: each target as a translation of its source, with the model's log-probability and attention
        (`scoring.force_decode`)."""
        from seq2seq_attn.translate.scoring import force_decode

        return list(force_decode(self, sources, targets, batch_size=batch_size))

    def translate_lines(
        self, lines: Iterable[str], options: SearchOptions = AS_CONFIGURED
    ) -> Iterator[list[Translation]]:
        """As `translate_n_best`, line by line out of any iterable, in bounded memory."""
        options = self._resolve(options)
        return (found for chunk in chunks(lines) for found in self._translate_chunk(chunk, options))

    def _resolve(self, options: SearchOptions) -> SearchOptions:
        options = options.over(self._search)
        if options.unk == "copy" and not self.has_attention:
            raise UsageError(
                "unk='copy': this model has no attention over source positions to copy by; use 'keep' or 'forbid'"
            )
        return options

    def _translate_chunk(self, lines: Sequence[str], options: SearchOptions) -> list[list[Translation]]:
        """The translations of each line: cut into segments, sort them by length, translate in batches, put together."""
        segments = [
            (number, tokens)
            for number, line in enumerate(self._source_tokenizer.tokenize_many(lines))
            if line
            for tokens in split_source(line, self._max_source_length)
        ]
        found: list[list[Translation]] = [[] for _ in segments]
        with eval_mode(self._model):
            model = self._step_model()
            for places in batches_by_length([len(tokens) for _, tokens in segments], options.batch_size):
                batch = self._translate_batch(model, [segments[place][1] for place in places], options)
                for place, translations in zip(places, batch, strict=True):
                    found[place] = translations
        of_line: dict[int, list[list[Translation]]] = defaultdict(list)
        for (number, _), translations in zip(segments, found, strict=True):
            of_line[number].append(translations)
        return [join_n_best(of_line[n]) if n in of_line else [self._blank(options)] for n in range(len(lines))]

    def _step_model(self) -> StepModel[Any]:
        """The model with its weights prepared for search: once, and again when training has changed them."""
        if not isinstance(self._model, Seq2Seq):
            return self._model
        # a model made in inference mode cannot be changed in place, and has no version to say so
        versions = [
            (parameter.data_ptr(), 0 if parameter.is_inference() else parameter._version)
            for parameter in self._model.parameters()
        ]
        if self._prepared is None or self._prepared[0] != versions:
            with torch.inference_mode():
                self._prepared = versions, step_model(self._model, self._precision)
        return self._prepared[1]

    def _translate_batch(
        self, model: StepModel[Any], sources: Sequence[list[str]], options: SearchOptions
    ) -> list[list[Translation]]:
        source_ids = [self._source_vocab.ids_of(tokens) for tokens in sources]
        unknown = [tuple(place for place, token_id in enumerate(ids) if token_id == UNK) for ids in source_ids]
        surfaces = [surface_of_tokens(tokens, (), self._target_vocab).source for tokens in sources]
        batch = collate_source(source_ids, surfaces).to(self._device)
        max_lengths_B = [options.max_length(len(tokens)) for tokens in sources]
        if options.beam_size == 1:
            found = greedy_search(model, batch, options, max_lengths_B=max_lengths_B)
            hypotheses = [[hypothesis] for hypothesis in found]
        else:
            hypotheses = beam_search(model, batch, options, max_lengths_B=max_lengths_B)
        return [
            [self._translation(tokens, places, hypothesis, options) for hypothesis in best]
            for tokens, places, best in zip(sources, unknown, hypotheses, strict=True)
        ]

    def _translation(
        self, source: list[str], unknown: tuple[int, ...], hypothesis: Hypothesis, options: SearchOptions
    ) -> Translation:
        tokens = self._target_vocab.tokens_of(hypothesis.ids, beyond=source)
        weights_TS = hypothesis.weights_TS
        heaviest = None if weights_TS is None else weights_TS[: len(tokens)].argmax(axis=1).tolist()
        if options.unk == "copy" and weights_TS is not None:
            for place, token_id in enumerate(hypothesis.ids):
                if token_id == UNK:
                    tokens[place] = source[int(weights_TS[place, : len(source)].argmax())]
        return Translation(
            text=self._target_tokenizer.detokenize(tokens),
            tokens=tokens,
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            source_tokens=[*source, EOS_TOKEN],
            attention=weights_TS if options.keep_attention else None,
            is_finished=hypothesis.is_finished,
            heaviest=heaviest,
            is_cut=hypothesis.is_cut,
            unknown=unknown,
        )

    def _blank(self, options: SearchOptions) -> Translation:
        return empty_translation(options.keep_attention and self.has_attention)


def load(
    run: str | Path | Sequence[str | Path] | None = None, device: str = "auto", *, precision: str = "auto"
) -> Translator:
    """The translator of a run directory, with its best model.

    Args:
        run: the directory; None: the run under `runs/` that finished last. A list of several: their ensemble, which
            takes the mean of the models' probabilities. The first run then gives the search settings.
        device: `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:N`.
        precision: arithmetic of the matrix products: `fp32`; `bf16`, faster on hardware that has it; `int8`, faster on
            most CPUs, where alone it runs (the encoder then in bf16, if the CPU has that); `auto`: fp32, because the
            others change BLEU by a tenth or two, either way.

    Raises:
        UserError: no run there, or a file of it is missing, damaged or of another version.
        UsageError: a device that is not there, a precision that it does not support, or several runs that do not share
            their tokenizers and vocabularies.
    """
    on_device = resolve_device(device)
    named = [run] if isinstance(run, str | Path) else run
    run_dirs = [newest_run()] if named is None else [RunDir(path) for path in named]
    model = load_models(run_dirs, on_device, translation_precision(precision, on_device))
    run_dir = run_dirs[0]
    config = run_dir.config()
    return Translator(
        model,
        source_tokenizer=run_dir.source_tokenizer(),
        target_tokenizer=run_dir.target_tokenizer(),
        source_vocab=run_dir.source_vocab(),
        target_vocab=run_dir.target_vocab(),
        search=config.search,
        device=on_device,
        max_source_length=config.data.max_length,
        precision=precision,
    )
