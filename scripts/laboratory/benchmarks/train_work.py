"""The ways to train that `bench_train` and `gpu` compare: the tutorial's own loop and ours, on the same batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import nn

from scripts.laboratory.benchmarks.tutorial_model import copy_weights, tutorial_model
from scripts.harness.records import Record
from seq2seq_attn.config import Config, ModelConfig
from seq2seq_attn.data.batch import Batch, collate
from seq2seq_attn.data.buckets import bucketed_batches
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.model import speed
from seq2seq_attn.model.build import build_model
from seq2seq_attn.runtime.precision import Precision
from seq2seq_attn.train.batches import UpdateBatches
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.update import Updater

RANDOM, BUCKETED = "random batches", "bucketed batches"
Update = Callable[[Batch], None]


class Sizes(NamedTuple):
    """Of the vocabularies."""

    num_source_ids: int
    num_target_ids: int


def updates_over(batches: Sequence[Batch], update: Update) -> Callable[[int], float]:
    """A contestant's work: turn n is an update on batch n, wrapping around; target tokens with EOS, without padding."""

    def work(number: int) -> float:
        batch = batches[number % len(batches)]
        update(batch)
        return batch.num_tokens

    return work


def make_batches(config: Config, num_batches: int) -> tuple[dict[str, list[Batch]], Sizes]:
    """Bucketed and random batches of the training split, and the sizes of the vocabularies."""
    prepared = prepare_corpus(config)
    pairs = prepared.pairs("train")
    size = min(config.train.batch.size, len(pairs))
    bucketed = bucketed_batches(
        pairs.source_lengths, pairs.target_lengths, size=size, unit="sentences", seed=1, epoch=0
    )
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(1)).tolist()
    random = [order[i * size : (i + 1) * size] for i in range(len(pairs) // size)]
    batches = {
        kind: [pairs.batch(indices) for indices in found[:num_batches]]
        for kind, found in ((BUCKETED, bucketed), (RANDOM, random))
    }
    return batches, Sizes(len(prepared.source_vocab), len(prepared.target_vocab))


def flops_per_token(model: ModelConfig, sizes: Sizes, batches: Sequence[Batch]) -> float:
    """Useful operations per target token, forward and backward, without padding: those of the matrix products."""
    embedding, memory = model.embedding_size, 2 * model.encoder.hidden_size
    hidden = model.hidden_size or memory
    option = model.attention.options.get("attention_size")
    scoring = option if isinstance(option, int) else hidden
    joined = hidden + memory + embedding
    readout = model.readout_size
    output = joined * sizes.num_target_ids if readout is None else readout * (joined + sizes.num_target_ids)
    if model.output.name == "lexical":
        output += embedding * (embedding + sizes.num_target_ids)
    per_target = output + 3 * hidden * (embedding + memory + hidden) + hidden * scoring
    if model.decoder.name == "conditional":
        per_target += 3 * hidden * hidden  # its second cell reads the first one's state
    per_source = 6 * model.encoder.hidden_size * (embedding + model.encoder.hidden_size) + memory * scoring
    source = sum(int(batch.source.lengths_B.sum()) for batch in batches)
    target = sum(batch.num_tokens for batch in batches)
    return 6.0 * (per_target + per_source * source / target)


def run_update(
    config: Config,
    sizes: Sizes,
    precision: Precision,
    ratio: float,
    device: torch.device,
    *,
    off: Sequence[str] = (),
    cuda_graphs: bool = False,
) -> Update:
    """Ours as `seq2seq train` runs it, without the fast paths named in `off` (`model.speed`); each batch is prepared
    once, as it is ahead of time in training."""
    torch.manual_seed(1)
    settings = config.train.model_copy(update={"cuda_graphs": cuda_graphs})
    model = build_model(config.model, **sizes._asdict()).to(device)
    updater = Updater(model, settings, device=device, precision=precision)
    prepared: dict[int, UpdateBatches] = {}

    def update(batch: Batch) -> None:
        if id(batch) not in prepared:
            prepared[id(batch)] = UpdateBatches([updater.prepare(batch)], [batch.indices_B.tolist()], batch.num_tokens)
        with speed.without(off):
            updater.train_step(prepared[id(batch)], update=1, learning_rate=1e-3, teacher_forcing_ratio=ratio)

    return update


def tutorial_update(config: Config, sizes: Sizes, packed: bool, ratio: float, device: torch.device) -> Update:
    """The tutorial's own update: cross-entropy over all positions, padding ignored."""
    model = tutorial_model(config.model, **sizes._asdict(), packed=packed).to(device)
    optimizer = torch.optim.Adam(model.parameters())

    def update(batch: Batch) -> None:
        batch = batch.to(device)
        logits = model(batch.source.ids_BS.t(), batch.source.lengths_B, batch.tgt_in_BT.t(), ratio)
        targets = batch.tgt_out_BT.t().flatten()
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets, ignore_index=0)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return update


def gradient_differences(
    config: Config, sizes: Sizes, of_precisions: Sequence[Precision], device: torch.device
) -> Record:
    """Relative difference of the loss and of all gradients to the tutorial's, teacher-forced, without dropout."""
    torch.manual_seed(2)
    model = build_model(config.model, **sizes._asdict()).eval()
    tutorial = tutorial_model(config.model, **sizes._asdict(), packed=True).eval()
    copy_weights(tutorial, model)
    model, tutorial = model.to(device), tutorial.to(device)
    batch = _random_batch(sizes).to(device)
    logits = tutorial(batch.source.ids_BS.t(), batch.source.lengths_B, batch.tgt_in_BT.t(), 1.1)
    targets = batch.tgt_out_BT.t().flatten()
    expected = nn.functional.cross_entropy(logits.flatten(0, 1), targets, ignore_index=0, reduction="sum")
    expected.backward()  # type: ignore[no-untyped-call]
    theirs = (
        tutorial.get_parameter("output.weight"),
        tutorial.get_parameter("decoder.weight_hh_l0"),
        tutorial.get_parameter("source_embedding.weight"),
    )
    ours = (
        model.get_parameter("output.projection.weight"),
        model.get_parameter("decoder.cell.recurrent_weight_PH"),
        model.get_parameter("encoder.embedding.weight"),
    )
    found: Record = {}
    for precision in of_precisions:
        model.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = batch_loss(model, batch).loss_sum
        loss.backward()  # type: ignore[no-untyped-call]
        worst = max(_relative_difference(a, b) for a, b in zip(ours, theirs, strict=True))
        found[precision] = {"loss": abs(loss.item() / expected.item() - 1), "gradients": worst}
    return found


def _random_batch(sizes: Sizes) -> Batch:
    """Eight pairs of random ids."""
    generator = torch.Generator().manual_seed(3)
    lengths = [5, 9, 12, 7, 3, 10, 8, 12]
    source, target = (
        [torch.randint(4, num_ids, (n,), generator=generator).tolist() for n in lengths] for num_ids in sizes
    )
    return collate(source, target, range(len(lengths)))


def _relative_difference(a: nn.Parameter, b: nn.Parameter) -> float:
    """Of two parameters' gradients."""
    assert a.grad is not None
    assert b.grad is not None
    return float((a.grad - b.grad).norm() / b.grad.norm())
