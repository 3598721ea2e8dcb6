"""Compute the loss of the outputs `softmax` and `lexical`, and its gradient, in one pass over
chunks of rows.

The logits of all tokens are never in memory at once: the gradient of a chunk's logits replaces the
logits in place.

Shapes: N = T * B target positions, B pairs, T steps, F features, E embedding size, V
target vocabulary.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seq2seq_attn.model.fast.attention_gru import weighted_sums
from seq2seq_attn.model.fast.gru import compute_dtype
from seq2seq_attn.model.layers import wide
from seq2seq_attn.model.output.base import DecoderOutputs, ScoredOutput
from seq2seq_attn.model.output.lexical import Lexical
from seq2seq_attn.model.output.softmax import Softmax
from seq2seq_attn.model.speed import offer
from seq2seq_attn.text.vocab import PAD

CHUNK_CELLS = 8 * 1024 * 1024
"""number of logits in memory at once on a CPU: 32 MB in float32; products of smaller chunks are
slower"""
BLOCK_CELLS = 128 * 1024
"""number of logits that are normalized and differentiated at once on a CPU: 512 KB, which fit into
a core's cache"""
GPU_CHUNK_CELLS = 64 * 1024 * 1024
"""number of logits in memory at once on a GPU: 256 MB, for fewer, larger products"""


@offer("cross_entropy")
def offer_cross_entropy(
    output: ScoredOutput,
) -> Callable[[DecoderOutputs, float], tuple[Tensor, Tensor]] | None:
    """Offer the chunked loss for the outputs `softmax` and `lexical`."""
    if type(output) not in (Softmax, Lexical):
        return None
    return lambda outputs, label_smoothing: chunked_cross_entropy(
        *_linear(output, outputs), outputs.targets_N, label_smoothing
    )


def _linear(output: ScoredOutput, outputs: DecoderOutputs) -> tuple[Tensor, Tensor, Tensor]:
    """Return inputs, weight and bias of the linear layer that computes the logits. The two layers
    of `lexical` become one layer, which reads the features and the lexical hidden layer side by
    side."""
    features_NF = outputs.features_NF
    projection = output.projection
    if not isinstance(output, Lexical):
        return features_NF, projection.weight, projection.bias
    sums_TBE = weighted_sums(outputs.weights_TBS, outputs.memory.output)
    inputs_NF = torch.cat([features_NF, output.hidden(sums_TBE.flatten(0, 1))], dim=1)
    low = compute_dtype(projection.weight)
    weights = [projection.weight.to(low), output.lexical_projection.weight.to(low)]
    return inputs_NF, torch.cat(weights, dim=1), projection.bias


def chunked_cross_entropy(
    features_NF: Tensor,
    weight_VF: Tensor,
    bias_V: Tensor,
    targets_N: Tensor,
    label_smoothing: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Return the smoothed loss, with gradient, and the plain negative log-likelihood, detached.
    Both are summed over the target tokens.

    Rows with target PAD are ignored.
    """
    needs_grad = torch.is_grad_enabled()  # inside a Function, gradients are always off
    loss_sum, nll_sum = _ChunkedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        features_NF, weight_VF, bias_V, targets_N, label_smoothing, needs_grad
    )
    return loss_sum, nll_sum


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        smoothing: float,
        needs_grad: bool,
    ) -> tuple[Tensor, Tensor]:
        low = compute_dtype(weight)
        needs_grad = needs_grad and any(ctx.needs_input_grad)
        with torch.autocast(features.device.type, enabled=False):
            sums, grads = _sum_chunks(
                features.to(low), weight.to(low), bias, targets, smoothing, needs_grad
            )
        ctx.save_for_backward(*grads)
        loss_sum = sums[0].clone()
        nll_sum = sums[1].clone()
        ctx.mark_non_differentiable(nll_sum)
        return loss_sum, nll_sum

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_features, grad_weight, grad_bias = ctx.saved_tensors
        scale = grads[0]
        grad_features = grad_features.to(scale.dtype) * scale
        return grad_features, grad_weight * scale, grad_bias * scale, None, None, None


def _sum_chunks(
    features: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    smoothing: float,
    needs_grad: bool,
) -> tuple[Tensor, list[Tensor]]:
    """Return the sum of the loss and the sum of the negative log-likelihood, and the gradients of
    features, weight and bias if `needs_grad` is true. Features and weight have the dtype of matrix
    products."""
    is_on_cpu = features.device.type == "cpu"
    num_rows = max(1, (CHUNK_CELLS if is_on_cpu else GPU_CHUNK_CELLS) // len(weight))
    num_block_rows = max(1, BLOCK_CELLS // len(weight)) if is_on_cpu else num_rows
    # The buffer has one more row, of zeros: with an odd V, oneDNN's bfloat16 product on AMX reads
    # one element past each row and multiplies it by 0, so this element must not be NaN.
    buffer = weight.new_empty(min(num_rows, len(targets)) + 1, len(weight))
    buffer[-1] = 0.0
    bias_low = bias.to(weight.dtype)
    sums = bias.new_zeros(2)
    grad_bias = torch.zeros_like(bias) if needs_grad else None
    grads_of_features = []
    grad_weight = None
    chunks = zip(torch.split(features, num_rows), torch.split(targets, num_rows), strict=True)
    for features_chunk, targets_chunk in chunks:
        logits = buffer[: len(targets_chunk)]
        torch.addmm(bias_low, features_chunk, weight.t(), out=logits)
        logits_blocks = torch.split(logits, num_block_rows)
        targets_blocks = torch.split(targets_chunk, num_block_rows)
        for logits_block, targets_block in zip(logits_blocks, targets_blocks, strict=True):
            sums += _block(logits_block, targets_block, smoothing, grad_bias)
        if needs_grad:
            grads_of_features.append(logits @ weight)
            chunk_grad = logits.t() @ features_chunk
            grad_weight = chunk_grad if grad_weight is None else wide(grad_weight).add_(chunk_grad)
    if grad_weight is None or grad_bias is None:
        return sums, []
    return sums, [torch.cat(grads_of_features), grad_weight, grad_bias]


def _block(logits: Tensor, targets: Tensor, smoothing: float, grad_bias: Tensor | None) -> Tensor:
    """Return the sum of the loss and the sum of the negative log-likelihood of some rows. With
    `grad_bias`, the gradient of the logits replaces the logits, and its sum over the rows is added
    to `grad_bias`."""
    num_ids = logits.shape[1]
    wide_logits = wide(logits)
    targets_1 = targets.unsqueeze(1)
    is_real_1 = targets_1 != PAD
    largest_1 = wide_logits.amax(dim=1, keepdim=True)
    target_logits_1 = wide_logits.gather(1, targets_1)
    mean_1 = None
    if smoothing:
        mean_1 = wide_logits.mean(dim=1, keepdim=True)
    # This works in place if the logits are float32 or wider: they are not needed again.
    exponentials = wide_logits.sub_(largest_1).exp_()
    total_1 = exponentials.sum(dim=1, keepdim=True)
    log_norm_1 = total_1.log().add_(largest_1)
    nll = torch.where(is_real_1, log_norm_1 - target_logits_1, 0.0).sum()
    uniform = nll if mean_1 is None else torch.where(is_real_1, log_norm_1 - mean_1, 0.0).sum()
    if grad_bias is not None:
        counts_1 = is_real_1.to(wide_logits.dtype)
        grad = exponentials.mul_(counts_1 / total_1)
        if smoothing:
            grad.sub_(counts_1, alpha=smoothing / num_ids)
        grad.scatter_add_(1, targets_1, counts_1.mul_(smoothing - 1.0))
        grad_bias += grad.sum(dim=0)
        if grad.dtype != logits.dtype:
            logits.copy_(grad)
    return torch.stack([(1.0 - smoothing) * nll + smoothing * uniform, nll])
