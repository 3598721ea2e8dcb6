"""Give all arms of a comparison the output `softmax` if an arm cannot have the configured output.

An arm is a model of a comparison, with its own value of each varied setting. Several packaged
configurations have the output `lexical`, which reads attention weights. A model whose source is one
fixed vector has no attention weights. It can be compared with a model that has attention only if
both models have another output.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from seq2seq_attn.api.settings import Layers
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.train.check import build_on_meta

_SOFTMAX = {"model.output.name": "softmax"}

log = logging.getLogger(__name__)


def share_output(layers: Layers, arms: Iterable[Mapping[str, Any]]) -> None:
    """Give the output `softmax` to all arms if an arm's model can only be built with `softmax`.

    All arms change, even if only one arm needs `softmax`: arms may differ in nothing but the varied
    settings. The output is inserted into `layers` as the first setting, so that an output that the
    user sets or varies overrides it.

    Args:
        layers: the configuration that all arms share.
        arms: the varied settings of each arm.
    """
    for varied in arms:
        config = layers.load(varied)
        with_softmax = load_config(layers.config_names, _SOFTMAX, *layers.settings, varied)
        needs_softmax = not _can_be_built(config) and _can_be_built(with_softmax)
        if not needs_softmax:
            continue
        arm = ", ".join(f"{key}={value}" for key, value in varied.items())
        message = "output: all arms have softmax instead of %s, which cannot be combined with %s"
        log.info(message, config.model.output.name, arm)
        layers.settings.insert(0, _SOFTMAX)
        return


def _can_be_built(config: Config) -> bool:
    """Return whether the model of a configuration can be built."""
    try:
        build_on_meta(config)
    except UsageError:
        return False
    return True
