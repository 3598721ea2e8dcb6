"""Write the loss curves of tests/golden, and print by how much they changed.

    scripts/lab golden NAME...     the named attentions; without a name, all of them

A curve is fifty deterministic updates on the reverse task, which a refactoring must not change.
"""

import json
from collections.abc import Sequence

import torch

from scripts.laboratory.harness.records import ROOT
from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import Batch, collate
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import read_json
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.text.vocab import ExtendedIds
from seq2seq_attn.train.loss import batch_loss

CURVES = ROOT / "tests" / "golden" / "curves.json"
FIRST_ID, NUM_TYPES = 4, 11
SIZES = {
    "embedding_size": 16,
    "hidden_size": 32,
    "readout_size": 16,
    "encoder": {"hidden_size": 16},
}
DROPOUT = {"embedding": 0.0, "encoder": 0.0, "readout": 0.0}
DRAWING = ("hard", "monotonic")
"""attention variants that draw random numbers in training"""


def main(arguments: Sequence[str]) -> None:
    variants = packaged_variants("attention")
    for name in arguments:
        if name not in variants:
            raise UsageError(f"no attention {name}; there are {', '.join(variants)}")
    curves = read_json(CURVES)
    for name in arguments or variants:
        curve = loss_curve(name)
        stored = curves.get(name, curve)
        change = max(abs(a / b - 1) for a, b in zip(curve, stored, strict=True))
        print(f"{name:12} from {curve[0]:.4f} to {curve[-1]:.4f}; largest change {change:.1e}")
        curves[name] = curve
    curves = {name: curves[name] for name in sorted(curves) if name in variants}
    CURVES.write_text(json.dumps(curves, indent=1) + "\n", encoding="utf-8")


def loss_curve(variant: str, num_updates: int = 50, device: str = "cpu") -> list[float]:
    """Mean loss per target token (nats, label-smoothed) of each update, float32, one thread.

    No dropout and no sampling: the generators of other devices draw other numbers.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        torch.manual_seed(7)
        settings = {
            **SIZES,
            "tie_embeddings": "target",
            "attention": {"name": variant},
            "dropout": DROPOUT,
        }
        config = ModelConfig.model_validate(settings)
        model = build_model(
            config, num_source_ids=FIRST_ID + NUM_TYPES, num_target_ids=FIRST_ID + NUM_TYPES
        )
        model.to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        curve = []
        for update in range(num_updates):
            batch = reverse_batch(32, num_types=NUM_TYPES, max_length=6, seed=update).to(
                torch.device(device)
            )
            optimizer.zero_grad()
            loss = batch_loss(model, batch, label_smoothing=0.1)
            (loss.loss_sum / batch.num_tokens).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            curve.append(loss.loss_sum.item() / batch.num_tokens)
        return curve
    finally:
        torch.set_num_threads(threads)


def repeatable_attentions() -> list[str]:
    """The attention variants that draw no random numbers: another device, or a CUDA graph, would
    draw others."""
    return [name for name in packaged_variants("attention") if name not in DRAWING]


def reverse_pairs(
    num_pairs: int, *, num_types: int, max_length: int, seed: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Sources of 1 to `max_length` random ids; the target is the source reversed.

    The task is small enough to learn in a test and impossible to guess.
    """
    generator = torch.Generator().manual_seed(seed)
    sources = []
    for _ in range(num_pairs):
        length = int(torch.randint(1, max_length + 1, (1,), generator=generator))
        sources.append(
            torch.randint(FIRST_ID, FIRST_ID + num_types, (length,), generator=generator).tolist()
        )
    return sources, [source[::-1] for source in sources]


def reverse_batch(num_pairs: int, *, num_types: int, max_length: int, seed: int) -> Batch:
    sources, targets = reverse_pairs(
        num_pairs, num_types=num_types, max_length=max_length, seed=seed
    )
    extended = [ExtendedIds(*pair) for pair in zip(sources, targets, strict=True)]
    return collate(sources, targets, range(num_pairs), extended=extended)
