"""Rename the tensors of model files that earlier versions wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

MAX_PARTS = 100
"""layers or directions in one tensor of a file"""
_RENAMED = {
    r"decoder\.embedding\.weight": "embedding.weight",
    r"decoder\.output\.(weight|bias)": r"output.projection.\1",
    r"decoder\.bridge\.(weight|bias)": r"decoder.bridge.projection.\1",
    r"decoder\.readout\.(weight|bias)": r"decoder.readout.projection.\1",
    r"decoder\.embedding_projection\.weight": "decoder.cell.input_weights.0",
    r"decoder\.embedding_projection\.bias": "decoder.cell.input_bias_P",
    r"decoder\.context_weight_PM": "decoder.cell.input_weights.1",
    r"decoder\.(recurrent_weight_PH|recurrent_bias_P)": r"decoder.cell.\1",
    r"encoder\.layers\.(\d+)\.input_projections\.(\d+)\.weight": r"encoder.layers.\1.\2.input_weights.0",
    r"encoder\.layers\.(\d+)\.input_projections\.(\d+)\.bias": r"encoder.layers.\1.\2.input_bias_P",
    r"encoder\.input_projections\.(\d+)\.weight": r"encoder.layers.\1.input_weights.0",
    r"encoder\.input_projections\.(\d+)\.bias": r"encoder.layers.\1.input_bias_P",
}
_SPLIT = {
    # one tensor for both directions, or for all layers, was split into one each
    r"encoder\.layers\.(\d+)\.(recurrent_weight|recurrent_bias)_DPH?": r"encoder.layers.\1.{index}.\2",
    r"encoder\.(recurrent_weight|recurrent_bias)_LPH?": r"encoder.layers.{index}.\1",
}
_AXES = {"recurrent_weight": "recurrent_weight_PH", "recurrent_bias": "recurrent_bias_P"}


def current_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors under their current names. Files of the current version stay as they are."""
    renamed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        renamed |= _split(name, tensor) or {_rename(name): tensor}
    return renamed


def _rename(name: str) -> str:
    for pattern, new in _RENAMED.items():
        if match := re.fullmatch(pattern, name):
            return match.expand(new)
    return name


def _split(name: str, tensor: Tensor) -> dict[str, Tensor]:
    for pattern, new in _SPLIT.items():
        match = re.fullmatch(pattern, name)
        if match and len(tensor) <= MAX_PARTS:
            prefix, _, kind = match.expand(new).rpartition(".")
            return {f"{prefix}.{_AXES[kind]}".format(index=i): part.clone() for i, part in enumerate(tensor)}
    return {}
