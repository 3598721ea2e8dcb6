"""Translate lines of text with a model, its tokenizers and its vocabularies.

The Python API, `translate`, `evaluate` and validation in training all use this module.

If the lines of the training text are single sentences, a line is split into sentences. A line or
sentence with more tokens than the run's `data.max_length` is split into pieces, if possible at
sentence ends. These segments are translated separately, and their translations are joined as the
target language writes them, so lines of any length need no more memory than a batch. A line is
never split if its target consists of source positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch

from seq2seq_attn.config import Config
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.data.line_facts import LineFacts
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run import ModelInfo, Run
from seq2seq_attn.runtime.device import translation_precision
from seq2seq_attn.search import required
from seq2seq_attn.search.base import Hypothesis, SearchSource, StepModel
from seq2seq_attn.search.steps import Ensemble, step_model
from seq2seq_attn.text.glossary import Glossary
from seq2seq_attn.text.sentences import split_line
from seq2seq_attn.text.tokenizers.base import Tokenizer
from seq2seq_attn.text.tokenizers.source import Source
from seq2seq_attn.text.tokenizers.vectors import FloatArray
from seq2seq_attn.text.vocab import UNK, ExtendedIds, Vocab, extended_ids
from seq2seq_attn.translate.marks import translate_marked
from seq2seq_attn.translate.plan import Plan, make_plan
from seq2seq_attn.translate.scoring import force_decode
from seq2seq_attn.translate.segments import (
    Segment,
    SplitLines,
    check_lines,
    chunks,
    distinct,
    empty_translation,
    join_n_best,
    map_in_batches,
    split_lines,
    unknown_positions,
)
from seq2seq_attn.translate.terms import require_terms
from seq2seq_attn.translate.translation import (
    EOS_TOKEN,
    Translation,
    heaviest_token,
    name_unknown,
)
from seq2seq_attn.translate.unknown import unknown_words


class Translator:
    """Translates lines of text. A translator is not thread-safe: load a translator per thread.

    >>> translator = load("runs/quickstart")
    >>> translator.languages
    ('de', 'en')
    """

    def __init__(
        self,
        model: Seq2Seq | Ensemble,
        text: Run | PreparedCorpus,
        config: Config,
        *,
        device: torch.device,
        precision: str = "auto",
        load_run: Callable[..., Translator] | None = None,
        line_facts: LineFacts | None = None,
    ) -> None:
        """
        Args:
            model: a model in evaluation mode. The parameters of a `Seq2Seq` must not change after
                the first translation.
            text: holds the tokenizers and vocabularies of both sides.
            config: `search` holds the options that a call does not give. Sources longer than
                `data.max_length` are split.
            precision: arithmetic of matrix products, see `load`.
            load_run: the function `load`, for scorers that read another run.
            line_facts: facts about the training text. Without them, lines are not split into
                sentences, and translations have no warnings about their length.
        """
        self.model = model
        self.source_tokenizer: Source = text.source_tokenizer
        self.target_tokenizer: Tokenizer = text.target_tokenizer
        self.source_vocab: Vocab = text.source_vocab
        self.target_vocab: Vocab = text.target_vocab
        self.search = config.search
        self.device = device
        self.has_attention = model.has_attention
        """whether translations have attention over source positions; a fixed vector has none"""
        self.copies_source = (model.output if isinstance(model, Seq2Seq) else model).copies_source
        """whether source tokens outside the target vocabulary may be copied"""
        self._precision = translation_precision(precision, device)
        self._load_run = load_run
        self.infos: Sequence[ModelInfo] = ()
        """the facts stored with each model that was loaded"""
        self.max_source_length = config.data.max_length
        """the maximum number of source tokens (without EOS) in a segment"""
        self.line_facts = line_facts or LineFacts()
        self.scorer_runs: dict[str, Translator] = {}
        """the runs that scorers have loaded"""
        self.languages = config.data.source_name, config.data.target_language
        self._unknown = unknown_words(text)

    def __repr__(self) -> str:
        sizes = f"{len(self.source_vocab):,} source and {len(self.target_vocab):,} target types"
        return f"Translator({type(self.model).__name__}, {sizes}, {self.device}, {self._precision})"

    def with_max_source_length(self, max_source_length: int) -> Translator:
        """Return a copy of the translator with another maximum length of segments."""
        translator = copy(self)
        translator.max_source_length = max_source_length
        return translator

    def translate(
        self, texts: Iterable[str], *, keep_attention: bool = True, **options: Any
    ) -> list[Translation]:
        """Return the best translation of each line, in order.

        The translation of a blank line is empty.

        >>> [translation] = load("runs/quickstart").translate(["Der Hund schläft."], beam_size=1)
        >>> translation.tokens, translation.is_finished
        (['The', 'dog', 'is', 'sleeping', '.'], True)

        Args:
            texts: lines, in a list or any other iterable. Line breaks inside a line count as
                spaces. Tabs separate the sources of a line. A source of vectors is given by the
                name of its file.
            keep_attention: False leaves `attention` out, which saves a little time.
            options: options of the search, for example `beam_size=1`, `prefix="A man"`,
                `unk="copy"` or `method="sample"` (docs/configuration.md, section `search`). The
                default of an option is its value in the configuration of the run. `glossary` names
                a file of source terms and target terms (`text/glossary.py`).
                `split_sentences="off"` translates each line as a whole, even if the run was trained
                on single sentences.

        Raises:
            UsageError: an option is unknown or not allowed, or `unk="copy"` with a model without
                attention over source positions.
        """
        n_best = options.get("n_best")
        if n_best is not None:
            raise TypeError(
                "translate gives one translation per line; use translate_n_best(texts, "
                f"n_best={n_best})"
            )
        lines = check_lines(texts, "texts", "translate([text])")
        options["n_best"] = 1  # even if the run's configuration asks for more
        translated = self.translate_lines(lines, keep_attention=keep_attention, **options)
        return [translations[0] for translations in translated]

    def translate_n_best(
        self, texts: Iterable[str], *, n_best: int, **options: Any
    ) -> list[list[Translation]]:
        """Return up to `n_best` translations of each line, best first.

        Arguments and errors are those of `translate`. `n_best` is at most the beam size. The
        translations of a line have different token sequences. With `method="sample"`, they are
        `n_best` samples, which may be equal.

        >>> translator = load("runs/quickstart")
        >>> [translations] = translator.translate_n_best(["Der Hund schläft."], n_best=2)
        >>> translations[0].score >= translations[1].score
        True
        """
        lines = check_lines(texts, "texts", f"translate_n_best([text], n_best={n_best})")
        return list(self.translate_lines(lines, n_best=n_best, **options))

    def score(
        self, sources: Iterable[str], targets: Iterable[str], *, batch_size: int | None = None
    ) -> list[Translation]:
        """Return each target as a translation of its source (forced decoding).

        The translations hold the model's log-probability and attention (`scoring.force_decode`).

        >>> sources = ["Der Hund schläft."] * 2
        >>> targets = ["The dog is sleeping.", "The ball is sleeping."]
        >>> right, wrong = load("runs/quickstart").score(sources, targets)
        >>> right.log_prob > wrong.log_prob
        True
        """
        return list(force_decode(self, sources, targets, batch_size=batch_size))

    def translate_lines(
        self,
        lines: Iterable[str],
        *,
        keep_attention: bool = True,
        glossary: str | Path | Glossary = (),
        split_sentences: str = "auto",
        warn: Callable[[str], None] | None = None,
        **options: Any,
    ) -> Iterator[list[Translation]]:
        """Yield the translations of each line, in bounded memory. Arguments and errors are those of
        `translate_n_best`.

        The default of `n_best` is its value in the configuration of the run. `warn` receives
        warnings about the text as a whole; by default they are logged, once per call.

        >>> lines = ("Der Hund schläft." for _ in range(10_000))
        >>> next(load("runs/quickstart").translate_lines(lines))[0].text
        'The dog is sleeping.'
        """
        plan = make_plan(self, options, keep_attention, glossary, split_sentences, warn)
        translate = partial(translate_marked, self._translate_chunk, plan, self.has_attention)
        return chain.from_iterable(map(translate, chunks(lines, num_results=plan.options.n_best)))

    def _translate_chunk(self, lines: Sequence[str], plan: Plan) -> list[list[Translation]]:
        """Return the translations of each line of a chunk. With `unk="pass"`, unknown words pass
        through the translations."""
        if self._unknown is None or plan.options.unk != "pass":
            split = partial(split_line, into_sentences=plan.splits_sentences)
            translated = self._translate_texts(list(map(split, lines)), plan)
            return [list(map(name_unknown, translations)) for translations in translated]

        def translate(texts: SplitLines, keep_attention: bool) -> list[list[Translation]]:
            keep_attention = keep_attention and self.has_attention
            return self._translate_texts(texts, plan._replace(keep_attention=keep_attention))

        return self._unknown.translate(
            lines,
            translate,
            keep_attention=plan.keep_attention,
            known_words=plan.terms.source_words if plan.terms else None,
            into_sentences=plan.splits_sentences,
            warn=plan.warn,
        )

    def _translate_texts(self, lines: SplitLines, plan: Plan) -> list[list[Translation]]:
        """Return the translations of each line by the model. Segments of similar length are
        translated together."""
        prefix = self.target_tokenizer.tokenize(plan.options.prefix)
        segments_by_line = split_lines(self, lines, plan.terms)
        segments: list[Segment] = []
        for line_segments in segments_by_line:
            if line_segments:
                line_segments[0] = line_segments[0]._replace(target=prefix)
            segments += line_segments

        all_translations = self._translate_segments(segments, plan)
        if plan.terms is not None:
            require_terms(plan.terms, segments, all_translations, plan, self._translate_segments)
        translated = iter(all_translations)

        results = []
        for line_segments in segments_by_line:
            if line_segments:
                by_segment = list(islice(translated, len(line_segments)))
                results.append(join_n_best(by_segment, self.source_tokenizer))
            else:
                results.append([empty_translation(plan.keep_attention)])
        return results

    def _translate_segments(
        self, segments: Sequence[Segment], plan: Plan
    ) -> list[list[Translation]]:
        """Return the translations of each segment."""
        translate = partial(self._translate_batch, plan=plan)
        batch_size = max(1, plan.options.batch_size // plan.options.rows_per_sentence)
        return map_in_batches(translate, segments, batch_size)

    def _translate_batch(self, segments: Sequence[Segment], plan: Plan) -> list[list[Translation]]:
        """Return the translations of each segment of a batch, best first."""
        options = plan.options
        prefixes = [self.target_vocab.ids_of(segment.target) for segment in segments]
        extended_sources = None
        extended = self.extend(segments)
        if extended is not None:
            prefixes = [list(ids.target) for ids in extended]
            extended_sources = [ids.source for ids in extended]
        source_ids = [segment.ids for segment in segments]
        batch = collate_source(source_ids, extended_sources, self.read_vectors(segments))
        max_lengths = []
        for segment in segments:
            max_lengths.append(len(segment.target) + options.max_length(len(segment.source)))
        source = SearchSource(
            batch.to(self.device),
            max_lengths,
            prefixes,
            plan.scorers,
            # The method `required` needs links, which tell where a term of a glossary belongs.
            keeps_weights=plan.keep_attention
            or options.unk == "copy"
            or plan.search is required.search,
            continuing=plan.terms.continuing if plan.terms else (),
            to_ids=lambda text: self.target_vocab.ids_of(self.target_tokenizer.tokenize(text)),
            to_text=lambda row, hypothesis: self._translation(segments[row], hypothesis, plan).text,
        )
        hypotheses_B = plan.search(self._steps, source, options)
        results = []
        for segment, hypotheses in zip(segments, hypotheses_B, strict=True):
            translations = [
                self._translation(segment, hypothesis, plan) for hypothesis in hypotheses
            ]
            if options.rows_per_sentence == 1:
                # Copying source tokens may make hypotheses equal. Equal samples are kept.
                translations = distinct(translations)
            results.append(translations)
        return results

    def _translation(self, segment: Segment, hypothesis: Hypothesis, plan: Plan) -> Translation:
        """Return the translation with the tokens of a hypothesis."""
        spelled = self.target_tokenizer.spell_source(segment.source)
        tokens = self.target_vocab.tokens_of(hypothesis.ids, beyond=spelled)
        weights_TS = hypothesis.weights_TS
        heaviest = None
        if weights_TS is not None:
            heaviest = weights_TS[: len(tokens)].argmax(axis=1).tolist()
            if plan.options.unk == "copy":
                for position, token_id in enumerate(hypothesis.ids):
                    if token_id == UNK:
                        tokens[position] = heaviest_token(spelled, weights_TS[position])
        # The tokens of the prefix stay, even if the vocabulary lacks them.
        tokens[: len(segment.target)] = segment.target
        text = self.target_tokenizer.detokenize(tokens)
        warnings = self.line_facts.warnings(segment.source, tokens)
        if not plan.splits_sentences:
            warnings += self.line_facts.lost_sentences(segment.line, text)
        return Translation(
            text=text and segment.separator + text,
            tokens=tokens,
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            source_tokens=[*segment.source, EOS_TOKEN],
            attention=weights_TS if plan.keep_attention else None,
            is_finished=hypothesis.is_finished,
            heaviest=heaviest,
            is_cut=hypothesis.is_cut,
            unknown_positions=unknown_positions(segment, self.source_tokenizer),
            warnings=warnings,
        )

    def extend(self, segments: Sequence[Segment]) -> list[ExtendedIds] | None:
        """Return the ids of source and target tokens in the extended vocabulary, or None if the
        model copies no source tokens."""
        if not self.copies_source:
            return None
        extended = []
        for segment in segments:
            spelled = self.target_tokenizer.spell_source(segment.source)
            extended.append(extended_ids(spelled, segment.target, self.target_vocab))
        return extended

    def read_vectors(self, segments: Sequence[Segment]) -> list[FloatArray] | None:
        """Read the vectors of each segment, [positions, F]; they are 0 at tokens of a text. Return
        None if all sources are texts.

        Raises:
            UserError: a file of vectors has changed since it was tokenized.
        """
        if self.source_tokenizer.vector_size is None:
            return None
        return [self.source_tokenizer.vectors(segment.line, segment.source) for segment in segments]

    @cached_property
    def _steps(self) -> StepModel[Any]:
        """The steps of the model, with its parameters prepared for search."""
        if not isinstance(self.model, Seq2Seq):
            return self.model
        with torch.inference_mode():
            return step_model(self.model, self._precision)

    def load_steps(self, run: str, line: str) -> tuple[StepModel[Any], list[int], int]:
        """Load another run for a scorer. Return the steps of its model, the ids of the source line
        `line` in its vocabulary, and the number of ids in its target vocabulary. Raises UsageError
        if the run has another target vocabulary or reads a source, but `line` is empty."""
        if run not in self.scorer_runs:
            assert self._load_run is not None
            device = str(self.device)
            self.scorer_runs[run] = self._load_run(run, device, precision=self._precision)
        translator = self.scorer_runs[run]
        if translator.target_vocab != self.target_vocab:
            raise UsageError(
                f"{run}: another target vocabulary than that of the run that translates"
            )
        if translator.source_tokenizer.num_columns and not line:
            raise UsageError(
                f"{run}: not a language model, as it has a source; name its source line"
            )
        tokens = translator.source_tokenizer.tokenize(line)
        source_ids = translator.source_vocab.ids_of(tokens)
        return translator._steps, source_ids, len(translator.target_vocab)
