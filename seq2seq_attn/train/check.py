"""Reject settings that cannot be trained, before data is prepared: all checks that need only the configuration and the
machine."""

from __future__ import annotations

import logging

from seq2seq_attn.config import Config, DataConfig, ModelConfig, TrainConfig
from seq2seq_attn.data.links import links_file
from seq2seq_attn.data.sources import find_extra, split_names
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import ENCODER_SHORTHANDS, model_without_weights
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.variants import SCORER, ModelAxis, find_build, takes
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.search.base import find_search
from seq2seq_attn.text.tokenizers.base import VECTORS
from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer
from seq2seq_attn.text.vocab import SPECIALS
from seq2seq_attn.train.dry_run import check_imported
from seq2seq_attn.train.loss import OBJECTIVE, build_objectives
from seq2seq_attn.train.reverse import check_reverse
from seq2seq_attn.train.schedules import Schedules

MAX_PARAMETERS = 2_000_000_000
"""without word embeddings; with gradients and Adam's two averages that is 32 GB"""
_SHARED_SETTINGS: tuple[tuple[ModelAxis, str, str], ...] = (
    ("encoder", "cell", "build_cell"),
    ("encoder", "num_layers", "num_layers"),
    ("decoder", "num_layers", "num_layers"),
    ("attention", "normalizer", "normalizer"),
)
"""settings that not every variant of an axis takes: axis, setting, and the parameter of the variant's `build`"""

log = logging.getLogger(__name__)


def check_config(config: Config) -> None:
    """Check the settings against each other and the machine.

    Raises:
        UsageError: a variant or language is unknown, sizes do not fit together, a device does not exist, ...
    """
    model = _check_model(config.model, config.data)
    _check_objectives(config, model)
    check_imported(config)
    for name in find_search(config.search)[1].scorers:
        find_build(SCORER, name)
    if config.search.coverage_penalty and not model.has_attention:
        raise UsageError(
            f"search.coverage_penalty={config.search.coverage_penalty:g}: needs attention over source positions, which "
            f"model.attention.name={config.model.attention.name} does not have; set search.coverage_penalty=0"
        )
    if config.train.cuda_graphs:
        _check_graphs(config)
    _check_training(config.train)
    split_names(config.data)  # rejects an invalid corpus
    links_file(config.data)
    find_extra(config.data)
    if config.data.tokenizer.name == "spacy":
        languages = [*config.data.sources, *([] if config.data.tokenizer.target else [config.data.target_language])]
        for language in languages:
            if language != VECTORS:
                SpacyTokenizer(language)


def _check_model(config: ModelConfig, data: DataConfig) -> Seq2Seq:
    """The model on the meta device: it has no weights and draws no random numbers. True sizes are known with the
    data."""
    _check_shared_settings(config)
    num_source_ids, num_target_ids = len(SPECIALS), len(SPECIALS) + (not data.vocab.joint)
    vector_sizes = [1 if source == VECTORS else None for source in data.sources]
    model = model_without_weights(
        config, num_source_ids=num_source_ids, num_target_ids=num_target_ids, vector_sizes=vector_sizes
    )
    if (number := sum(tensor.numel() for tensor in model.state_dict().values())) > MAX_PARAMETERS:
        raise UsageError(
            f"model: {number:,} parameters besides the vocabulary's; expected at most {MAX_PARAMETERS:,}; lower a "
            "size, such as model.hidden_size, or the number of layers"
        )
    return model


def _check_shared_settings(config: ModelConfig) -> None:
    """Refuse a setting that the chosen variant does not take, and a cell other than that which the encoder's name
    implies."""
    encoder, defaults = config.encoder, ModelConfig()
    encoder_name, cell = ENCODER_SHORTHANDS.get(encoder.name, (encoder.name, encoder.cell))
    if encoder.cell not in (defaults.encoder.cell, cell):
        raise UsageError(
            f"model.encoder.cell={encoder.cell!r}: model.encoder.name={encoder.name!r} has the cell {cell!r}; set "
            f"model.encoder.name={encoder_name}"
        )
    for axis, setting, parameter in _SHARED_SETTINGS:
        variant = encoder_name if axis == "encoder" else getattr(config, axis).name
        value, default = (getattr(getattr(model, axis), setting) for model in (config, defaults))
        if value != default and not takes(axis, variant, parameter):
            raise UsageError(
                f"model.{axis}.{setting}={value!r}: model.{axis}.name={variant!r} does not take it; set "
                f"model.{axis}.{setting}={default}, or choose another {axis}"
            )


def _check_graphs(config: Config) -> None:
    attention, why = config.model.attention.name, "because a size is read from the device"
    refused = {
        "train.precision=fp16": config.train.precision == "fp16",
        "train.objectives": bool(config.train.objectives),
        "a source of vectors": VECTORS in config.data.sources,
        f"several sources {why}": len(config.data.sources) > 1,
        f"model.attention.name={attention} {why}": attention == "hierarchical",
    }
    if what := next((what for what, is_given in refused.items() if is_given), None):
        raise UsageError(f"train.cuda_graphs=true: not supported with {what}; set train.cuda_graphs=false")


def _check_objectives(config: Config, model: Seq2Seq) -> None:
    objectives, settings = build_objectives(config, model), config.train.objectives
    learners = [name for name in objectives if settings[name].weight and takes(OBJECTIVE, name, "drawing_attention")]
    if model.decoder.attention.draws_positions and not learners:
        raise UsageError(
            "model.attention.options.estimator=reinforce: only the objective reinforce trains these weights; add "
            "-c objective/reinforce, with a weight above 0, or set estimator=straight_through"
        )
    for name, objective in objectives.items():
        if objective.needs_reverse:
            check_reverse(f"train.objectives.{name}", config, model)


def _check_training(config: TrainConfig) -> None:
    device = resolve_device(config.device)
    Schedules(config, updates_per_epoch=1)
    if config.precision == "fp16" and device.type == "cpu":
        log.warning(
            "train.precision='fp16' on a CPU: slow, and gradients may overflow; 'auto' chooses a faster precision"
        )
    limits = (config.max_epochs, config.max_updates, config.max_minutes, config.validation.patience)
    if not any(limits):
        log.warning(
            "no limit is set: training goes on until Ctrl-C; set train.max_epochs, max_updates, max_minutes or "
            "train.validation.patience"
        )
