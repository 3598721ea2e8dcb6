"""Publish a run on the Hugging Face hub, with a model card from its records. `Run.open`
downloads it again."""

import logging
from collections.abc import Iterator
from typing import Any

from seq2seq_attn import __version__
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import MANIFEST, check_files, read_json, read_listed_json
from seq2seq_attn.run import Run
from seq2seq_attn.run.hub import HUB, open_hub

_LIBRARY = "seq2seq-attn"
_CORPORA = {
    "captions": ("the generated captions of seq2seq-attn, under its license (MIT)", "mit"),
    "multi30k": ("Multi30k, for non-commercial research and education", "other"),
}
"""the corpora that have a name, with the license of a model trained on them"""
_MEASURES = ("bleu", "chrf", "ter")  # those of the card

log = logging.getLogger(__name__)


def push_run(
    run: Run, repository: str, *, license: str | None = None, is_private: bool = False
) -> str:
    """Publish a run as the repository `OWNER/NAME`, which is made if there is none, and return its
    address. `license`: the hub's name of one, such as `cc-by-4.0`; None: that of the corpus if it
    has a name. Raises UserError: the run is unfinished or damaged, or the hub refuses it."""
    if not run.is_finished():
        raise UserError(f"{run.path}: not finished; only finished runs are published")
    content: dict[str, Any] = {
        name: str(run.path / name) for name in [*check_files(run.path), MANIFEST]
    }
    with open_hub(f"{repository}: cannot be published") as hub:
        content["README.md"] = make_card(run, repository, license).encode()
        api, operations = hub.HfApi(), [hub.CommitOperationAdd(*item) for item in content.items()]
        api.create_repo(repository, private=is_private or None, exist_ok=True)
        api.create_commit(
            repository, operations, commit_message=f"{run.path.name}, by {_LIBRARY} {__version__}"
        )
    log.info("the text of the validation and test sets is not published")
    return f"{api.endpoint}/{repository}"


def make_card(run: Run, repository: str, license: str | None = None) -> str:
    """The model card: metadata of the hub, then scores, training and license, all from the run's
    records. Raises UserError if one is damaged."""
    from huggingface_hub import EvalResult, ModelCardData

    config, name = run.config, run.path.name
    data, model = config.data, config.model
    corpus, default_license = _CORPORA.get(data.corpus, ("a text of its own", "unknown"))
    scores = list(_scores(run))
    if not scores:
        log.warning(
            "%s: no report.json, so the card has no scores; run seq2seq evaluate %s first",
            run.path,
            run.path,
        )
    metadata = ModelCardData(
        language=[*dict.fromkeys([*data.sources, data.target_language])],
        license=license or default_license,
        library_name=_LIBRARY,
        pipeline_tag="translation",
        model_name=name,
        eval_results=[
            EvalResult(
                "translation",
                data.corpus,
                test,
                measure,
                score,
                metric_args={"signature": signature},
            )
            for test, _, measure, score, _, signature in scores
        ]
        or None,
    )
    rows = [
        " | ".join(str(cell).replace("|", "\\|") for cell in row) for row in scores
    ]  # signatures hold bars
    finished, environment = read_listed_json(run.path / "finished.json"), run.environment or {}
    return _TEMPLATE.format(
        yaml=metadata.to_yaml(),
        name=name,
        languages=f"{data.source_name} to {data.target_language}",
        model=f"encoder {model.encoder.name}, decoder {model.decoder.name}, attention {model.attention.name}",
        repository=f"{HUB}{repository}",
        scores="".join(f"| {row} |\n" for row in rows) or "| not evaluated | | | | | |\n",
        seed=config.seed,
        updates=finished.get("update"),
        minutes=round(finished.get("minutes", 0.0), 1),
        hardware=environment.get("device_name"),
        commit=(environment.get("git") or {}).get("commit"),
        corpus=corpus,
        text=run.text_hashes["train"],
        license=license or default_license,
    )


def _scores(run: Run) -> Iterator[tuple[str, int, str, float, str, str]]:
    """Test set, pairs, measure, score, interval and signature, as `evaluate` saved them under any
    name."""
    path = run.path / "report.json"
    for test in read_json(path)["sets"] if path.exists() else ():
        for measure in test["measures"]:
            for scored in measure["runs"]:
                if (len(measure["runs"]) == 1 or scored["run"] == run.path.name) and measure[
                    "name"
                ] in _MEASURES:
                    score, interval = (
                        round(scored["score"], 1),
                        f"{scored['low']:.1f} to {scored['high']:.1f}",
                    )
                    yield (
                        test["name"],
                        test["num_pairs"],
                        measure["name"],
                        score,
                        interval,
                        measure["signature"],
                    )


_TEMPLATE = """\
---
{yaml}
---

# {name}

Translates {languages}: a recurrent network of seq2seq-attn with {model}.

```bash
pip install 'seq2seq-attn[hub]'
seq2seq translate --run {repository} "..."
```

| test set | pairs | measure | score | 95 % interval | signature |
|---|---|---|---|---|---|
{scores}
Trained with seed {seed}: {updates} updates in {minutes} minutes on {hardware}, code at commit {commit}.
Data: {corpus}; SHA-256 of the training text: {text}. License of the model: {license}.
"""
