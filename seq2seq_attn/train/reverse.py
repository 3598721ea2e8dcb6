"""The reverse model p(x | y), which is trained beside the first one where an objective needs it
(`Objective.needs_reverse`).

It has the settings of the first model, with source and target swapped. `RUN/reverse` is a run directory of its own:
it can translate, score and be evaluated. Its weights are those of the update that is best for the first direction. The
saved state of the first run includes the reverse model.
"""

from __future__ import annotations

import sys

import torch

from seq2seq_attn.config import Config
from seq2seq_attn.data.audit import with_length_limit
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.output.base import TakesTable
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.text.tokenizers.base import VECTORS


def check_reverse(key: str, config: Config, model: Seq2Seq) -> None:
    """Check that the model can also be trained from target to source. `key` names the objective that needs it.

    Raises:
        UsageError: a setting belongs to one direction.
    """
    data, output = config.data, f"model.output.name={config.model.output.name}"
    texts = [spec for spec in (data.train, data.valid, *data.test.values(), *data.extra) if isinstance(spec, str)]
    refused = {
        "several sources: name one in data.source_languages": len(data.sources) > 1,
        "a source of vectors: name a language in data.source_language": VECTORS in data.sources,
        f"{output}, which copies source tokens: choose another, such as softmax": model.output.copies_source,
        f"{output}, which reads a translation table: choose another, such as softmax": isinstance(
            model.output, TakesTable
        ),
        "attention that draws source positions: choose another, such as additive": (
            model.decoder.attention.draws_positions
        ),
        "word vectors: set model.embedding.source_vectors=null and target_vectors=null": bool(
            config.model.embedding.files()
        ),
        "data.tokenizer.target: set it to null": data.tokenizer.target is not None,
        "data.tokenizer.sentences=true: set it to false": data.tokenizer.sentences,
        "a .tsv file, whose columns have an order: give a file for each language": any(
            spec.removesuffix(".gz").endswith(".tsv") for spec in texts
        ),
    }
    for what, is_so in refused.items():
        if is_so:
            raise UsageError(f"{key}: also trains the model from target to source, which does not work with {what}")


def build_reverse(config: Config, prepared: PreparedCorpus, device: torch.device) -> Seq2Seq:
    """The reverse model. Draws from a copy of the global generator."""
    with torch.random.fork_rng(devices=[]):
        num_source_ids, num_target_ids = len(prepared.target_vocab), len(prepared.source_vocab)
        return build_model(config.model, num_source_ids=num_source_ids, num_target_ids=num_target_ids).to(device)


def create_reverse_run(run: RunDir, config: Config, prepared: PreparedCorpus, device: torch.device) -> None:
    """Write the run directory of the reverse model, all but the weights. `config` is that of the first model."""
    RunDir.create(run.path)
    run.save_config(with_length_limit(reverse_config(config), prepared.pairs("train"), is_reverse=True))
    run.save_text(prepared, is_reverse=True)
    run.write_environment(sys.argv, device)


def reverse_config(config: Config) -> Config:
    """The configuration of the reverse model, as if it had been trained alone."""
    data = config.data
    swapped = {
        "source_language": data.target_language,
        "source_languages": [],
        "target_language": data.sources[0],
        "train": _swapped(data.train),
        "valid": _swapped(data.valid),
        "test": {name: _swapped(spec) for name, spec in data.test.items()},
        "extra": [_swapped(spec) for spec in data.extra],
        "links": None,
    }
    return config.model_copy(
        update={
            "name": f"{config.name}-reverse",
            "data": data.model_copy(update=swapped),
            "train": config.train.model_copy(update={"objectives": {}, "start_from": None}),
        }
    )


def _swapped(spec: str | list[str] | None) -> str | list[str] | None:
    """The text with its sides swapped: a list names the source file, then the target file, so it is reversed; the
    files of other texts are found by their languages."""
    return spec[::-1] if isinstance(spec, list) else spec
