"""Load the models of several runs as one: check that they share tokenizers and vocabularies, then average them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import torch

from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run_dir import ModelInfo, RunDir
from seq2seq_attn.runtime.precision import Precision
from seq2seq_attn.search.steps import Ensemble, step_model
from seq2seq_attn.text.tokenizers.base import SIDES


def load_models(
    runs: Sequence[RunDir], device: torch.device, precision: Precision
) -> tuple[Seq2Seq | Ensemble, list[ModelInfo]]:
    """The best model of a run, or the ensemble of several runs, ready to translate; and what is known of each model.

    Raises:
        UserError: a run's files are missing, damaged or of another version.
        UsageError: there are no runs, they cannot form an ensemble, or one of several does not support the precision.
    """
    configs = [run.config() for run in runs]
    check_alike(runs)
    loaded = [run.load_model(config.model) for run, config in zip(runs, configs, strict=True)]
    models, infos = [model.to(device).eval() for model, _ in loaded], [info for _, info in loaded]
    if len(models) == 1:
        return models[0], infos
    for run, model in zip(runs[1:], models[1:], strict=True):
        if model.output.copies_source != models[0].output.copies_source:
            raise UsageError(
                f"{runs[0].path} and {run.path}: only one of their outputs, {configs[0].model.output.name!r} and "
                f"{run.config().model.output.name!r}, copies source tokens, so their probabilities are over different "
                "tokens; in an ensemble, either all runs must copy or none"
            )
    with torch.inference_mode():
        return Ensemble([step_model(model, precision) for model in models]), infos


def check_alike(runs: Sequence[RunDir]) -> None:
    """Check that runs are distinct and share their tokenizers and vocabularies.

    Raises:
        UsageError: they do not, or there are none.
        UserError: a file of a run is missing or damaged.
    """
    if not runs:
        raise UsageError("no run to load: name at least one")
    if len({run.path.resolve() for run in runs}) < len(runs):
        raise UsageError(f"{', '.join(str(run.path) for run in runs)}: the same run twice; name different ones")
    for other, side in product(runs[1:], SIDES):
        before, now = runs[0].text_files(side), other.text_files(side)
        differing = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if differing:
            raise UsageError(
                f"{runs[0].path} and {other.path} differ in {', '.join(differing)}; an ensemble needs runs trained on "
                "the same prepared data"
            )
