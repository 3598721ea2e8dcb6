"""Validation: teacher-forced perplexity, and BLEU (or the configured metric) of free-running
translations."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import torch

from seq2seq_attn.config import Config
from seq2seq_attn.data.buckets import ordered_batches, split_large
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.runtime.device import autocast
from seq2seq_attn.runtime.memory import explain_memory_error
from seq2seq_attn.runtime.threads import set_threads
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.update import Updater
from seq2seq_attn.translate.attention_map import AttentionMap
from seq2seq_attn.translate.load import load
from seq2seq_attn.translate.translator import Translator

SPLIT = "valid"
_NUM_LINES_AT_ONCE = 512
"""lines translated between checks for a stop request"""
Share = tuple[float, list[tuple[str, bool]]]
"""a rank's results: its negative log-likelihood, its translations, and whether the length limit cut
each"""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sample:
    """A sample translation for people to read."""

    source: str
    reference: str
    hypothesis: str
    attention: AttentionMap | None = None
    """None for a model without attention over source positions"""

    def texts(self) -> dict[str, str]:
        """The three texts by name."""
        return {"source": self.source, "reference": self.reference, "hypothesis": self.hypothesis}


@dataclass(frozen=True)
class Validation:
    """The results of a validation."""

    scores: dict[str, float]
    """`perplexity`, `bleu` and the configured metric; of a language model `perplexity` alone.
    Perplexity is exp of the mean negative log-likelihood per target token, EOS included, without
    label smoothing."""
    signature: str
    """signature of BLEU"""
    num_pairs: int
    """number of pairs that BLEU is computed on"""
    num_cut: int
    """number of hypotheses that the length limit cut"""
    samples: list[Sample]


class Validator:
    """Validates a model on the validation split, always on the same pairs."""

    def __init__(
        self,
        prepared: PreparedCorpus,
        config: Config,
        updater: Updater,
        *,
        should_stop: Callable[[], bool],
    ) -> None:
        """`updater`: its device, precision and group are used. `should_stop` is called between
        batches; if it returns true, the validation ends early on all ranks. Raises UserError: no
        pairs, or a search that cannot translate."""
        self._config = config
        self._device, self._precision, self._group = (
            updater.device,
            updater.precision,
            updater.group,
        )
        self._should_stop = should_stop
        self._pairs = prepared.pairs(SPLIT)
        if not len(self._pairs):
            raise UserError(
                f"{prepared.directory}: the validation split is empty; data.valid needs at least "
                "one pair"
            )
        limit, metric = config.train.validation.num_pairs, config.train.validation.metric
        self._sources, references = (text[:limit] for text in prepared.text(SPLIT))
        self._references = references
        if not config.data.layout.columns:  # a language model: nothing to translate
            self._sources = []
        name = "bleu_lowercase" if config.data.tokenizer.lowercase else "bleu"
        target = config.data.target_language
        self._measure = Measure(name, references, target_language=target)
        if metric == "bleu" and self._measure.statistics(references).is_too_short:
            log.warning(
                "fewer than a tenth of the validation targets have four words separated by spaces: "
                "BLEU depends on these alone, and cannot choose the best model; set "
                "train.validation.metric=chrf"
            )
        if config.data.tokenizer.lowercase:
            references = [line.lower() for line in references]
        self._other = (
            None
            if metric in ("bleu", "perplexity")
            else Measure(metric, references, target_language=target)
        )
        beam_size = config.train.validation.beam_size
        self._translator = partial(
            Translator,
            source_tokenizer=prepared.source_tokenizer,
            target_tokenizer=prepared.target_tokenizer,
            source_vocab=prepared.source_vocab,
            target_vocab=prepared.target_vocab,
            search=config.search.model_copy(update={"beam_size": beam_size, "n_best": 1}),
            device=self._device,
            max_source_length=config.data.max_length,
            load_run=cache(load),
        )
        num_threads = torch.get_num_threads()
        if self._sources:
            self._translator(updater.model).translate(
                []
            )  # raises if it cannot; loads the scorers' runs
        if torch.get_num_threads() != num_threads:  # `load` chose the number for a smaller model
            set_threads(num_threads)

    def validate(self, model: Seq2Seq) -> Validation | None:
        """Perplexity and BLEU of the current model, which is set to evaluation mode; None if
        `should_stop` returned true on a rank. Random number generators do not change. Each rank
        takes a share of the sentences; all return the same, except that the samples are the first
        rank's. Raises UserError: memory runs out; the message names the setting to lower."""
        size = self._config.search.batch_size
        setting, advice = (
            f"search.batch_size={size}",
            f"try --set search.batch_size={max(1, size // 2)}",
        )
        with explain_memory_error(f"{setting} (in a validation)", advice):
            model.eval()  # an update begins with training mode
            translator = self._translator(model)
            share: Share = self._nll(model), self._translate(translator)
            every = self._group.gather(None if self._should_stop() else share)
            shares = [share for share in every if share is not None]
            if len(shares) < len(every):
                return None
            samples = self._samples(translator) if self._group.is_first and self._sources else []
        return self._scores(shares, samples)

    @torch.no_grad()
    def _nll(self, model: Seq2Seq) -> float:
        """The negative log-likelihood of this rank's share, in nats, summed over target tokens with
        EOS."""
        nll_sum = 0.0
        size = self._config.search.batch_size
        batches = self._group.share(ordered_batches(self._pairs.target_lengths, size=size))
        longest = np.maximum(self._pairs.source_lengths, self._pairs.target_lengths)
        # pairs of any length are scored whole; a batch takes no more memory than search.batch_size
        # pairs of max_length
        for indices in split_large(batches, longest, max_cells=size * self._config.data.max_length):
            if self._should_stop():
                break
            batch = self._pairs.batch(indices, with_extended=model.output.copies_source).to(
                self._device
            )
            with autocast(self._precision, self._device):
                nll_sum += batch_loss(model, batch).nll_sum.item()
        return nll_sum

    def _translate(self, translator: Translator) -> list[tuple[str, bool]]:
        """The translations of this rank's share, and whether the length limit cut each."""
        sources = self._group.share(self._sources)
        hypotheses: list[tuple[str, bool]] = []
        for start in range(0, len(sources), _NUM_LINES_AT_ONCE):
            if self._should_stop():
                break
            lines = sources[start : start + _NUM_LINES_AT_ONCE]
            translations = translator.translate(lines, keep_attention=False)
            hypotheses += [(translation.text, translation.is_cut) for translation in translations]
        return hypotheses

    def _samples(self, translator: Translator) -> list[Sample]:
        """Sample translations with attention, always of the same sentences, spread over the
        split."""
        num_lines = len(self._sources)
        num_samples = min(self._config.train.validation.num_samples, num_lines)
        indices = [number * num_lines // num_samples for number in range(num_samples)]
        translations = translator.translate([self._sources[i] for i in indices])
        return [
            Sample(
                self._sources[i], self._references[i], translation.text, translation.attention_map()
            )
            for i, translation in zip(indices, translations, strict=True)
        ]

    def _scores(self, shares: Sequence[Share], samples: list[Sample]) -> Validation:
        """The scores from the results of all ranks."""
        mean = sum(nll for nll, _ in shares) / (
            int(self._pairs.target_lengths.sum()) + len(self._pairs)
        )
        perplexity = math.exp(mean) if mean < 700 else math.inf
        if not self._sources:
            return Validation({"perplexity": perplexity}, "", 0, 0, [])
        translations = self._group.interleave([share for _, share in shares])
        hypotheses, num_cut = (
            [text for text, _ in translations],
            sum(is_cut for _, is_cut in translations),
        )
        bleu = self._measure.statistics(hypotheses)
        scores = {"perplexity": perplexity, "bleu": bleu.score().score}
        if self._other is not None:
            scores[self._other.name] = self._other.statistics(hypotheses).score().score
        return Validation(scores, bleu.signature, len(hypotheses), num_cut, samples)
