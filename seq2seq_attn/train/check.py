"""Reject settings that cannot be trained, before data is prepared: all checks that need only the configuration and the
machine."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from seq2seq_attn.config import Config, DataConfig, ModelConfig, TrainConfig, shorten
from seq2seq_attn.config.model import SUMMARY_ONLY
from seq2seq_attn.data.extra import find_extra
from seq2seq_attn.data.links import links_file
from seq2seq_attn.data.sources import split_names
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import ENCODER_SHORTHANDS, model_without_weights
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.variants import ModelAxis, takes
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.runtime.precision import training_precision
from seq2seq_attn.text.tokenizers.base import VECTORS
from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer
from seq2seq_attn.text.vocab import SPECIALS
from seq2seq_attn.train.loss import build_objectives
from seq2seq_attn.train.objectives.base import Objective
from seq2seq_attn.train.optim import FALLING
from seq2seq_attn.train.reverse import check_reverse
from seq2seq_attn.train.schedules import Schedules, always_forces

MAX_PARAMETERS = 2_000_000_000
"""without word embeddings; with gradients and Adam's two averages that is 32 GB"""

SUBWORD_SETTINGS = ("tokenizer.vocab_size", "tokenizer.joint", "tokenizer.model_type")
"""of `data`, read by SentencePiece only"""

log = logging.getLogger(__name__)


def check_config(config: Config) -> None:
    """Check the settings against each other and the machine.

    Raises:
        UsageError: a variant or language is unknown, sizes do not fit together, a device does not exist, ...
    """
    model = _check_model(config.model, config.data.sources)
    objectives = build_objectives(config.train.objectives)
    _check_objectives(config, model, objectives)
    if config.search.coverage_penalty and not model.has_attention:
        raise UsageError(
            f"search.coverage_penalty={config.search.coverage_penalty:g}: needs attention over source positions, which "
            f"model.attention.name={config.model.attention.name} does not have; set search.coverage_penalty=0"
        )
    if config.model.tie_embeddings == "all" and not config.data.vocab.joint:
        raise UsageError("model.tie_embeddings=all needs one vocabulary for both sides: set data.vocab.joint=true")
    if config.train.cuda_graphs:
        _check_graphs(config, model)
    _check_training(config.train)
    split_names(config.data)  # rejects an invalid corpus
    links_file(config.data)
    find_extra(config.data)
    if config.data.tokenizer.name == "spacy":
        languages = [*config.data.sources, *([] if config.data.tokenizer.target else [config.data.target_language])]
        for language in languages:
            if language != VECTORS:
                SpacyTokenizer(language)
    _warn_about_tokenizer(config.data)
    _warn_about_data(config.data)
    _warn_about_summary(config.model)
    _warn_about_objectives(config, objectives)


def _check_model(config: ModelConfig, sources: Sequence[str]) -> Seq2Seq:
    """The model on the meta device: it has no weights and draws no random numbers."""
    _check_cell(config)
    _check_normalizer(config)
    _check_layers(config)
    vector_sizes = [1 if source == VECTORS else None for source in sources]  # the true one is known with the data
    sizes = {"num_source_ids": len(SPECIALS), "num_target_ids": len(SPECIALS)}
    model = model_without_weights(config, **sizes, vector_sizes=vector_sizes)
    if (number := sum(tensor.numel() for tensor in model.state_dict().values())) > MAX_PARAMETERS:
        raise UsageError(
            f"model: {number:,} parameters besides the vocabulary's; expected at most {MAX_PARAMETERS:,}; lower a "
            "size, such as model.hidden_size, or the number of layers"
        )
    return model


def _encoder_name(config: ModelConfig) -> str:
    """The encoder's variant, where the name may imply a cell too."""
    name = config.encoder.name
    return ENCODER_SHORTHANDS[name][0] if name in ENCODER_SHORTHANDS else name


def _check_cell(config: ModelConfig) -> None:
    encoder, default = config.encoder, ModelConfig().encoder.cell
    name, implied = ENCODER_SHORTHANDS.get(encoder.name, (encoder.name, encoder.cell))
    if encoder.cell not in (default, implied):
        raise UsageError(
            f"model.encoder.cell={encoder.cell!r}: model.encoder.name={encoder.name!r} has the cell {implied!r}; set "
            f"model.encoder.name={name}"
        )
    if encoder.cell != default and not takes("encoder", name, "build_cell"):
        raise UsageError(
            f"model.encoder.cell={encoder.cell!r}: model.encoder.name={encoder.name!r} has no cell; set "
            f"model.encoder.cell={default}, or choose another encoder"
        )


def _check_normalizer(config: ModelConfig) -> None:
    attention, default = config.attention, ModelConfig().attention.normalizer
    if attention.normalizer != default and not takes("attention", attention.name, "normalizer"):
        raise UsageError(
            f"model.attention.normalizer={attention.normalizer!r}: model.attention.name={attention.name!r} takes no "
            f"normalizer; set model.attention.normalizer={default}, or choose another attention"
        )


def _check_layers(config: ModelConfig) -> None:
    variants: dict[ModelAxis, str] = {"encoder": _encoder_name(config), "decoder": config.decoder.name}
    for name, variant in variants.items():
        settings = getattr(config, name)
        if settings.num_layers > 1 and not takes(name, variant, "num_layers"):
            raise UsageError(
                f"model.{name}.num_layers={settings.num_layers}: {settings.name!r} has one layer; set it to 1, or "
                f"choose another {name}"
            )
        if settings.options.get("residual") and settings.num_layers == 1:
            raise UsageError(
                f"model.{name}.options.residual=true: no effect with a single layer; set model.{name}.num_layers=2, or "
                "leave it out"
            )


def _check_graphs(config: Config, model: Seq2Seq) -> None:
    encoder, attention = model.encoder, model.decoder.attention
    why = "because a size is read from the device"
    refused = {
        "train.precision=fp16": config.train.precision == "fp16",
        "train.objectives": bool(config.train.objectives),
        "a source of vectors": VECTORS in config.data.sources,
        f"several sources {why}": len(config.data.sources) > 1,
        f"model.encoder.name={config.model.encoder.name} {why}": not encoder.is_capturable,
        f"model.attention.name={config.model.attention.name} {why}": not attention.is_capturable,
    }
    if what := next((what for what, is_given in refused.items() if is_given), None):
        raise UsageError(f"train.cuda_graphs=true: not supported with {what}; set train.cuda_graphs=false")


def _check_objectives(config: Config, model: Seq2Seq, objectives: Mapping[str, Objective]) -> None:
    draws = model.decoder.attention.draws_positions
    weights = {name: config.train.objectives[name].weight for name in objectives}
    if draws and not any(objective.needs_draws and weights[name] for name, objective in objectives.items()):
        raise UsageError(
            "model.attention.options.estimator=reinforce: only the objective reinforce trains these weights; add "
            "-c objective/reinforce, with a weight above 0, or set estimator=straight_through"
        )
    for name, objective in objectives.items():
        key = f"train.objectives.{name}"
        if objective.needs_draws and not draws:
            raise UsageError(
                f"{key} needs attention that draws source positions: set model.attention.name=hard and "
                "model.attention.options.estimator=reinforce"
            )
        if objective.needs_weights and not model.has_attention:
            raise UsageError(
                f"{key} needs attention over source positions, which model.attention.name={config.model.attention.name}"
                " does not have; choose another attention, such as additive, or leave the objective out"
            )
        if objective.needs_weights and not model.decoder.attention.is_learned:
            raise UsageError(
                f"{key}: no effect with model.attention.name={config.model.attention.name}, whose weights never change;"
                " choose another attention, such as additive, or leave the objective out"
            )
        if objective.num_passes > 1 and not _is_random(config.model, model):
            raise UsageError(
                f"{key} compares passes with different dropout, and all dropout rates are 0: set "
                "model.dropout.readout=0.1 or another rate, or leave the objective out"
            )
        if objective.num_passes > 1 and not always_forces(config.train):
            raise UsageError(
                f"{key} compares passes that read the same tokens: set train.teacher_forcing.schedule=constant and "
                "train.teacher_forcing.start=1"
            )
        if objective.num_samples and model.output.copies_source:
            raise UsageError(
                f"{key} draws translations, whose copied words model.output.name={config.model.output.name} cannot "
                "score; choose another output, such as softmax"
            )
        if objective.needs_links and config.data.links is None:
            raise UsageError(
                f"{key} needs word alignments of the training pairs: set data.links to ibm1, to a Pharaoh file, or,"
                " with data.corpus=captions, to gold"
            )
        if objective.needs_reverse:
            check_reverse(key, config, model)


def _is_random(config: ModelConfig, model: Seq2Seq) -> bool:
    """Whether two passes over the same batch differ in training."""
    rates = [*config.dropout.model_dump().values(), config.attention.options.get("dropout")]
    return any(rates) or model.decoder.attention.is_random


def _warn_about_tokenizer(config: DataConfig) -> None:
    name = config.tokenizer.name
    for key, (_, value) in DataConfig().changes_to(config).items():
        if name != "sentencepiece" and key in SUBWORD_SETTINGS:
            log.warning(
                "data.%s=%s: no effect with data.tokenizer.name=%s; set data.tokenizer.name=sentencepiece, or leave it "
                "out",
                key,
                value if isinstance(value, str) else shorten(value),
                name,
            )


def _warn_about_data(config: DataConfig) -> None:
    if config.source_dir is not None and config.corpus == "files":
        log.warning("data.source_dir=%s: no effect with data.corpus=%s", config.source_dir, config.corpus)
    if config.extra_in_vocab and not config.extra:
        log.warning("data.extra_in_vocab=true: no effect without extra pairs; name them in data.extra")


def _warn_about_summary(config: ModelConfig) -> None:
    name, rate = config.attention.name, config.dropout.encoder
    is_dropped = config.encoder.num_layers > 1 or config.attention.options.get("dropout")
    if name in SUMMARY_ONLY and takes("encoder", _encoder_name(config), "build_cell") and rate and not is_dropped:
        log.warning(
            "model.dropout.encoder=%g: no effect with model.attention.name=%s and a single layer, because the summary "
            "has none of the encoder's dropout; set %s",
            rate,
            name,
            f"model.attention.options.dropout={rate:g}" if name == "fixed" else "model.dropout.encoder=0",
        )


def _warn_about_objectives(config: Config, objectives: Mapping[str, Objective]) -> None:
    for name, objective in objectives.items():
        if objective.num_samples and config.train.start_from is None and config.train.objectives[name].start == 0.0:
            log.warning(
                "train.objectives.%s: learns from translations by the model, so it needs a trained one; set "
                "train.start_from=RUN",
                name,
            )
    if config.data.links is not None and not any(objective.needs_links for objective in objectives.values()):
        log.warning(
            "data.links=%s: no objective needs links; add one that does, such as guided, or set data.links=null",
            shorten(config.data.links),
        )


def _check_training(config: TrainConfig) -> None:
    device = resolve_device(config.device)
    _check_schedules(config)
    Schedules(config, updates_per_epoch=1)
    if config.precision == "fp16" and device.type == "cpu":
        log.warning(
            "train.precision='fp16' on a CPU: slow, and gradients may overflow; 'auto' chooses a faster precision"
        )
    if config.cuda_graphs and device.type != "cuda":
        log.warning("train.cuda_graphs=true: no effect on a CPU")
    elif config.cuda_graphs and training_precision(config.precision, device) == "fp16":
        log.warning(
            "train.cuda_graphs=true: no effect in fp16, which train.precision=auto means on this GPU; set "
            "train.precision=fp32"
        )
    if config.cuda_graphs and config.teacher_forcing.schedule != "constant":
        log.warning(
            "train.cuda_graphs=true: no effect while the teacher forcing ratio changes; set "
            "train.teacher_forcing.schedule=constant"
        )
    limits = (config.max_epochs, config.max_updates, config.max_minutes, config.validation.patience)
    if not any(limits):
        log.warning(
            "no limit is set: training goes on until Ctrl-C; set train.max_epochs, max_updates, max_minutes or "
            "train.validation.patience"
        )


def _check_schedules(config: TrainConfig) -> None:
    """Refuse settings of schedules that are not the chosen ones. Defaults pass, as the configuration of a run has all
    settings."""
    rate, forcing = config.schedule, config.teacher_forcing
    is_constant = forcing.schedule == "constant"
    without_effect = {
        "schedule.factor": rate.name != "plateau",
        "schedule.patience": rate.name != "plateau",
        "schedule.final_ratio": rate.name not in FALLING,
        "schedule.cooldown": rate.name != "trapezoid",
        "teacher_forcing.end": is_constant and forcing.end != forcing.start,
        "teacher_forcing.num_updates": is_constant,
    }
    for key, (default, value) in TrainConfig().changes_to(config).items():
        if without_effect.get(key):
            of_rate = key.startswith("schedule.")
            chosen = f"schedule.name={rate.name!r}" if of_rate else f"teacher_forcing.schedule={forcing.schedule!r}"
            raise UsageError(
                f"train.{key}={value}: no effect with train.{chosen}; set train.{key}={default}, or choose another "
                "schedule"
            )
