"""A dry run of the variants that a configuration takes from `--import`: two steps of a small batch, before data is
prepared, checked against the contracts. `pytest tests/contract --import MODULE` asks the whole contract.

Shapes: B sentence pairs, S source positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seq2seq_attn.config import Config
from seq2seq_attn.data.batch import Batch, collate
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import ENCODER_SHORTHANDS, build_model
from seq2seq_attn.model.decoder.base import StepOutput
from seq2seq_attn.model.encoder.base import zeroed
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.variants import AXES, ModelAxis, located, packaged_variants
from seq2seq_attn.search.steps import PlainSteps
from seq2seq_attn.text.tokenizers.base import VECTORS
from seq2seq_attn.text.vocab import EOS, PAD, SPECIALS
from seq2seq_attn.train.loss import OBJECTIVE, build_objectives, with_reverse
from seq2seq_attn.train.objectives.base import Objective

SOURCE_LENGTHS, TARGETS = (5, 2, 1), ([4, 5], [6], [4])
"""words of each pair, EOS not included; the first source is the longest, so the others are padded"""
NUM_IDS = len(SPECIALS) + max(SOURCE_LENGTHS)


def check_imported(config: Config) -> None:
    """Check the variants that the package does not have. The global generator stays as it is.

    Raises:
        UsageError: a variant breaks its contract; the message names the variant, the rule, and what was seen.
    """
    own_objectives = [name for name in config.train.objectives if name not in packaged_variants(OBJECTIVE)]
    if not (imported := _imported(config)) and not own_objectives:
        return
    with torch.random.fork_rng(devices=[]):
        vector_sizes = [1 if source == VECTORS else None for source in config.data.sources]
        sizes = {"num_source_ids": NUM_IDS, "num_target_ids": NUM_IDS}
        model = build_model(config.model, **sizes, vector_sizes=vector_sizes)
        objectives = build_objectives(config, model)
        batch, alone = _batch(config, range(3)), [_batch(config, [row]) for row in range(3)]
        if imported:
            rules = _Rules(", ".join(imported))
            rules.run(model.train(), batch)
            rules.check_model(model.eval(), batch, alone)
        for name in own_objectives:
            _Rules(OBJECTIVE.key.format(name=name)).check_objective(objectives[name], model.eval(), batch, alone)


def _imported(config: Config) -> list[str]:
    """The imported variants of the model, as the configuration names them: `model.attention.name='mine'`."""
    model = config.model
    encoder, encoder_cell = ENCODER_SHORTHANDS.get(model.encoder.name, (model.encoder.name, model.encoder.cell))
    named: list[tuple[ModelAxis, str]] = [
        *(("attention", model.attention.name), ("normalizer", model.attention.normalizer), ("encoder", encoder)),
        *(("cell", cell) for cell in sorted({encoder_cell, model.decoder.cell})),
        *(("decoder", model.decoder.name), ("output", model.output.name)),
    ]
    return [AXES[axis].key.format(name=name) for axis, name in named if name not in packaged_variants(axis)]


def _batch(config: Config, rows: Sequence[int]) -> Batch:
    """Some of the pairs, with as many sources as the configuration has."""
    words = [range(len(SPECIALS), len(SPECIALS) + SOURCE_LENGTHS[row]) for row in rows]
    sources = [[id for _ in config.data.sources for id in (*ids, EOS)][:-1] for ids in words]
    vectors = [np.ones((len(ids), 1), dtype=np.float32) for ids in sources] if VECTORS in config.data.sources else None
    links = [np.zeros((1, 2), dtype=np.int32) for _ in rows]
    return collate(sources, [TARGETS[row] for row in rows], rows, links, vectors=vectors)


class _Rules:
    """The rules of the contracts."""

    def __init__(self, variant: str) -> None:
        """`variant`: the name that an error begins with."""
        self._variant = variant

    def check_model(self, model: Seq2Seq, batch: Batch, alone: Sequence[Batch]) -> None:
        """Steps, search and probabilities; `alone` has the pairs of the batch by themselves."""
        padded = self.run(model, batch)
        for row, one in enumerate(alone):
            for step, step_alone in zip(padded, self.run(model, one), strict=True):
                for what in ("context_BM", "features_BF"):
                    self._require_same(getattr(step, what)[row : row + 1], getattr(step_alone, what), what)
        self._search(model, batch)
        outputs = model(batch)
        real_N = outputs.targets_N != PAD
        totals_N = outputs.log_probs_of(real_N.nonzero().squeeze(1)).logsumexp(dim=1).exp()
        self._require(((totals_N - 1.0).abs() < 1e-3).all(), "probabilities sum to 1", _numbers(totals_N))
        losses = [model.output.loss(model(one), one, label_smoothing=0.0).loss_sum for one in (batch, *alone)]
        expected = -outputs.target_log_probs()[real_N].sum()
        self._require_same(losses[0], torch.stack(losses[1:]).sum(), "loss")
        is_same = torch.allclose(expected, losses[0], rtol=1e-3)
        self._require(is_same, "the loss is that of the probabilities", _numbers(torch.stack([losses[0], expected])))

    def run(self, model: Seq2Seq, batch: Batch) -> list[StepOutput]:
        """Two steps."""
        mask_BS = batch.source.mask_BS if model.has_attention else None
        memory, state = model.decoder.attention.prepare(zeroed(model.encoder(batch.source)), batch.source)
        self._require_rows(memory, "the attention's memory", len(batch.tgt_in_BT))
        self._require_rows(state, "the attention's state", len(batch.tgt_in_BT))
        memory, state = model.prepare(batch.source)
        steps = []
        for ids_B in batch.tgt_in_BT.t()[:2]:
            steps.append(model.step(ids_B, state, memory))
            state = steps[-1].state
            self._require_distribution(steps[-1].weights_BS, mask_BS)
            self._require_rows(state, "state", len(ids_B))
        return steps

    def _search(self, model: Seq2Seq, batch: Batch) -> None:
        steps, ids_R = PlainSteps(model), batch.tgt_in_BT[:, 0].repeat_interleave(2)
        try:
            state = steps.start(batch.source, 2)
            for order in ([1, 0, 2, 2, 5, 4], [2, 3, 4, 5]):  # the second time without the first sentence
                _, state = steps.step(ids_R, state)
                state, ids_R = steps.reorder(state, torch.tensor(order)), ids_R[: len(order)]
            steps.step(ids_R, state)
        except Exception as error:
            raise self._broken("a search step works", located(error)) from error

    def check_objective(self, objective: Objective, model: Seq2Seq, batch: Batch, alone: Sequence[Batch]) -> None:
        """The term of a batch is the finite sum of those of its pairs; so is the count."""
        terms = []
        for one in (batch, *alone):
            outputs = model(one)
            if objective.needs_reverse:
                outputs, _ = with_reverse(model, outputs, one, label_smoothing=0.0)
            terms.append(objective.term(outputs, one))
        self._require(terms[0].dim() == 0, "a term is a number", list(terms[0].shape))
        self._require(torch.isfinite(terms[0]), "a term is finite", terms[0].item())
        self._require_same(terms[0], torch.stack(terms[1:]).sum(), "the sum over pairs")
        counts = [objective.count(one) for one in (batch, *alone)]
        self._require(counts[0] == sum(counts[1:]), "the counts of pairs add up", counts)

    def _require_distribution(self, weights_BS: Tensor, mask_BS: Tensor | None) -> None:
        """`mask_BS`: None for weights that do not belong to source positions."""
        sums_B = weights_BS.sum(dim=1)
        self._require((weights_BS >= 0).all(), "weights are never negative", f"{weights_BS.min():.3g}")
        self._require(((sums_B - 1.0).abs() < 1e-3).all(), "weights sum to 1", _numbers(sums_B))
        if mask_BS is not None:
            shape = list(weights_BS.shape)
            self._require(weights_BS.shape == mask_BS.shape, f"weights are [B, S], {list(mask_BS.shape)}", shape)
            on_padding_BS = weights_BS.masked_fill(mask_BS, 0.0)
            self._require((on_padding_BS == 0).all(), "weights are 0 on padding", f"{on_padding_BS.max():.3g}")

    def _require_rows(self, fields: Any, what: str, num_rows: int) -> None:
        if isinstance(fields, Tensor):
            is_batch_first = fields.dim() > 0 and len(fields) == num_rows
            self._require(is_batch_first, f"{what} is batch-first, {num_rows} rows", list(fields.shape))
        elif fields is not None:
            is_named = isinstance(fields, tuple) and hasattr(fields, "_fields")
            self._require(is_named, f"{what} is a named tuple of tensors", type(fields).__name__)
            for name, field in zip(fields._fields, fields, strict=True):
                self._require_rows(field, f"{what}.{name}", num_rows)

    def _require_same(self, padded: Tensor, alone: Tensor, what: str) -> None:
        is_same = padded.shape == alone.shape and torch.allclose(padded, alone, rtol=1e-3, atol=1e-4)
        seen = f"{what}: {_numbers(padded)} in a batch, {_numbers(alone)} alone"
        self._require(is_same, "padding does not change results", seen)

    def _require(self, is_kept: bool | Tensor, rule: str, seen: object) -> None:
        if not is_kept:
            raise self._broken(rule, seen)

    def _broken(self, rule: str, seen: object) -> UsageError:
        return UsageError(f"{self._variant}: breaks its contract in a dry run: {rule}; seen: {seen}")


def _numbers(tensor: Tensor) -> str:
    """The first ones."""
    return ", ".join(f"{number:.3g}" for number in tensor.flatten()[:3].tolist())
