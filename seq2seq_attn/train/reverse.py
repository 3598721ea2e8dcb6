"""Build and run the reverse model p(x | y), from target to source. The reverse model is trained
beside the first model if an objective needs it (`Objective.needs_reverse`).

The reverse model has the settings of the first model, with source and target swapped. `RUN/reverse`
is a complete run directory, which can translate, score and be evaluated. Its weights are those of
the update that is best for the first model. The saved state of the first run includes the reverse
model.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from seq2seq_attn.config import Config
from seq2seq_attn.data.audit import with_length_limit
from seq2seq_attn.data.batch import Batch, swapped
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.output.base import DecoderOutputs, TakesTable
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run import Run
from seq2seq_attn.text.tables import form_by_suffix
from seq2seq_attn.text.tokenizers.base import Side
from seq2seq_attn.train.objectives.base import Objective

SWAPPED: tuple[Side, Side] = ("target", "source")
Text = str | list[str]
"""a file of pairs, a prefix of two files, or a list of source file and target file"""


def run_swapped(
    reverse: Seq2Seq, outputs: DecoderOutputs, batch: Batch, *, label_smoothing: float
) -> tuple[DecoderOutputs, Tensor]:
    """Run the reverse model on a batch with swapped sides. Return the outputs of the first model,
    completed by the attention weights of the reverse model, and the loss sum of the reverse model
    over source tokens. The reverse model draws from a copy of the global generator, so that the
    random numbers of the first model do not change."""
    device = outputs.features_NF.device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        reverse_outputs = reverse(swapped(batch))
        loss = reverse.output.loss(reverse_outputs, label_smoothing=label_smoothing)
    return outputs._replace(reverse_weights_SBT=reverse_outputs.weights_TBS), loss.loss_sum


def write_reverse_run(
    run: Run, config: Config, prepared: PreparedCorpus, device: torch.device
) -> None:
    """Write the files of a new run directory for the reverse model inside `run`."""
    reverse_run = Run.create(run.reverse.path)
    pairs = prepared.pairs("train").swapped()
    reverse_run.save_config(with_length_limit(reverse_config(config), pairs))
    reverse_run.save_text(prepared, SWAPPED)
    reverse_run.save_sets(prepared, SWAPPED)
    reverse_run.write_environment(device)


def build_reverse(
    config: Config,
    prepared: PreparedCorpus,
    objectives: Mapping[str, Objective],
    device: torch.device,
) -> Seq2Seq | None:
    """Build a new reverse model. Return None if no objective needs a reverse model. The state of
    the global generator is restored, so that the first model is trained as it would be alone."""
    if not any(objective.needs_reverse for objective in objectives.values()):
        return None
    with torch.random.fork_rng(devices=[]):
        model = build_model(
            config.model,
            num_source_ids=len(prepared.target_vocab),
            num_target_ids=len(prepared.source_vocab),
        )
    return model.to(device)


def check_reverse(key: str, config: Config, model: Seq2Seq) -> None:
    """Check that the model can also be trained from target to source.

    Args:
        key: the setting of the objective that needs the reverse model.

    Raises:
        UsageError: a setting works in one direction only.
    """
    data = config.data
    output = model.output
    refused = {
        "several sources (data.source_languages)": len(data.sources) > 1,
        "a source of vectors (data.source_language)": data.layout.vector_column is not None,
        f"model.output.name={config.model.output.name}": output.copies_source
        or isinstance(output, TakesTable),
        "attention that draws source positions": model.decoder.attention.draws_positions,
        "word vectors (model.embedding.source_vectors)": bool(config.model.embedding.files()),
        "data.tokenizer.target": data.tokenizer.target is not None,
        "data.tokenizer.sentences=true": data.tokenizer.sentences,
        "a table; give a file for each language": _has_table(config),
    }
    for setting, is_set in refused.items():
        if is_set:
            raise UsageError(
                f"{key}: also trains the model from target to source, which does not work with "
                f"{setting}"
            )


def _has_table(config: Config) -> bool:
    """Return whether a split is a table, whose columns have a fixed order."""
    data = config.data
    for text in (data.train, data.valid, *data.test.values(), *data.extra):
        if isinstance(text, str) and form_by_suffix(Path(text)) is not None:
            return True
    return False


def reverse_config(config: Config) -> Config:
    """Return the configuration with which the reverse model could be trained alone."""
    data = config.data
    swapped_data = {
        "source_language": data.target_language,
        "source_languages": [],
        "target_language": data.sources[0],
        "train": _swap(data.train),
        "valid": _swap(data.valid),
        "test": {name: _swap(text) for name, text in data.test.items()},
        "extra": [_swap(text) for text in data.extra],
        "links": None,
    }
    return config.model_copy(
        update={
            "name": f"{config.name}-reverse",
            "data": data.model_copy(update=swapped_data),
            "train": config.train.model_copy(update={"objectives": {}, "start_from": None}),
            "search": config.search.model_copy(update={"max_length_ratio": None}),
        }
    )


def _swap(text: Text | None) -> Text | None:
    # A list holds the source file and the target file. A prefix stays, because its files are found
    # by their languages.
    return text[::-1] if isinstance(text, list) else text
