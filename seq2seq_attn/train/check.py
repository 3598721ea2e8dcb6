"""Reject settings that cannot be trained, before data is prepared.

The model is built on the meta device, where weights take no memory.
"""

import logging

from seq2seq_attn.config import Config
from seq2seq_attn.data.links import links_file
from seq2seq_attn.data.sources import find_extra, split_names
from seq2seq_attn.errors import UsageError
from seq2seq_attn.metrics.table import find_metric
from seq2seq_attn.model.build import model_without_weights
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.variants import SCORER, find_build
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.runtime.extras import require
from seq2seq_attn.search.base import find_search
from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer
from seq2seq_attn.text.vocab import SPECIALS
from seq2seq_attn.train.graphs import check_graphs
from seq2seq_attn.train.loss import build_objectives
from seq2seq_attn.train.reverse import check_reverse
from seq2seq_attn.train.schedules import Schedules

MAX_PARAMETERS = 2_000_000_000
"""Maximum number of parameters without word embeddings. With gradients and the two averages of
Adam, these parameters take 32 GB."""

log = logging.getLogger(__name__)


def check_config(config: Config) -> None:
    """Check that the settings fit together and fit the machine. Settings without effect are
    accepted. Log a warning if no setting limits the length of training.

    Raises:
        UsageError: settings do not fit: for example, a variant or language is unknown, sizes do
            not fit together, or a device does not exist.
        UserError: a package that training needs is not installed.
    """
    require("train", "sacrebleu", "torchtext")
    model = build_on_meta(config)
    _check_objectives(config, model)
    _check_search(config)
    resolve_device(config.train.device)
    Schedules(config.train, updates_per_epoch=1)  # checks the schedules; the number is unknown here
    check_graphs(config, model)
    _warn_without_limit(config)
    _check_data(config)


def build_on_meta(config: Config) -> Seq2Seq:
    """Return the model on the meta device.

    The sizes of vocabularies and vectors are unknown before data is prepared. So the vocabularies
    have only special tokens, and vectors have one number.

    Raises:
        UsageError: sizes do not fit together, or the model has more than `MAX_PARAMETERS`.
    """
    num_source_ids = len(SPECIALS)
    # Separate vocabularies differ in size, so embeddings cannot be shared by mistake.
    num_target_ids = num_source_ids if config.data.vocab.joint else num_source_ids + 1
    model = model_without_weights(
        config.model,
        num_source_ids=num_source_ids,
        num_target_ids=num_target_ids,
        vector_sizes=config.data.layout.vector_sizes(size=1),
    )
    num_parameters = sum(tensor.numel() for tensor in model.state_dict().values())
    if num_parameters > MAX_PARAMETERS:
        raise UsageError(
            f"model: {num_parameters:,} parameters besides the vocabulary's; expected at most "
            f"{MAX_PARAMETERS:,}; lower a size, such as model.hidden_size, or the number of layers"
        )
    return model


def _check_objectives(config: Config, model: Seq2Seq) -> None:
    """Check the objectives. If the attention draws positions, check that an objective trains the
    attention."""
    trains_draws = False
    for name, objective in build_objectives(config, model).items():
        if objective.needs_reverse:
            check_reverse(f"train.objectives.{name}", config, model)
        has_weight = config.train.objectives[name].weight > 0
        if has_weight and "drawn_positions" in objective.requires:
            trains_draws = True
    if model.decoder.attention.draws_positions and not trains_draws:
        raise UsageError(
            "model.attention.options.estimator=reinforce: only the objective reinforce trains "
            "these weights; add -c objective/reinforce, with a weight above 0, or set "
            "estimator=straight_through"
        )


def _check_search(config: Config) -> None:
    """Check that the search, its scorers and the validation metric exist, and that a language model
    is validated by perplexity."""
    _, search = find_search(config.search)
    for name in search.scorers:
        find_build(SCORER, name)
    metric = config.train.validation.metric
    if metric == "perplexity":
        return
    find_metric(metric)
    if not config.data.layout.columns:
        raise UsageError(
            f"train.validation.metric={metric}: a language model (data.source_language=none) has "
            "no translations; set train.validation.metric=perplexity, or add -c language-model"
        )


def _check_data(config: Config) -> None:
    """Check the settings of the corpus, and that spaCy has a tokenizer for each language."""
    data = config.data
    # Each call raises an error if the corpus needs a setting that is missing or not valid.
    split_names(data)
    links_file(data)
    find_extra(data)
    if data.tokenizer.name != "spacy":
        return
    languages = data.layout.texts
    if data.tokenizer.target is None:  # the target has the tokenizer of the source
        languages.append(data.target_language)
    for language in languages:
        SpacyTokenizer(language)


def _warn_without_limit(config: Config) -> None:
    """Log a warning if no setting limits the length of training."""
    train = config.train
    limits = [train.max_epochs, train.max_updates, train.max_minutes, train.validation.patience]
    if not any(limits):
        log.warning(
            "no limit is set: training goes on until Ctrl-C; set train.max_epochs, max_updates, "
            "max_minutes or train.validation.patience"
        )
