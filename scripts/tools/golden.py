"""Fifty deterministic updates on the reverse task: the curve that a refactoring must not change."""

import torch

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.model.build import build_model
from seq2seq_attn.train.loss import batch_loss
from tests.toy import FIRST_ID, reverse_batch

NUM_TYPES = 11


def loss_curve(variant, num_updates=50, device="cpu"):
    """Mean loss per target token (nats, label-smoothed) of each update, float32, one thread.

    No dropout and no sampling: the generators of other devices draw other numbers.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        torch.manual_seed(7)
        config = ModelConfig(
            embedding_size=16,
            hidden_size=32,
            readout_size=16,
            tie_embeddings="target",
            attention={"name": variant},
            encoder={"hidden_size": 16},
            dropout={"embedding": 0.0, "encoder": 0.0, "readout": 0.0},
        )
        model = build_model(config, num_source_ids=FIRST_ID + NUM_TYPES, num_target_ids=FIRST_ID + NUM_TYPES)
        model.to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        curve = []
        for update in range(num_updates):
            batch = reverse_batch(32, num_types=NUM_TYPES, max_length=6, seed=update).to(torch.device(device))
            optimizer.zero_grad()
            loss = batch_loss(model, batch, label_smoothing=0.1)
            (loss.loss_sum / loss.num_tokens).backward()
            optimizer.step()
            curve.append(loss.loss_sum.item() / loss.num_tokens)
        return curve
    finally:
        torch.set_num_threads(threads)
