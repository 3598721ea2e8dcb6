"""A dry run of the variants that a configuration takes from `--import`: two steps of a small batch, before data is
prepared, checked against the contracts of their axes. `pytest tests/contract --import MODULE` asks the whole contract.

Shapes: B sentence pairs, S source positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from seq2seq_attn.config import Config
from seq2seq_attn.data.batch import Batch, collate
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import ENCODER_SHORTHANDS, build_model, initialize
from seq2seq_attn.model.cell.base import Cell
from seq2seq_attn.model.decoder.base import StepOutput
from seq2seq_attn.model.encoder.base import zeroed
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.variants import Axis, ModelAxis, build_variant, find_build, located, packaged_variants
from seq2seq_attn.search.steps import PlainSteps
from seq2seq_attn.text.tokenizers.base import VECTORS
from seq2seq_attn.text.vocab import EOS, PAD, SPECIALS
from seq2seq_attn.train.loss import OBJECTIVE, build_objectives, with_reverse
from seq2seq_attn.train.objectives.base import Objective

SOURCE_LENGTHS, TARGETS = (5, 2, 1), ([4, 5], [6], [4])
"""words of each pair, EOS not included; the first source is the longest, so the others are padded"""
NUM_IDS = len(SPECIALS) + max(SOURCE_LENGTHS)


class Contract(NamedTuple):
    """The rules that a variant must keep."""

    variant: str
    """as the configuration names it, such as `model.attention.name='mine'`"""

    def require(self, is_kept: bool | Tensor, rule: str, seen: object) -> None:
        """Raise UsageError if a rule is broken."""
        if not is_kept:
            raise UsageError(f"{self.variant}: breaks the contract in a dry run: {rule}; seen: {seen}")

    def require_distribution(self, weights_BS: Tensor, mask_BS: Tensor | None) -> None:
        """`mask_BS`: None for weights that do not belong to source positions."""
        sums_B = weights_BS.sum(dim=1)
        self.require((weights_BS >= 0).all(), "weights are never negative", f"{weights_BS.min():.3g}")
        self.require(((sums_B - 1.0).abs() < 1e-3).all(), "weights sum to 1", [f"{total:.3g}" for total in sums_B])
        if mask_BS is not None:
            shape = list(weights_BS.shape)
            self.require(weights_BS.shape == mask_BS.shape, f"weights are [B, S], {list(mask_BS.shape)}", shape)
            on_padding_BS = weights_BS.masked_fill(mask_BS, 0.0)
            self.require((on_padding_BS == 0).all(), "weights are 0 on padding", f"{on_padding_BS.max():.3g}")

    def require_rows(self, fields: Any, what: str, *, num_rows: int = len(SOURCE_LENGTHS)) -> None:
        """Memory and state are named tuples of tensors, or of such tuples, whose first axis is the batch."""
        if isinstance(fields, Tensor):
            is_batch_first = fields.dim() > 0 and len(fields) == num_rows
            self.require(is_batch_first, f"{what} is batch-first, {num_rows} rows", list(fields.shape))
        elif fields is not None:
            is_named = isinstance(fields, tuple) and hasattr(fields, "_fields")
            self.require(is_named, f"{what} is a named tuple of tensors", type(fields).__name__)
            for name, field in zip(fields._fields, fields, strict=True):
                self.require_rows(field, f"{what}.{name}", num_rows=num_rows)

    def require_same(self, padded: Tensor, alone: Tensor, what: str) -> None:
        """`padded`: of a batch; `alone`: of its sentences by themselves."""
        is_same = padded.shape == alone.shape and torch.allclose(padded, alone, rtol=1e-3, atol=1e-4)
        numbers = " and ".join(f"{tensor.flatten()[:3].tolist()}" for tensor in (padded, alone))
        self.require(is_same, "padding does not change results", f"{what} of a padded row and alone: {numbers}")


def check_imported(config: Config) -> None:
    """Check the variants that the package does not have. The global generator stays as it is.

    Raises:
        UsageError: a variant breaks its contract; the message names the variant, the rule, and what was seen.
    """
    names = _imported_names(config)
    contracts = {axis: [Contract(_axis(axis).key.format(name=name)) for name in names[axis]] for axis in names}
    blamed = next((contract for axis in contracts for contract in contracts[axis]), None)
    if blamed is None:
        return
    with torch.random.fork_rng(devices=[]):
        vector_sizes = [1 if source == VECTORS else None for source in config.data.sources]
        sizes = {"num_source_ids": NUM_IDS, "num_target_ids": NUM_IDS}
        model = build_model(config.model, **sizes, vector_sizes=vector_sizes)
        for contract, name in zip(contracts["normalizer"], names["normalizer"], strict=True):
            _check_normalizer(contract, name)
        for contract, name in zip(contracts["cell"], names["cell"], strict=True):
            _check_cell(contract, name)
        batch, alone = _batch(config, range(3)), [_batch(config, [row]) for row in range(3)]
        _two_steps(blamed, model.train(), batch)
        model.eval()
        for contract in contracts["encoder"]:
            _check_encoder(contract, model, batch, alone)
        _check_steps(blamed, model, batch, alone)
        _check_search(blamed, model, batch)
        for contract in contracts["output"]:
            _check_output(contract, model, batch, alone)
        objectives = build_objectives(config, model)
        for contract, name in zip(contracts["objective"], names["objective"], strict=True):
            _check_objective(contract, objectives[name], model, batch, alone)


def _imported_names(config: Config) -> dict[str, list[str]]:
    """The imported variants of each axis. The order is that in which they are blamed for what they do together."""
    model = config.model
    encoder, encoder_cell = ENCODER_SHORTHANDS.get(model.encoder.name, (model.encoder.name, model.encoder.cell))
    named: dict[str, list[str]] = {
        "attention": [model.attention.name],
        "decoder": [model.decoder.name],
        "normalizer": [model.attention.normalizer],
        "cell": sorted({encoder_cell, model.decoder.cell}),
        "encoder": [encoder],
        "output": [model.output.name],
        "objective": list(config.train.objectives),
    }
    return {axis: [name for name in named[axis] if name not in packaged_variants(_axis(axis))] for axis in named}


def _axis(name: str) -> Axis:
    return OBJECTIVE if name == "objective" else Axis.of_model(cast(ModelAxis, name))


def _batch(config: Config, rows: Sequence[int]) -> Batch:
    """Some of the pairs, with as many sources as the configuration has."""
    num_sources = len(config.data.sources)
    words = [[len(SPECIALS) + i for i in range(SOURCE_LENGTHS[row])] for row in rows]
    sources = [[id for _ in range(num_sources) for id in (*ids, EOS)][:-1] for ids in words]
    vectors = [np.ones((len(ids), 1), dtype=np.float32) for ids in sources] if VECTORS in config.data.sources else None
    links = [np.zeros((1, 2), dtype=np.int32) for _ in rows]
    return collate(sources, [TARGETS[row] for row in rows], rows, links, vectors=vectors)


def _check_normalizer(contract: Contract, name: str) -> None:
    mask_BS = torch.arange(5) < torch.tensor(SOURCE_LENGTHS).unsqueeze(1)
    normalize, scores_BS = find_build("normalizer", name, function="weights"), torch.randn(mask_BS.shape)
    for padding in (0.0, 1e4):
        contract.require_distribution(normalize(scores_BS.masked_fill(~mask_BS, padding), mask_BS), mask_BS)


def _check_cell(contract: Contract, name: str) -> None:
    cell: Cell = build_variant("cell", name, {}, input_sizes=[2], hidden_size=4)
    initialize(cell)
    hidden_BH, inputs_TBI = torch.randn(len(SOURCE_LENGTHS), 4), torch.randn(2, len(SOURCE_LENGTHS), 2)
    state = cell.start(hidden_BH)
    is_kept = torch.equal(cell.hidden(state), hidden_BH)
    contract.require(is_kept, "hidden(start(h)) is h", "another tensor")
    for inputs_BP in cell.project_inputs(inputs_TBI):
        contract.require_rows(state, "state")
        state = cell.step(inputs_BP, state)


def _check_encoder(contract: Contract, model: Seq2Seq, batch: Batch, alone: Sequence[Batch]) -> None:
    encoded = model.encoder(batch.source)
    for row, one in enumerate(alone):
        values_BSM = model.encoder(one.source).values_BSM
        contract.require_same(encoded.values_BSM[row : row + 1, : values_BSM.shape[1]], values_BSM, "values")
    shape, wanted = list(encoded.values_BSM.shape), [*batch.source.ids_BS.shape, model.encoder.memory_size]
    contract.require(shape == wanted, f"values are [B, S, M], {wanted}", shape)


def _two_steps(contract: Contract, model: Seq2Seq, batch: Batch) -> list[StepOutput]:
    num_rows, mask_BS = len(batch.tgt_in_BT), batch.source.mask_BS if model.has_attention else None
    attention = model.decoder.attention.prepare(zeroed(model.encoder(batch.source)), batch.source)
    for fields, what in zip(attention, ("the attention's memory", "the attention's state"), strict=True):
        contract.require_rows(fields, what, num_rows=num_rows)
    memory, state = model.prepare(batch.source)
    steps = []
    for ids_B in batch.tgt_in_BT.t()[:2]:
        step = model.step(ids_B, state, memory)
        contract.require_distribution(step.weights_BS, mask_BS)
        contract.require_rows(step.state, "state", num_rows=num_rows)
        steps.append(step)
        state = step.state
    return steps


def _check_steps(contract: Contract, model: Seq2Seq, batch: Batch, alone: Sequence[Batch]) -> None:
    padded = _two_steps(contract, model, batch)
    for row, one in enumerate(alone):
        for step, step_alone in zip(padded, _two_steps(contract, model, one), strict=True):
            for what in ("context_BM", "features_BF"):
                contract.require_same(getattr(step, what)[row : row + 1], getattr(step_alone, what), what)


def _check_search(contract: Contract, model: Seq2Seq, batch: Batch) -> None:
    steps, ids_R = PlainSteps(model), batch.tgt_in_BT[:, 0].repeat_interleave(2)
    try:
        state = steps.start(batch.source, 2)
        for order_R in ([1, 0, 2, 2, 5, 4], [2, 3, 4, 5]):  # the second time without the first sentence
            _, state = steps.step(ids_R, state)
            state = steps.reorder(state, torch.tensor(order_R))
            ids_R = ids_R[: len(order_R)]
        steps.step(ids_R, state)
    except Exception as error:
        raise UsageError(
            f"{contract.variant}: breaks the contract in a dry run: a search step works; seen: {located(error)}"
        ) from error


def _check_output(contract: Contract, model: Seq2Seq, batch: Batch, alone: Sequence[Batch]) -> None:
    outputs = model(batch)
    real = outputs.targets_N != PAD
    totals = outputs.log_probs_of(real.nonzero().squeeze(1)).logsumexp(dim=1).exp()
    contract.require(((totals - 1.0).abs() < 1e-3).all(), "probabilities sum to 1", [f"{one:.3g}" for one in totals])
    losses = [model.output.loss(model(one), one, label_smoothing=0.0).loss_sum for one in (batch, *alone)]
    total = -outputs.target_log_probs()[real].sum()
    is_same = torch.allclose(total, losses[0], rtol=1e-3)
    contract.require(is_same, "the loss is that of the probabilities", f"{losses[0]:.4g}, not {total:.4g}")
    contract.require_same(losses[0], torch.stack(losses[1:]).sum(), "loss")


def _check_objective(
    contract: Contract, objective: Objective, model: Seq2Seq, batch: Batch, alone: Sequence[Batch]
) -> None:
    terms = []
    for one in (batch, *alone):
        outputs = model(one)
        if objective.needs_reverse:
            outputs, _ = with_reverse(model, outputs, one, label_smoothing=0.0)
        terms.append(objective.term(outputs, one))
    contract.require(terms[0].dim() == 0, "a term is a number", list(terms[0].shape))
    contract.require(torch.isfinite(terms[0]), "a term is finite", terms[0].item())
    contract.require_same(terms[0], torch.stack(terms[1:]).sum(), "the sum over rows")
    counts = [objective.count(one) for one in (batch, *alone)]
    contract.require(counts[0] == sum(counts[1:]), "counts of rows add up", counts)
