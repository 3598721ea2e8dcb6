"""The variants whose contract is asked: the package's, or with `--import MODULE` those of the
module."""

import inspect
from typing import get_type_hints

from seq2seq_attn.model.variants import AXES, Axis, find_contract, packaged_variants

MODULES = []
"""those of `--import`"""


def variants(axis):
    """Names of variants, as a configuration names them."""
    if not MODULES:
        return packaged_variants(axis)
    if axis == "normalizer":
        return [module.__name__ for module in MODULES if hasattr(module, "weights")]
    axis = axis if isinstance(axis, Axis) else AXES[axis]
    contract = find_contract(axis)
    return [
        name for module in MODULES for name, kind in _named(module) if issubclass(kind, contract)
    ]


def _named(module):
    """The variant that the module's `build` returns, or else each of its classes."""
    if build := getattr(module, "build", None):
        yield module.__name__, build if inspect.isclass(build) else get_type_hints(build)["return"]
        return
    for name, kind in vars(module).items():
        if inspect.isclass(kind) and kind.__module__ == module.__name__:
            yield f"{module.__name__}:{name}", kind
