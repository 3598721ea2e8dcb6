"""The loss of a batch: the output's loss, the terms of the configured objectives, and the loss of
the reverse model.

The reverse model p(x | y) is trained beside the first one where an objective needs it
(`Objective.needs_reverse`). It has the settings of the first model, with source and target swapped.
`RUN/reverse` is a run directory of its own: it can translate, score and be evaluated. Its weights
are those of the update that is best for the first direction. The saved state of the first run
includes the reverse model.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Config
from seq2seq_attn.data.batch import Batch, swapped
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import source_attention
from seq2seq_attn.model.output.base import DecoderOutputs, TakesTable
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.variants import Axis, Missing, build_variant
from seq2seq_attn.train.objectives.base import Objective

OBJECTIVE = Axis(
    "seq2seq_attn.train.objectives",
    "train.objectives.{name}",
    "train.objectives.{name}.options",
    "Objective",
)


class BatchLoss(NamedTuple):
    """Sums over a batch, in nats."""

    loss_sum: Tensor
    """0-d, over target tokens, label-smoothed, with its graph"""
    nll_sum: Tensor
    """0-d, over target tokens, not smoothed, detached"""
    terms: Sequence[Tensor]
    """0-d, the term of each objective, then the loss sum of the reverse model, if there is one;
    with graphs"""


def build_objectives(config: Config, model: Seq2Seq) -> dict[str, Objective]:
    """The objectives by name. Raises UsageError: a name or an option is unknown, an option has the
    wrong type, the model or the data lacks what an objective reads, or an objective has
    parameters."""
    attention = model.decoder.attention
    offered: dict[str, Any] = {
        "source_attention": source_attention(
            config.model, attention, alternative="leave the objective out"
        ),
        "drawing_attention": attention,
        "links": config.data.links,
    }
    if not attention.draws_positions:
        offered["drawing_attention"] = Missing(
            "reads which source positions the attention has drawn: set model.attention.name=hard "
            "and model.attention.options.estimator=reinforce"
        )
    if not config.data.links:
        offered["links"] = Missing(
            "reads word alignments of the training pairs: set data.links to ibm1, to a Pharaoh "
            "file, or, with data.corpus=captions, to gold"
        )
    objectives = {
        name: build_variant(OBJECTIVE, name, objective.options, **offered)
        for name, objective in config.train.objectives.items()
    }
    for name, objective in objectives.items():
        if isinstance(objective, nn.Module) and any(True for _ in objective.parameters()):
            raise UsageError(
                f"train.objectives.{name}: has parameters, which no optimizer would update; put "
                "them into the model, for example into the attention"
            )
    return objectives


def batch_loss(
    model: Seq2Seq,
    batch: Batch,
    *,
    label_smoothing: float = 0.0,
    teacher_forcing_ratio: float = 1.0,
    objectives: Sequence[Objective] = (),
    reverse: Seq2Seq | None = None,
) -> BatchLoss:
    """Run the model on a batch and sum its loss. Dropout and fed-back tokens draw from the global
    generator. `reverse`: the model of the other direction, if an objective needs it."""
    outputs = model(batch, teacher_forcing_ratio)
    loss = model.output.loss(outputs, batch, label_smoothing=label_smoothing)
    reverse_sums = []
    if reverse is not None:
        outputs, reverse_sum = with_reverse(
            reverse, outputs, batch, label_smoothing=label_smoothing
        )
        reverse_sums.append(reverse_sum)
    terms = [objective.term(outputs, batch) for objective in objectives]
    return BatchLoss(loss.loss_sum, loss.nll_sum, terms + reverse_sums)


def with_reverse(
    reverse: Seq2Seq, outputs: DecoderOutputs, batch: Batch, *, label_smoothing: float
) -> tuple[DecoderOutputs, Tensor]:
    """The outputs with the attention weights of the reverse model, and its loss sum over source
    tokens. The reverse model draws from a copy of the global generator, so that it does not change
    the first model's random numbers."""
    device, other = outputs.features_NF.device, swapped(batch)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        reverse_outputs = reverse(other)
        loss = reverse.output.loss(reverse_outputs, other, label_smoothing=label_smoothing)
    return outputs._replace(reverse_weights_SBT=reverse_outputs.weights_TBS), loss.loss_sum


def check_reverse(key: str, config: Config, model: Seq2Seq) -> None:
    """Check that the model can also be trained from target to source. `key` names the objective
    that needs it. Raises UsageError: a setting belongs to one direction."""
    data, output = config.data, model.output
    texts = [
        spec
        for spec in (data.train, data.valid, *data.test.values(), *data.extra)
        if isinstance(spec, str)
    ]
    refused = {
        "several sources (data.source_languages)": len(data.sources) > 1,
        "a source of vectors (data.source_language)": data.layout.vector_column is not None,
        f"model.output.name={config.model.output.name}": output.copies_source
        or isinstance(output, TakesTable),
        "attention that draws source positions": model.decoder.attention.draws_positions,
        "word vectors (model.embedding.source_vectors)": bool(config.model.embedding.files()),
        "data.tokenizer.target": data.tokenizer.target is not None,
        "data.tokenizer.sentences=true": data.tokenizer.sentences,
        "a .tsv file; give a file for each language": any(
            re.search(r"\.tsv(\.gz)?$", spec) for spec in texts
        ),
    }
    if setting := next((name for name, is_set in refused.items() if is_set), None):
        raise UsageError(
            f"{key}: also trains the model from target to source, which does not work with "
            f"{setting}"
        )


def reverse_config(config: Config) -> Config:
    """The configuration of the reverse model, as if it had been trained alone."""

    def swap(spec: str | list[str] | None) -> str | list[str] | None:
        # a list names the source file, then the target file; files of other texts are found by
        # their languages
        return spec[::-1] if isinstance(spec, list) else spec

    data = config.data
    swapped = {
        "source_language": data.target_language,
        "source_languages": [],
        "target_language": data.sources[0],
        "train": swap(data.train),
        "valid": swap(data.valid),
        "test": {name: swap(spec) for name, spec in data.test.items()},
        "extra": [swap(spec) for spec in data.extra],
        "links": None,
    }
    train = config.train.model_copy(update={"objectives": {}, "start_from": None})
    data = data.model_copy(update=swapped)
    return config.model_copy(
        update={"name": f"{config.name}-reverse", "data": data, "train": train}
    )
