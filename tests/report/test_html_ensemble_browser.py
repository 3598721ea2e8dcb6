"""The page of an evaluation with an ensemble: it has scores and attention, but no training of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation_requests import run_evaluate
from tests.report.browsing import every, one, show
from tests.toy_run import SOURCE, TARGET, make_toy_run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("ensemble")
    for seed, name in enumerate(("a", "b"), start=4):
        run = make_toy_run(root / name, seed=seed)
        run.metrics_path.write_text(
            "".join(
                f'{{"event": "validation", "update": {update}, "bleu": {update}, "perplexity": 9}}\n'
                for update in (1, 2)
            ),
            encoding="utf-8",
        )
    for name, lines in (("source", SOURCE * 2), ("target", TARGET * 2)):
        (root / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = {"source": root / "source", "reference": root / "target"}
    run_evaluate(root, "a", "b", ensemble=True, page=root / "page.html", **files)
    return Path(root / "page.html").as_uri()


def test_an_ensemble_has_scores_and_attention_but_no_training(browser, page):
    show(browser, page)
    text = one(browser, "main").text
    assert "ensemble of a, b" in text
    assert "Validation BLEU" in text
    assert "No learning curve of" not in text
    assert "No sentence vectors of" not in text
    assert "No attention maps of" not in text
    assert len(every(browser, "#config-table thead th")) == 3  # the setting, a, b
