"""Validation: perplexity with teacher forcing, and BLEU (or the configured metric) of
translations."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

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
from seq2seq_attn.runtime.signals import StopRequest
from seq2seq_attn.runtime.threads import set_threads
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.update import Updater
from seq2seq_attn.translate.load import load
from seq2seq_attn.translate.translator import Translator

SPLIT = "valid"
_NUM_LINES_AT_ONCE = 512
"""number of lines that are translated between two checks for a stop request"""


Hypothesis = tuple[str, bool]
"""a translation, and whether the length limit ended it"""

log = logging.getLogger(__name__)


class Validation(NamedTuple):
    """The results of a validation."""

    scores: dict[str, float]
    """Scores by name: `perplexity`, `bleu` and the configured metric; for a language model, only
    `perplexity`. Perplexity is exp of the mean negative log-likelihood per target token, EOS
    included, without label smoothing."""
    signature: str
    """signature of BLEU; empty for a language model"""
    num_pairs: int
    """number of pairs that BLEU is computed on"""
    num_cut: int
    """number of hypotheses that the length limit ended"""
    samples: list[dict[str, str]]
    """sample translations for people to read: `source`, `reference` and `hypothesis`"""
    ngram_shares: tuple[float, ...] = ()
    """for n from 1 to 4, the share of the hypotheses' sequences of n words that the references have
    too; empty for a language model"""


@dataclass(eq=False)
class Validator:
    """Validates a model on the validation split, always on the same pairs."""

    prepared: PreparedCorpus
    config: Config
    updater: Updater
    stop: StopRequest
    """checked between batches; after a request to stop, the validation ends early on all ranks"""

    def __post_init__(self) -> None:
        """Build the measures, and check that the configured search can translate.

        Raises:
            UserError: the validation split is empty, or the search cannot translate.
        """
        config = self.config
        prepared = self.prepared
        self._pairs = prepared.pairs(SPLIT)
        if not len(self._pairs):
            raise UserError(
                f"{prepared.directory}: the validation split is empty; data.valid needs at least "
                "one pair"
            )
        sources, references = prepared.text(SPLIT)
        limit = config.train.validation.num_pairs
        is_language_model = not config.data.layout.columns  # it has no sources to translate
        self._sources = [] if is_language_model else sources[:limit]
        self._references = references[:limit]
        self._bleu, self._measures = _build_measures(config, self._references)
        beam_size = config.train.validation.beam_size
        search = config.search.model_copy(update={"beam_size": beam_size, "n_best": 1})
        self._build_translator = partial(
            Translator,
            text=prepared,
            config=config.model_copy(update={"search": search}),
            device=self.updater.device,
            load_run=cache(load),
        )
        num_threads = torch.get_num_threads()
        if self._sources:
            # Translating nothing loads the runs of the scorers, and raises an error if the search
            # cannot translate.
            self._build_translator(self.updater.model).translate([])
        # `load` chooses the number of threads for the model of a scorer, which may be smaller.
        if torch.get_num_threads() != num_threads:
            set_threads(num_threads)

    def validate(self) -> Validation | None:
        """Compute perplexity and BLEU of the updater's model, which is set to evaluation mode.
        Return None if a rank was asked to stop.

        Each rank takes a share of the sentences, and all ranks return the same scores. The states
        of random number generators do not change.

        Raises:
            UserError: memory runs out; the message names the setting to lower.
        """
        size = self.config.search.batch_size
        setting = f"search.batch_size={size} (in a validation)"
        with explain_memory_error(setting, f"try --set search.batch_size={max(1, size // 2)}"):
            model = self.updater.model.eval()  # the next update sets training mode again
            translator = self._build_translator(model)
            nll = self._nll(model)
            hypotheses = self._translate(translator)
            group = self.updater.group
            if any(group.gather(self.stop.is_set)):
                return None
        return self._scores(group.gather((nll, hypotheses)))

    @torch.no_grad()
    def _nll(self, model: Seq2Seq) -> float:
        """Return the negative log-likelihood of this rank's share of the pairs, in nats, summed
        over target tokens and EOS."""
        nll_sum = 0.0
        size = self.config.search.batch_size
        batches = self.updater.group.share(ordered_batches(self._pairs.target_lengths, size=size))
        longest = np.maximum(self._pairs.source_lengths, self._pairs.target_lengths)
        # Long pairs are not shortened. Batches with long pairs are split, so that a batch takes no
        # more memory than search.batch_size pairs of max_length.
        for indices in split_large(batches, longest, max_cells=size * self.config.data.max_length):
            if self.stop.is_set:
                break
            batch = self._pairs.batch(indices, with_extended=model.output.copies_source)
            with autocast(self.updater.precision, self.updater.device):
                nll_sum += batch_loss(model, batch.to(self.updater.device)).nll_sum.item()
        return nll_sum

    def _translate(self, translator: Translator) -> list[Hypothesis]:
        """Translate this rank's share of the source sentences."""
        sources = self.updater.group.share(self._sources)
        hypotheses = []
        for start in range(0, len(sources), _NUM_LINES_AT_ONCE):
            if self.stop.is_set:
                break
            lines = sources[start : start + _NUM_LINES_AT_ONCE]
            for translation in translator.translate(lines, keep_attention=False):
                hypotheses.append((translation.text, translation.is_cut))
        return hypotheses

    def _scores(self, shares: Sequence[tuple[float, list[Hypothesis]]]) -> Validation:
        """Compute the scores from the negative log-likelihood and the hypotheses of each rank."""
        num_tokens = int(self._pairs.target_lengths.sum()) + len(self._pairs)
        mean = sum(nll for nll, _ in shares) / num_tokens
        perplexity = math.exp(mean) if mean < 700 else math.inf
        if not self._sources:
            return Validation({"perplexity": perplexity}, "", 0, 0, [])
        hypotheses = self.updater.group.interleave([share for _, share in shares])
        texts = [text for text, _ in hypotheses]
        num_cut = sum(is_cut for _, is_cut in hypotheses)
        bleu = self._bleu.statistics(texts)
        scores = {"perplexity": perplexity, "bleu": bleu.score().score}
        for measure in self._measures:
            scores[measure.name] = measure.statistics(texts).score().score
        samples = self._samples(texts)
        return Validation(scores, bleu.signature, len(texts), num_cut, samples, bleu.ngram_shares)

    def _samples(self, hypotheses: Sequence[str]) -> list[dict[str, str]]:
        """Choose sample translations that are spread evenly over the split. The sentences are the
        same in every validation."""
        num_lines = len(hypotheses)
        num_samples = min(self.config.train.validation.num_samples, num_lines)
        samples = []
        for number in range(num_samples):
            index = number * num_lines // num_samples
            samples.append(
                {
                    "source": self._sources[index],
                    "reference": self._references[index],
                    "hypothesis": hypotheses[index],
                }
            )
        return samples

    def copied_bleu(self) -> float | None:
        """Return the BLEU of a model that copies the source. Return None if a source line is not a
        single text."""
        if not self.config.data.layout.is_one_text:
            return None
        return float(self._bleu.statistics(self._sources).score().score)


def _build_measures(config: Config, references: list[str]) -> tuple[Measure, list[Measure]]:
    """Return the measure of BLEU, and a list of the other measures. Log a warning if BLEU is to
    choose the best model, but the references are too short for BLEU.

    The other measures are the configured metric and, if this metric is an error rate, exact match:
    the error rate may be low although most lines have an error.
    """
    metric = config.train.validation.metric
    is_lowercase = config.data.tokenizer.lowercase
    target = config.data.target_language
    bleu = Measure("bleu_lowercase" if is_lowercase else "bleu", references, target_language=target)
    if metric == "perplexity":
        return bleu, []
    if metric == "bleu":
        if bleu.statistics(references).is_too_short:
            log.warning(
                "fewer than a tenth of the validation targets have four words separated by spaces: "
                "BLEU depends on these alone, and cannot choose the best model; set "
                "train.validation.metric=chrf"
            )
        return bleu, []
    if is_lowercase:
        references = [line.lower() for line in references]
    names = [metric, "exact"] if metric in ("cer", "wer") else [metric]
    return bleu, [Measure(name, references, target_language=target) for name in names]
