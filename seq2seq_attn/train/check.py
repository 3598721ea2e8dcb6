"""All checks that need only the configuration and the machine, before data is prepared. Variants
from `--import` also make a dry run: two steps of a small batch, checked against the contracts.
`pytest tests/contract --import MODULE` asks the whole contract.

Shapes: B sentence pairs, S source positions.
"""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seq2seq_attn.config import Config
from seq2seq_attn.data.batch import Batch, collate
from seq2seq_attn.data.links import links_file
from seq2seq_attn.data.sources import find_extra, split_names
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import ENCODER_SHORTHANDS, build_model, model_without_weights
from seq2seq_attn.model.decoder.base import StepOutput
from seq2seq_attn.model.encoder.base import zeroed
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.variants import (
    AXES,
    SCORER,
    ModelAxis,
    find_build,
    located,
    packaged_variants,
    takes,
)
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.search.base import find_search
from seq2seq_attn.search.steps import PlainSteps
from seq2seq_attn.text.tokenizers.base import NONE, VECTORS
from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer
from seq2seq_attn.text.vocab import EOS, PAD, SPECIALS
from seq2seq_attn.train.graphs import check_graphs
from seq2seq_attn.train.loss import OBJECTIVE, build_objectives, check_reverse, with_reverse
from seq2seq_attn.train.objectives.base import Objective
from seq2seq_attn.train.schedules import Schedules

MAX_PARAMETERS = 2_000_000_000
"""without word embeddings; with gradients and Adam's two averages that is 32 GB"""
SOURCE_LENGTHS, TARGETS = (5, 2, 1), ([4, 5], [6], [4])
"""words of each pair of the dry run, EOS not included; the first source is the longest, so the
others are padded"""

log = logging.getLogger(__name__)


def check_config(config: Config) -> None:
    """Check the settings against each other and the machine. Settings without effect pass. Raises
    UsageError: a variant or language is unknown, sizes do not fit together, a device does not
    exist, an imported variant breaks its contract, and the like."""
    data = config.data
    # on the meta device, without weights; the true sizes of the vocabularies are known with the
    # data
    sizes = {
        "num_source_ids": len(SPECIALS),
        "num_target_ids": len(SPECIALS) + (not data.vocab.joint),
    }
    model = model_without_weights(config.model, **sizes, vector_sizes=_vector_sizes(config))
    if (number := sum(tensor.numel() for tensor in model.state_dict().values())) > MAX_PARAMETERS:
        raise UsageError(
            f"model: {number:,} parameters besides the vocabulary's; expected at most "
            f"{MAX_PARAMETERS:,}; lower a size, such as model.hidden_size, or the number of layers"
        )
    objectives, settings = build_objectives(config, model), config.train.objectives
    for name, objective in objectives.items():
        if objective.needs_reverse:
            check_reverse(f"train.objectives.{name}", config, model)
    learners = [
        name
        for name in objectives
        if settings[name].weight and takes(OBJECTIVE, name, "drawing_attention")
    ]
    if model.decoder.attention.draws_positions and not learners:
        raise UsageError(
            "model.attention.options.estimator=reinforce: only the objective reinforce trains "
            "these weights; add -c objective/reinforce, with a weight above 0, or set "
            "estimator=straight_through"
        )
    _check_imported(config)
    for name in find_search(config.search)[1].scorers:
        find_build(SCORER, name)
    resolve_device(config.train.device)
    Schedules(config.train, updates_per_epoch=1)
    check_graphs(config)
    limits = (config.train.max_epochs, config.train.max_updates, config.train.max_minutes)
    if not any((*limits, config.train.validation.patience)):
        log.warning(
            "no limit is set: training goes on until Ctrl-C; set train.max_epochs, max_updates, "
            "max_minutes or train.validation.patience"
        )
    if NONE in data.sources and config.train.validation.metric != "perplexity":
        raise UsageError(
            f"train.validation.metric={config.train.validation.metric}: a language model "
            f"(data.source_language={NONE}) has no translations; set "
            "train.validation.metric=perplexity, or add -c language-model"
        )
    split_names(data)  # rejects an invalid corpus
    links_file(data)
    find_extra(data)
    if data.tokenizer.name == "spacy":
        for language in [*data.sources, *([] if data.tokenizer.target else [data.target_language])]:
            if language not in (NONE, VECTORS):
                SpacyTokenizer(language)


def _vector_sizes(config: Config) -> list[int | None]:
    """For each source, 1 in place of the unknown size of its vectors, or None for text."""
    return [1 if source == VECTORS else None for source in config.data.sources]


def _check_imported(config: Config) -> None:
    """Check the variants that the package does not have. The global generator stays as it is.
    Raises UsageError: a variant breaks its contract; the message names the variant, the rule, and
    what was seen."""
    settings = config.model
    shorthand = (settings.encoder.name, settings.encoder.cell)
    encoder, encoder_cell = ENCODER_SHORTHANDS.get(settings.encoder.name, shorthand)
    named: list[tuple[ModelAxis, str]] = [
        *(
            ("attention", settings.attention.name),
            ("normalizer", settings.attention.normalizer),
            ("encoder", encoder),
        ),
        *(("cell", cell) for cell in sorted({encoder_cell, settings.decoder.cell})),
        *(("decoder", settings.decoder.name), ("output", settings.output.name)),
    ]
    variants = [
        AXES[axis].key.format(name=name)
        for axis, name in named
        if name not in packaged_variants(axis)
    ]
    own_objectives = [
        name for name in config.train.objectives if name not in packaged_variants(OBJECTIVE)
    ]
    if not variants and not own_objectives:
        return
    with torch.random.fork_rng(devices=[]):
        num_ids = len(SPECIALS) + max(SOURCE_LENGTHS)
        vectors = _vector_sizes(config)
        model = build_model(
            settings, num_source_ids=num_ids, num_target_ids=num_ids, vector_sizes=vectors
        )
        objectives = build_objectives(config, model)
        batch, pairs = _dry_batch(config, range(3)), [_dry_batch(config, [row]) for row in range(3)]
        variant = ", ".join(variants)
        try:
            if variants:
                _dry_steps(model.train(), batch)
                _check_model(model.eval(), batch, pairs)
            for name in own_objectives:
                variant = OBJECTIVE.key.format(name=name)
                _check_objective(objectives[name], model.eval(), batch, pairs)
        except UsageError as broken:
            raise UsageError(
                f"{variant}: breaks its contract in a dry run: {broken}"
            ) from broken.__cause__


def _dry_batch(config: Config, rows: Sequence[int]) -> Batch:
    """Some of the pairs, with as many sources as the configuration has."""
    words = [range(len(SPECIALS), len(SPECIALS) + SOURCE_LENGTHS[row]) for row in rows]
    sources = [[id for _ in config.data.sources for id in (*ids, EOS)][:-1] for ids in words]
    vectors = (
        [np.ones((len(ids), 1), dtype=np.float32) for ids in sources]
        if VECTORS in config.data.sources
        else None
    )
    links = [np.zeros((1, 2), dtype=np.int32) for _ in rows]
    return collate(sources, [TARGETS[row] for row in rows], rows, links, vectors=vectors)


@torch.no_grad()
def _check_model(model: Seq2Seq, batch: Batch, pairs: Sequence[Batch]) -> None:
    """A batch gives what its pairs give alone; the loss is that of the probabilities; a step of the
    search works."""
    padded, alone = (
        _dry_steps(model, batch),
        zip(*(_dry_steps(model, pair) for pair in pairs), strict=True),
    )
    for step, steps_alone in zip(padded, alone, strict=True):
        for what in ("context_BM", "features_BF"):
            _require_same(
                getattr(step, what), torch.cat([getattr(one, what) for one in steps_alone]), what
            )
    steps, ids_R = PlainSteps(model), batch.tgt_in_BT[:, 0].repeat_interleave(2)
    try:
        state = steps.start(batch.source, 2)
        for order in (
            [1, 0, 2, 2, 5, 4],
            [2, 3, 4, 5],
        ):  # the second time without the first sentence
            _, state = steps.step(ids_R, state)
            state, ids_R = steps.reorder(state, torch.tensor(order)), ids_R[: len(order)]
        steps.step(ids_R, state)
    except Exception as error:
        raise UsageError(f"a search step works; seen: {located(error)}") from error
    outputs = model(batch)
    real_N = outputs.targets_N != PAD
    totals_N = outputs.log_probs_of(real_N.nonzero().squeeze(1)).logsumexp(dim=1).exp()
    _require(((totals_N - 1.0).abs() < 1e-3).all(), "probabilities sum to 1", totals_N)
    losses = [
        model.output.loss(model(one), one, label_smoothing=0.0).loss_sum for one in (batch, *pairs)
    ]
    _require_same(losses[0], torch.stack(losses[1:]).sum(), "loss")
    both = torch.stack([losses[0], -outputs.target_log_probs()[real_N].sum()])
    _require(
        torch.allclose(both[0], both[1], rtol=1e-3), "the loss is that of the probabilities", both
    )


def _dry_steps(model: Seq2Seq, batch: Batch) -> list[StepOutput]:
    """Two steps, with the rules of weights, memory and state."""
    mask_BS, num_rows = batch.source.mask_BS, len(batch.tgt_in_BT)
    memory, state = model.decoder.attention.prepare(
        zeroed(model.encoder(batch.source)), batch.source
    )
    _require_rows(memory, "the attention's memory", num_rows)
    _require_rows(state, "the attention's state", num_rows)
    memory, state = model.prepare(batch.source)
    steps = []
    for ids_B in batch.tgt_in_BT.t()[:2]:
        steps.append(model.step(ids_B, state, memory))
        weights_BS, state = steps[-1].weights_BS, steps[-1].state
        sums_B = weights_BS.sum(dim=1)
        _require((weights_BS >= 0).all(), "weights are never negative", weights_BS.min())
        _require(((sums_B - 1.0).abs() < 1e-3).all(), "weights sum to 1", sums_B)
        if model.has_attention:
            _require(
                weights_BS.shape == mask_BS.shape, "weights are [B, S]", list(weights_BS.shape)
            )
            on_padding_BS = weights_BS.masked_fill(mask_BS, 0.0)
            _require((on_padding_BS == 0).all(), "weights are 0 on padding", on_padding_BS.max())
        _require_rows(state, "state", num_rows)
    return steps


def _check_objective(
    objective: Objective, model: Seq2Seq, batch: Batch, pairs: Sequence[Batch]
) -> None:
    """The term of a batch is the finite sum of those of its pairs; so is the count."""
    terms = []
    for one in (batch, *pairs):
        outputs = model(one)
        if objective.needs_reverse:
            outputs, _ = with_reverse(model, outputs, one, label_smoothing=0.0)
        terms.append(objective.term(outputs, one))
    _require(terms[0].dim() == 0, "a term is a number", list(terms[0].shape))
    _require(torch.isfinite(terms[0]), "a term is finite", terms[0])
    _require_same(terms[0], torch.stack(terms[1:]).sum(), "the sum over pairs")
    counts = [objective.count(one) for one in (batch, *pairs)]
    _require(counts[0] == sum(counts[1:]), "the counts of pairs add up", counts)


def _require_rows(fields: Any, what: str, num_rows: int) -> None:
    """Memory and state are tensors, or named tuples of them, with a row for each row of the
    batch."""
    if isinstance(fields, Tensor):
        is_batch_first = fields.dim() > 0 and len(fields) == num_rows
        _require(is_batch_first, f"{what} is batch-first, {num_rows} rows", list(fields.shape))
    elif fields is not None:
        is_named = isinstance(fields, tuple) and hasattr(fields, "_fields")
        _require(is_named, f"{what} is a named tuple of tensors", type(fields).__name__)
        for name, field in zip(fields._fields, fields, strict=True):
            _require_rows(field, f"{what}.{name}", num_rows)


def _require_same(padded: Tensor, alone: Tensor, what: str) -> None:
    is_same = padded.shape == alone.shape and torch.allclose(padded, alone, rtol=1e-3, atol=1e-4)
    seen = f"{what}: {_numbers(padded)} in a batch, {_numbers(alone)} alone"
    _require(is_same, "padding does not change results", seen)


def _require(is_kept: bool | Tensor, rule: str, seen: object) -> None:
    if not is_kept:
        raise UsageError(f"{rule}; seen: {_numbers(seen) if isinstance(seen, Tensor) else seen}")


def _numbers(tensor: Tensor) -> str:
    """The first ones."""
    return ", ".join(f"{number:.3g}" for number in tensor.flatten()[:3].tolist())
