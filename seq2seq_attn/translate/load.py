"""Load a run, or several runs as an ensemble, as a translator."""

from collections.abc import Sequence

import torch

from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run import Run, Runs, open_runs
from seq2seq_attn.runtime.device import Precision, resolve_device, translation_precision
from seq2seq_attn.runtime.threads import choose_threads, read_cpu_times
from seq2seq_attn.search.steps import Ensemble, step_model
from seq2seq_attn.text.languages import short_code
from seq2seq_attn.text.tokenizers.base import SIDES
from seq2seq_attn.translate.translator import Translator


def load(
    run: Runs = None,
    device: str = "auto",
    *,
    precision: str = "auto",
) -> Translator:
    """Load the best model of a run as a translator.

    On a CPU, `load` chooses torch's number of threads by the model's size and the load of the
    machine. It keeps the number that OMP_NUM_THREADS sets, or that `torch.set_num_threads` has set,
    unless that is torch's default.

    >>> translator = load("runs/quickstart")
    >>> translator.translate(["Der Hund schläft."])[0].text
    'The dog is sleeping.'

    Args:
        run: the run directory, or `hf:OWNER/NAME` on the Hugging Face hub. None loads the run in
            `runs/` that finished last. A list of several runs is loaded as an ensemble, which
            averages the models' probabilities and uses the first run's search settings.
        device: `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:N`.
        precision: arithmetic of matrix products: `fp32`, `bf16`, `int8` or `auto`. `bf16` is faster
            on CPUs that support it. `int8` is faster on most CPUs, runs on CPUs only, and computes
            the encoder in bf16 if possible. `auto` is `fp32`, because the other two change BLEU.

    Raises:
        UserError: there is no run, or a file of the run is missing, damaged or of another version.
        UsageError: the device is missing or lacks the precision, or runs differ in vocabularies.
    """
    on_device = resolve_device(device)
    runs = open_runs(run)
    began = read_cpu_times()
    check_alike(runs)
    loaded = [opened.load_model(opened.config.model) for opened in runs]
    models = [model.to(on_device).eval() for model, _ in loaded]
    model = _join_models(runs, models, translation_precision(precision, on_device))
    if on_device.type == "cpu":
        largest = max(run.model_path.stat().st_size for run in runs)
        choose_threads(largest // 4, began)  # a parameter is a float32 of 4 bytes
    translator = Translator(
        model,
        runs[0],
        runs[0].config,
        device=on_device,
        precision=precision,
        load_run=load,
        line_facts=runs[0].line_facts,
    )
    translator.infos = [info for _, info in loaded]
    return translator


def _join_models(
    runs: Sequence[Run], models: Sequence[Seq2Seq], precision: Precision
) -> Seq2Seq | Ensemble:
    """Return the only model, or an ensemble of the models."""
    if len(models) == 1:
        return models[0]
    first = models[0].output
    for run, model in zip(runs[1:], models[1:], strict=True):
        if model.output.copies_source != first.copies_source:
            names = [differing.config.model.output.name for differing in (runs[0], run)]
            outputs = " and ".join(map(repr, names))
            raise UsageError(
                f"{runs[0].path} and {run.path}: only one of their outputs, {outputs}, copies "
                "source tokens, so their probabilities are over different tokens; in an ensemble, "
                "either all runs must copy or none"
            )
    with torch.inference_mode():
        steps = [step_model(model, precision) for model in models]
    return Ensemble(
        steps,
        has_attention=any(model.has_attention for model in models),
        keeps_positions=all(model.keeps_positions for model in models),
        copies_source=first.copies_source,
    )


def check_alike(runs: Sequence[Run]) -> None:
    """Check that runs are distinct, and share their languages, tokenizers and vocabularies.

    Raises:
        UsageError: a run is given twice, or runs differ in languages or in these files.
        UserError: a file of a run is missing or damaged.
    """
    if len({run.path.resolve() for run in runs}) < len(runs):
        raise UsageError(
            f"{', '.join(str(run.path) for run in runs)}: the same run twice; name different ones"
        )
    first = runs[0]
    languages = find_languages(first)
    for run in runs[1:]:
        if find_languages(run) != languages:
            raise UsageError(
                f"{first.path} and {run.path} have different languages, {' to '.join(languages)} "
                f"and {' to '.join(find_languages(run))}; an ensemble needs runs of one direction"
            )
        for side in SIDES:
            expected = first.tokenizer_hashes(side).items()
            differing = {name for name, _ in expected ^ run.tokenizer_hashes(side).items()}
            if differing:
                raise UsageError(
                    f"{first.path} and {run.path} differ in {', '.join(sorted(differing))}; an "
                    "ensemble needs runs trained on the same prepared data"
                )


def find_languages(run: Run) -> tuple[str, ...]:
    """Return the codes of the languages of the sources and the target, without regions."""
    data = run.config.data
    return tuple(map(short_code, [*data.sources, data.target_language]))
