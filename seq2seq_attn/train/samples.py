"""Translations drawn from the model in training, for objectives that compare them with the reference."""

from __future__ import annotations

import torch

from seq2seq_attn.data.batch import Batch, collate
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.search.sample import sample_search
from seq2seq_attn.search.steps import step_model
from seq2seq_attn.text.vocab import EOS
from seq2seq_attn.translate.batching import eval_mode

MAX_RATIO, MAX_EXTRA = 2, 10
"""a sample has at most `MAX_RATIO` times the tokens of its reference, plus `MAX_EXTRA`"""


def with_samples(model: Seq2Seq, batch: Batch, num_samples: int) -> Batch:
    """Each pair, followed by its source with `num_samples` translations. They are drawn without dropout, with a seed
    from the global generator. A translation cut at its limit is followed by EOS, like any other."""
    device = batch.tgt_out_BT.device
    references = [row[: row.index(EOS)] for row in batch.tgt_out_BT.tolist()]
    limits = [MAX_RATIO * len(reference) + MAX_EXTRA for reference in references for _ in range(num_samples)]
    options = SearchOptions(method="sample", seed=int(torch.randint(2**31, ())), keep_attention=False)
    is_bf16 = torch.is_autocast_enabled(device.type) and torch.get_autocast_dtype(device.type) == torch.bfloat16
    # no autocast cache: inference tensors must not reach the autocast of the surrounding update
    without_cache = torch.autocast(device.type, enabled=False, cache_enabled=False)
    with torch.inference_mode(), eval_mode(model), without_cache:
        samples = sample_search(
            step_model(model, "bf16" if is_bf16 else "fp32"),
            batch.source.repeated(num_samples),
            options,
            numbers_B=list(range(num_samples)) * len(references),
            max_lengths_B=limits,
        )
    drawn = iter(samples)
    targets = [ids for reference in references for ids in (reference, *(next(drawn).ids for _ in range(num_samples)))]
    rows = batch.indices_B.repeat_interleave(1 + num_samples).tolist()
    return collate([[]] * len(rows), targets, rows).to(device)._replace(source=batch.source.repeated(1 + num_samples))
