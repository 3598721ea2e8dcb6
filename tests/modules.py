"""Parameters and gradients of modules in tests."""

from typing import TypeVar

import torch
from torch import nn

Module = TypeVar("Module", bound=nn.Module)


def randomize(module, bound=0.5):
    """Draw all parameters anew, so that none is 0."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -bound, bound)
    return module


def half_precision(is_enabled=True):
    device = torch.get_default_device().type
    return torch.autocast(device, dtype=torch.bfloat16, enabled=is_enabled)


def gradients(module):
    """Copies of the gradients that there are, by the parameter's name."""
    parameters = module.named_parameters()
    return {name: p.grad.clone() for name, p in parameters if p.grad is not None}


def assert_every_parameter_learns(module):
    learned = gradients(module)
    for name, _ in module.named_parameters():
        assert name in learned
        assert torch.isfinite(learned[name]).all(), name
        assert learned[name].any(), name


def assert_gradients_are_finite(module):
    for name, gradient in gradients(module).items():
        assert torch.isfinite(gradient).all(), name
