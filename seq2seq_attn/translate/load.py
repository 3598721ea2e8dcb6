"""Load a run, or several runs as an ensemble, as a translator."""

import logging
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import torch

from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run_dir import RunDir, find_run, newest_run
from seq2seq_attn.runtime.device import Precision, resolve_device, translation_precision
from seq2seq_attn.runtime.threads import choose_threads, read_cpu_times
from seq2seq_attn.search.steps import Ensemble, step_model
from seq2seq_attn.text.tokenizers.base import SIDES
from seq2seq_attn.translate.translator import Translator

log = logging.getLogger(__name__)


def load(
    run: str | Path | Sequence[str | Path] | None = None,
    device: str = "auto",
    *,
    precision: str = "auto",
) -> Translator:
    """The translator of a run directory, with its best model.

    On a CPU, it chooses torch's number of threads by the model's size and the load of the machine,
    unless OMP_NUM_THREADS or `torch.set_num_threads` has set it (to another number than torch's
    default).

    Args:
        run: the directory, or `hf:OWNER/NAME` on the Hugging Face hub; None: the run in `runs/`
            that finished last. For a list of several, their ensemble, which averages the models'
            probabilities and uses the first run's search settings.
        device: `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:N`.
        precision: arithmetic of matrix products: `fp32`; `bf16`, faster on CPUs that support it;
            `int8`, faster on most CPUs and only there (with the encoder in bf16 if possible);
            `auto`: fp32, as the others change BLEU.

    Raises:
        UserError: there is no run, or a file of it is missing, damaged or of another version.
        UsageError: the device does not exist or lacks the precision, or runs differ in tokenizers
            or vocabularies.
    """
    on_device = resolve_device(device)
    named = [run] if isinstance(run, str | Path) else run
    run_dirs = [newest_run()] if named is None else [RunDir(find_run(path)) for path in named]
    if named is None:
        log.info("model: %s", run_dirs[0].path)
    began = read_cpu_times()
    check_alike(run_dirs)
    configs = [run.config() for run in run_dirs]
    loaded = [run.load_model(config.model) for run, config in zip(run_dirs, configs, strict=True)]
    models = [model.to(on_device).eval() for model, _ in loaded]
    if on_device.type == "cpu":
        num_bytes = max(run.model_path.stat().st_size for run in run_dirs)
        choose_threads(num_bytes // 4, began)  # float32
    run_dir, config = run_dirs[0], configs[0]
    return Translator(
        models[0]
        if len(models) == 1
        else _make_ensemble(run_dirs, models, translation_precision(precision, on_device)),
        source_tokenizer=run_dir.tokenizer("source"),
        target_tokenizer=run_dir.tokenizer("target"),
        source_vocab=run_dir.vocab("source"),
        target_vocab=run_dir.vocab("target"),
        search=config.search,
        device=on_device,
        max_source_length=config.data.max_length,
        precision=precision,
        infos=[info for _, info in loaded],
        load_run=load,
    )


def _make_ensemble(
    runs: Sequence[RunDir], models: Sequence[Seq2Seq], precision: Precision
) -> Ensemble:
    first = models[0].output
    for run, model in zip(runs[1:], models[1:], strict=True):
        if model.output.copies_source != first.copies_source:
            outputs = " and ".join(repr(each.config().model.output.name) for each in (runs[0], run))
            raise UsageError(
                f"{runs[0].path} and {run.path}: only one of their outputs, {outputs}, copies "
                "source tokens, so their probabilities are over different tokens; in an ensemble, "
                "either all runs must copy or none"
            )
    with torch.inference_mode():
        steps = [step_model(model, precision) for model in models]
    has_attention = any(model.has_attention for model in models)
    return Ensemble(steps, has_attention=has_attention, copies_source=first.copies_source)


def check_alike(runs: Sequence[RunDir]) -> None:
    """Check that runs are distinct and share their tokenizers and vocabularies.

    Raises:
        UsageError: they do not, or there are none.
        UserError: a file of a run is missing or damaged.
    """
    if not runs:
        raise UsageError("no run to load: name at least one")
    if len({run.path.resolve() for run in runs}) < len(runs):
        raise UsageError(
            f"{', '.join(str(run.path) for run in runs)}: the same run twice; name different ones"
        )
    for other, side in product(runs[1:], SIDES):
        before, now = runs[0].text_files(side), other.text_files(side)
        differing = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if differing:
            raise UsageError(
                f"{runs[0].path} and {other.path} differ in {', '.join(differing)}; an ensemble "
                "needs runs trained on the same prepared data"
            )
