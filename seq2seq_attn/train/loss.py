"""The loss: cross-entropy summed over target tokens, in chunks of rows, with its gradient made on the way.

    L = sum_i [ -(1 - eps) log p_i(y_i) - eps / V sum_v log p_i(v) ]

(Szegedy et al. 2016, section 7, for the smoothing eps.) No tensor of all tokens times the vocabulary ever exists: each
chunk's logits become their own gradient in place.

Shapes: N target tokens, rounded up, F readout features, V target vocabulary.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model.gru import compute_dtype
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.text.vocab import PAD

CHUNK_CELLS = 4 * 1024 * 1024
"""Logits alive at once on a CPU: 16 MB in float32, about what a last-level cache holds."""
GPU_CHUNK_CELLS = 64 * 1024 * 1024
"""On a GPU: 256 MB, for fewer, larger products."""


class BatchLoss(NamedTuple):
    """Sums over a batch's target tokens, in nats."""

    loss_sum: Tensor
    """0-d, label-smoothed, carries the graph"""
    nll_sum: Tensor
    """0-d, not smoothed, detached"""
    num_tokens: int


def batch_loss(
    model: Seq2Seq, batch: Batch, *, label_smoothing: float = 0.0, teacher_forcing_ratio: float = 1.0
) -> BatchLoss:
    """Run the model on a batch and sum its loss. Dropout and fed-back tokens draw from the global generator."""
    features_NF = model(batch, teacher_forcing_ratio)
    output = model.decoder.output
    loss_sum, nll_sum = chunked_cross_entropy(features_NF, output.weight, output.bias, batch.targets_N, label_smoothing)
    return BatchLoss(loss_sum, nll_sum, batch.num_tokens)


def chunked_cross_entropy(
    features_NF: Tensor, weight_VF: Tensor, bias_V: Tensor, targets_N: Tensor, label_smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Smoothed loss (with graph) and plain negative log-likelihood (detached), both summed over tokens.

    Rows whose target is PAD do not count.
    """
    needs_grad = torch.is_grad_enabled()  # inside a Function it is always off
    loss_sum, nll_sum = _ChunkedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        features_NF, weight_VF, bias_V, targets_N, label_smoothing, needs_grad
    )
    return loss_sum, nll_sum


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float, needs_grad: bool
    ) -> tuple[Tensor, Tensor]:
        low = compute_dtype(weight)
        wide = weight.dtype
        needs_grad = needs_grad and any(ctx.needs_input_grad)
        features_low, weight_low, bias_low = features.to(low), weight.to(low), bias.to(low)
        num_ids = weight.shape[0]
        sums = torch.zeros(2, dtype=wide, device=weight.device)
        grad_features = torch.empty_like(features_low) if needs_grad else None
        grad_weight, grad_bias = (torch.zeros_like(weight), torch.zeros_like(bias)) if needs_grad else (None, None)
        with torch.autocast(features.device.type, enabled=False):
            num_cells = CHUNK_CELLS if features.device.type == "cpu" else GPU_CHUNK_CELLS
            rows_per_chunk = max(1, num_cells // num_ids)
            for first in range(0, len(targets), rows_per_chunk):
                chunk = slice(first, first + rows_per_chunk)
                logits = torch.addmm(bias_low, features_low[chunk], weight_low.t()).to(wide)
                log_norm = torch.logsumexp(logits, dim=-1, keepdim=True)
                targets_1 = targets[chunk].unsqueeze(1)
                is_real_1 = targets_1 != PAD
                nll = torch.where(is_real_1, log_norm - logits.gather(1, targets_1), 0.0).sum()
                uniform = nll
                if smoothing:
                    uniform = torch.where(is_real_1, log_norm - logits.mean(dim=-1, keepdim=True), 0.0).sum()
                sums += torch.stack([(1.0 - smoothing) * nll + smoothing * uniform, nll])
                if not needs_grad:
                    continue
                assert grad_features is not None
                assert grad_weight is not None
                assert grad_bias is not None
                # with an infinite norm a row's probabilities are 0
                grad = logits.sub_(log_norm.masked_fill(~is_real_1, torch.inf)).exp_()
                counts_1 = is_real_1.to(wide)
                if smoothing:
                    grad.sub_(counts_1, alpha=smoothing / num_ids)
                grad.scatter_add_(1, targets_1, counts_1.mul_(smoothing - 1.0))
                grad_bias += grad.sum(dim=0)
                grad = grad.to(low)
                grad_features[chunk] = grad @ weight_low
                grad_weight += grad.t() @ features_low[chunk]
        if needs_grad:
            ctx.save_for_backward(grad_features, grad_weight, grad_bias)
        ctx.features_dtype = features.dtype
        loss_sum, nll_sum = sums[0].clone(), sums[1].clone()
        ctx.mark_non_differentiable(nll_sum)
        return loss_sum, nll_sum

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_features, grad_weight, grad_bias = ctx.saved_tensors
        scale = grads[0]
        return (
            (grad_features * scale.to(grad_features.dtype)).to(ctx.features_dtype),
            grad_weight * scale,
            grad_bias * scale,
            None,
            None,
            None,
        )
