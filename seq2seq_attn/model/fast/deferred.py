"""Defer the weight gradients of linear layers in a loop until its end.

Autograd makes a small product and an add for every use of a weight. Inside `deferred_weight_gradients`, each use only
stores its input and its output's gradient. After the backward pass of the last use, the weight's gradient is one
product over all of them: the same sum in another order. It works for every module that calls
`torch.nn.functional.linear`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from seq2seq_attn.model.fast.gru import compute_dtype


@contextmanager
def deferred_weight_gradients() -> Iterator[None]:
    """Defer the weight gradients of `linear` in this block; the backward pass may run outside of it, once."""
    with _Mode():
        yield


class _Tape:
    """The stored inputs and gradients of the uses of one weight."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        low = compute_dtype(weight)
        self.weight_low = weight.detach().to(low)
        self.bias_low = None if bias is None else bias.detach().to(low)
        self.inputs: list[Tensor] = []
        self.grads: list[Tensor] = []
        # all uses depend on it, so that its backward runs after theirs
        self.anchor: Tensor = _Anchor.apply(self, weight, bias)  # type: ignore[no-untyped-call]


class _Anchor(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tape: _Tape, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.tape, ctx.dtype, ctx.has_bias = tape, weight.dtype, bias is not None
        return weight.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, ...]:
        inputs, grads = torch.cat(ctx.tape.inputs), torch.cat(ctx.tape.grads)
        # Inputs of a recurrence carry the graph of the uses before them, whose nodes hold the tape: a cycle through
        # nodes that the garbage collector does not see, which would keep all activations of the pass for good.
        ctx.tape.inputs.clear()
        ctx.tape.grads.clear()
        # The tape holds the anchor, whose graph holds this node. Left to the garbage collector, that cycle keeps the
        # weight's gradient accumulator, with the stream of this pass: a CUDA graph of the next pass could not use it.
        del ctx.tape
        grad_bias = grads.sum(dim=0, dtype=ctx.dtype) if ctx.has_bias else None
        return None, (grads.t() @ inputs).to(ctx.dtype), grad_bias


class _Use(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tape: _Tape, inputs: Tensor, anchor: Tensor) -> Tensor:
        low = inputs.to(tape.weight_low.dtype)
        ctx.tape, ctx.dtype = tape, inputs.dtype
        ctx.save_for_backward(low)
        return functional.linear(low, tape.weight_low, tape.bias_low)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (inputs,), grad = ctx.saved_tensors, grads[0]
        ctx.tape.inputs.append(inputs.flatten(0, -2))
        ctx.tape.grads.append(grad.flatten(0, -2))
        grad_inputs = (grad @ ctx.tape.weight_low).to(ctx.dtype) if ctx.needs_input_grad[1] else None
        return None, grad_inputs, grad.new_zeros(())


class _Mode(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self._tapes: dict[int, tuple[Tensor, _Tape]] = {}  # holds the weight, so that its id is not reused

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is functional.linear and torch.is_grad_enabled():
            return self._linear(*args, **kwargs)
        return func(*args, **kwargs)

    def _linear(self, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if not weight.requires_grad:
            return functional.linear(input, weight, bias)
        if id(weight) not in self._tapes:
            self._tapes[id(weight)] = (weight, _Tape(weight, bias))
        tape = self._tapes[id(weight)][1]
        with torch.autocast(input.device.type, enabled=False):
            used: Tensor = _Use.apply(tape, input, tape.anchor)  # type: ignore[no-untyped-call]
        return used
