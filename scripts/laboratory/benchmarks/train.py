"""Training speed at the function of the PyTorch attention tutorial: its own loop, written anew
here, against ours.

Other benchmarks compare its updates too.
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from scripts.laboratory.benchmarks.measure import CPU, build_parser, publish, toy_settings
from scripts.laboratory.benchmarks.tutorial import TutorialModel, tutorial_loss, tutorial_update
from scripts.laboratory.golden import reverse_batch
from scripts.laboratory.harness.records import Record
from scripts.laboratory.harness.turns import Contestant, precisions, ratio_fields, take_turns
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.data.buckets import bucketed_batches
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.model.build import build_model
from seq2seq_attn.runtime.device import Precision, autocast, tune_float32
from seq2seq_attn.runtime.memory import reuse_large_blocks
from seq2seq_attn.train.batches import UpdateBatches
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.update import Updater

RANDOM, BUCKETED = "random batches", "bucketed batches"
TEACHER_FORCING = {"tutorial": 0.5, "multi30k": 1.0}
Update = Callable[[Batch], object]


class Sizes(NamedTuple):
    """Numbers of ids of the vocabularies."""

    num_source_ids: int
    num_target_ids: int


class Amount(NamedTuple):
    """How many batches a function is measured on, and how often."""

    batches: int = 8
    rounds: int = 1
    warm_up_rounds: int = 1


QUICK = Amount(batches=1)


def main(arguments: Sequence[str]) -> None:
    options = build_parser("train", __doc__).parse_args(arguments)
    reuse_large_blocks()  # as `seq2seq train` does; it helps the tutorial's loops too
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        toy = toy_settings(Path(folder)) if options.quick else {}
        record = measure(load_config(["tutorial"], toy), QUICK if options.quick else Amount())
    publish(record, options.record)


def measure(
    config: Config, amount: Amount, device: torch.device = CPU, *, cuda_graphs: bool = False
) -> Record:
    """Updates in paired turns, with a fixed teacher forcing; the tutorial's loops only at the
    tutorial's function."""
    is_tutorial = config.name == "tutorial"
    ratio = TEACHER_FORCING[config.name]
    batches, sizes = make_batches(config, amount.batches)
    contestants = tutorial_contestants(config, sizes, batches, ratio, device) if is_tutorial else []
    contestants += our_contestants(
        config, sizes, batches[BUCKETED], device, cuda_graphs=cuda_graphs
    )
    num_turns = amount.rounds * amount.batches
    # the warm-up has all batches: oneDNN compiles for each new shape, and most shapes of a run are
    # not new
    take_turns(contestants, num_turns, warm_up=amount.warm_up_rounds * amount.batches)
    bases = contestants[: 2 if is_tutorial else 1]
    options = {"config": config.name, "threads": torch.get_num_threads(), "batches": num_turns}
    compared = precisions(device) if is_tutorial else []
    return {
        "options": {**options, "batch_size": config.train.batch.size, "teacher_forcing": ratio},
        "rows": [
            {"name": one.name, "tokens_per_s": one.speed, **ratio_fields(one, bases)}
            for one in contestants
        ],
        "differences": {
            name: gradient_difference(config, sizes, name, device) for name in compared
        },
    }


def our_contestants(
    config: Config, sizes: Sizes, batches: list[Batch], device: torch.device, *, cuda_graphs: bool
) -> list[Contestant]:
    """Ours in each precision, also with CUDA graphs."""
    contestants = []
    for graphs in (False, True) if cuda_graphs else (False,):
        for precision in precisions(device):
            updater = our_updater(config, sizes, precision, device, cuda_graphs=graphs)
            update = updates_over(batches, our_update(updater, TEACHER_FORCING[config.name]))

            def turn(
                number: int,
                precision: Precision = precision,
                update: Callable[[int], float] = update,
            ) -> float:
                tune_float32(precision, device)  # as `seq2seq train` does
                try:
                    return update(number)
                finally:
                    torch.set_float32_matmul_precision("highest")

            way = "fast, CUDA graphs" if graphs else "fast"
            contestants.append(Contestant(f"ours, {way}, {precision}", turn, device=device))
    return contestants


def updates_over(batches: Sequence[Batch], update: Update) -> Callable[[int], float]:
    """A contestant's work: turn n is an update on batch n, wrapping around; target tokens with EOS,
    without padding."""

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
    lengths = (pairs.source_lengths, pairs.target_lengths)
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(1)).tolist()
    bucketed = bucketed_batches(*lengths, size=size, unit="sentences", seed=1, epoch=0)
    shuffled = [order[start : start + size] for start in range(0, len(pairs) - size + 1, size)]
    batches = {
        BUCKETED: [pairs.batch(indices) for indices in bucketed[:num_batches]],
        RANDOM: [pairs.batch(indices) for indices in shuffled[:num_batches]],
    }
    return batches, Sizes(len(prepared.source_vocab), len(prepared.target_vocab))


def our_updater(
    config: Config,
    sizes: Sizes,
    precision: Precision,
    device: torch.device = CPU,
    *,
    cuda_graphs: bool = False,
) -> Updater:
    """Model and optimizer of a configuration as `seq2seq train` builds them."""
    torch.manual_seed(1)
    settings = config.train.model_copy(update={"cuda_graphs": cuda_graphs})
    model = build_model(config.model, **sizes._asdict()).to(device)
    return Updater(model, settings, device=device, precision=precision)


def our_update(updater: Updater, ratio: float) -> Callable[[Batch], float]:
    """Our update, which returns the loss per token; each batch is prepared once, as it is ahead of
    time in training."""
    prepared: dict[int, UpdateBatches] = {}

    def update(batch: Batch) -> float:
        if id(batch) not in prepared:
            prepared[id(batch)] = UpdateBatches(
                [updater.prepare(batch)], [batch.indices_B.tolist()], batch.num_tokens
            )
        result = updater.apply_update(
            prepared[id(batch)], update=1, learning_rate=1e-3, teacher_forcing_ratio=ratio
        )
        return result.loss_sum / batch.num_tokens

    return update


def tutorial_contestants(
    config: Config,
    sizes: Sizes,
    batches: dict[str, list[Batch]],
    ratio: float,
    device: torch.device,
) -> list[Contestant]:
    """The tutorial's own updates on random and on bucketed batches: its two notebooks."""

    def tutorial(kind: str) -> Contestant:
        model = TutorialModel(config.model, **sizes._asdict(), packed=kind == BUCKETED).to(device)
        optimizer = torch.optim.Adam(model.parameters())

        def update(batch: Batch) -> None:
            tutorial_update(model, optimizer, batch.to(device), ratio)

        return Contestant(f"tutorial, {kind}", updates_over(batches[kind], update), device=device)

    return [tutorial(RANDOM), tutorial(BUCKETED)]


def gradient_difference(
    config: Config, sizes: Sizes, precision: Precision, device: torch.device = CPU
) -> Record:
    """Relative difference of the loss and of the gradients to the tutorial's, teacher-forced,
    without dropout."""
    torch.manual_seed(2)
    model = build_model(config.model, **sizes._asdict()).eval()
    tutorial = TutorialModel(config.model, **sizes._asdict(), packed=True).eval()
    tutorial.copy_weights(model)
    model, tutorial = model.to(device), tutorial.to(device)
    batch = reverse_batch(8, num_types=min(sizes) - 4, max_length=12, seed=3).to(device)
    with torch.backends.cudnn.flags(enabled=False):  # its GRU has no backward pass without dropout
        expected = tutorial_loss(tutorial, batch, 1.1, "sum")
        expected.backward()  # type: ignore[no-untyped-call]
    with autocast(precision, device):
        loss = batch_loss(model, batch).loss_sum
    loss.backward()  # type: ignore[no-untyped-call]
    names = {
        "output.projection.weight": "output.weight",
        "decoder.cell.recurrent_weight_PH": "decoder.weight_hh_l0",
        "encoder.embedding.weight": "source_embedding.weight",
    }
    worst = 0.0
    for our_name, their_name in names.items():
        ours = model.get_parameter(our_name).grad
        theirs = tutorial.get_parameter(their_name).grad
        assert ours is not None
        assert theirs is not None
        worst = max(worst, float((ours - theirs).norm() / theirs.norm()))
    return {"loss": abs(loss.item() / expected.item() - 1), "gradients": worst}
