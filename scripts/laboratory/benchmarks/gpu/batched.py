"""Several seeds side by side as one batched model: their weights are stacked, and `vmap` makes each
product a batched one."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from scripts.laboratory.benchmarks import train
from scripts.laboratory.benchmarks.measure import CPU
from scripts.laboratory.harness.records import Record
from scripts.laboratory.harness.turns import Contestant, take_turns
from seq2seq_attn.config import Config
from seq2seq_attn.data.batch import Batch, rounded_up
from seq2seq_attn.model import speed
from seq2seq_attn.model.build import build_model
from seq2seq_attn.runtime.device import Precision, autocast, tune_float32
from seq2seq_attn.train.loss import batch_loss

NUMBERS_OF_SEEDS = (1, 2, 4, 8, 16)
TURNS = 20


class _Loss(nn.Module):
    """The loss of a model as a module, which `torch.func` calls with other weights."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> Tensor:
        """The mean loss per target token."""
        return batch_loss(self.model, batch, label_smoothing=0.1).loss_sum / batch.num_tokens  # type: ignore[arg-type]


def measure(config: Config, device: torch.device) -> Record:
    """Target tokens per second of all seeds together, in bf16 on a GPU; and the largest relative
    difference of a seed's loss to that of its own model."""
    batches, sizes = train.make_batches(config, 1)
    batch = rounded_up(batches[train.BUCKETED][0], rows=16, positions=4).to(device)
    tune_float32("bf16" if device.type == "cuda" else "fp32", device)
    contestants, differences = [], {}
    for number in NUMBERS_OF_SEEDS if device != CPU else (2,):
        update, differences[number] = _batched_update(config, sizes, batch, number, device)
        contestants.append(Contestant(f"{number} seeds", update, device=device))
    take_turns(contestants, TURNS if device != CPU else 1, warm_up=2)
    rows = [
        {"seeds": number, "tokens_per_s": one.speed, "difference": worst}
        for one, (number, worst) in zip(contestants, differences.items(), strict=True)
    ]
    return {"batch_size": len(batch.indices_B), "rows": rows}


def _batched_update(
    config: Config, sizes: train.Sizes, batch: Batch, number: int, device: torch.device
) -> tuple[Callable[[int], float], float]:
    """An update of all seeds, each with its own copy of the batch, which returns the number of
    their tokens; and the difference of the losses."""
    models = []
    for seed in range(number):
        torch.manual_seed(seed)
        models.append(_Loss(build_model(config.model, **sizes._asdict()).to(device).train()))
    parameters, buffers = torch.func.stack_module_state(models)
    optimizer = torch.optim.AdamW(parameters.values(), lr=1e-3, fused=True)
    inputs = tuple(
        torch.stack([ids] * number)
        for ids in (batch.source.ids_BS, batch.tgt_in_BT, batch.tgt_out_BT)
    )
    precision: Precision = "bf16" if device.type == "cuda" else "fp32"

    def loss(
        parameters: dict[str, Tensor], ids_BS: Tensor, tgt_in_BT: Tensor, tgt_out_BT: Tensor
    ) -> Tensor:
        source = batch.source._replace(ids_BS=ids_BS)
        mine = batch._replace(source=source, tgt_in_BT=tgt_in_BT, tgt_out_BT=tgt_out_BT)
        mean: Tensor = torch.func.functional_call(models[0], (parameters, buffers), (mine,))
        return mean

    def forward_backward() -> Tensor:
        with speed.plain(), autocast(precision, device):
            losses: Tensor = torch.func.vmap(loss, randomness="different")(parameters, *inputs)
        torch.autograd.backward(losses.sum())
        return losses.detach()

    losses = forward_backward()
    with speed.plain(), torch.no_grad(), autocast(precision, device):
        expected = torch.stack([model(batch) for model in models])
    graph = torch.cuda.CUDAGraph() if device.type == "cuda" else None
    if graph is not None:
        with torch.cuda.graph(graph):
            forward_backward()

    def update(_: int) -> float:
        optimizer.zero_grad(set_to_none=False)
        if graph is None:
            forward_backward()  # holds the inputs, which a graph reads where they were
        else:
            graph.replay()
        optimizer.step()
        return number * batch.num_tokens

    return update, float((losses / expected - 1.0).abs().max())
