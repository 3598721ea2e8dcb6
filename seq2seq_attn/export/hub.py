"""Publish a run on the Hugging Face hub, with a model card made from the records of the run.

`Run.open` downloads a published run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from seq2seq_attn import __version__
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import MANIFEST, ListedFiles, check_files, read_json
from seq2seq_attn.run import Run
from seq2seq_attn.run.hub import HUB, open_hub

_LIBRARY = "seq2seq-attn"
_CORPORA = {
    "captions": ("the generated captions of seq2seq-attn, under its license (MIT)", "mit"),
    "multi30k": ("Multi30k, for non-commercial research and education", "other"),
}
"""the description of each built-in corpus, and the license of a model that is trained on it"""
_MEASURES = ("bleu", "chrf", "ter")
"""measures that the card shows"""

log = logging.getLogger(__name__)


def push_run(
    run: Run, repository: str, *, license: str | None = None, is_private: bool = False
) -> str:
    """Publish a run as a repository on the hub, and return the address of the repository.

    Args:
        repository: `OWNER/NAME`. The repository is created if it does not exist.
        license: the hub's name of a license, such as `cc-by-4.0`. By default, the license belongs
            to the corpus, and is `unknown` for a text of your own.
        is_private: whether a new repository is private.

    Raises:
        UserError: the run is unfinished or damaged, or the hub refuses the run.
    """
    if not run.is_finished():
        raise UserError(f"{run.path}: not finished; only finished runs are published")
    with open_hub(f"{repository}: cannot be published") as hub:
        card = make_card(run, repository, license)
        operations = [hub.CommitOperationAdd("README.md", card.encode())]
        for name in [*check_files(run.path), MANIFEST]:
            operations.append(hub.CommitOperationAdd(name, str(run.path / name)))
        api = hub.HfApi()
        api.create_repo(repository, private=is_private or None, exist_ok=True)
        message = f"{run.path.name}, by {_LIBRARY} {__version__}"
        api.create_commit(repository, operations, commit_message=message)
    log.info("the text of the validation and test sets is not published")
    return f"{api.endpoint}/{repository}"


def make_card(run: Run, repository: str, license: str | None = None) -> str:
    """Return the model card of a run, made from the records of the run.

    The card has metadata for the hub, followed by scores, training and license as text.

    Raises:
        UserError: a record is damaged.
    """
    config = run.config
    data = config.data
    model = config.model
    corpus, default_license = _CORPORA.get(data.corpus, ("a text of its own", "unknown"))
    license = license or default_license
    scores = list(_scores(run))
    rows = ""
    for score in scores:
        # Signatures contain `|`, which would end a cell of the table.
        cells = [str(cell).replace("|", "\\|") for cell in score]
        rows += f"| {' | '.join(cells)} |\n"
    if not scores:
        log.warning(
            "%s: no report.json of this model, so the card has no scores; run seq2seq evaluate %s "
            "first",
            run.path,
            run.path,
        )
    finished = ListedFiles(run.path).read_json("finished.json")
    environment = run.environment or {}
    git = environment.get("git") or {}
    return _TEMPLATE.format(
        yaml=_metadata(run, scores, license),
        name=run.path.name,
        languages=f"{data.source_name} to {data.target_language}",
        encoder=model.encoder.name,
        decoder=model.decoder.name,
        attention=model.attention.name,
        repository=f"{HUB}{repository}",
        scores=rows or "| not evaluated | | | | | |\n",
        seed=config.seed,
        updates=finished.get("update"),
        minutes=round(finished.get("minutes", 0.0), 1),
        hardware=environment.get("device_name"),
        commit=git.get("commit"),
        corpus=corpus,
        text=run.text_hashes["train"],
        license=license,
    )


class _Score(NamedTuple):
    """A row of the card's table: the score of a test set by a measure."""

    test_set: str
    num_pairs: int
    measure: str
    score: float
    interval: str
    signature: str


def _metadata(run: Run, scores: Sequence[_Score], license: str) -> str:
    """Return the metadata of the card as YAML."""
    from huggingface_hub import EvalResult, ModelCardData

    data = run.config.data
    results = []
    for score in scores:
        result = EvalResult("translation", data.corpus, score.test_set, score.measure, score.score)
        result.metric_args = {"signature": score.signature}
        results.append(result)
    metadata = ModelCardData(
        language=list(dict.fromkeys([*data.sources, data.target_language])),
        license=license,
        library_name=_LIBRARY,
        pipeline_tag="translation",
        model_name=run.path.name,
        eval_results=results or None,
    )
    return str(metadata.to_yaml())


def _scores(run: Run) -> Iterator[_Score]:
    """Yield the scores that `evaluate` saved in the run, unless its best model has changed since.

    If the report has a single run, its scores are taken whatever the name, because the run may have
    been renamed since its evaluation.
    """
    path = run.path / "report.json"
    if not path.exists():
        return
    report = read_json(path)
    update = run.load_best().values["update"]
    for scored in report["runs"]:
        is_this_run = len(report["runs"]) == 1 or scored["name"] == run.path.name
        if is_this_run and scored["model"]["update"] != update:
            return
    for test_set in report["sets"]:
        for measure in test_set["measures"]:
            is_alone = len(measure["runs"]) == 1
            for scored in measure["runs"]:
                if measure["name"] in _MEASURES and (is_alone or scored["run"] == run.path.name):
                    yield _Score(
                        test_set["name"],
                        test_set["num_pairs"],
                        measure["name"],
                        round(scored["score"], 1),
                        f"{scored['low']:.1f} to {scored['high']:.1f}",
                        measure["signature"],
                    )


_TEMPLATE = """\
---
{yaml}
---

# {name}

Translates {languages}: a recurrent network of seq2seq-attn with encoder {encoder}, decoder
{decoder}, attention {attention}.

```bash
pip install 'seq2seq-attn[hub]'
seq2seq translate --run {repository} "..."
```

| test set | pairs | measure | score | 95 % interval | signature |
|---|---|---|---|---|---|
{scores}
Trained with seed {seed}: {updates} updates in {minutes} minutes on {hardware},
code at commit {commit}.
Data: {corpus}; SHA-256 of the training text: {text}. License of the model: {license}.
"""
