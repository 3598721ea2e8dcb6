"""Small runs to translate with and to evaluate."""

from itertools import product

import pytest

from seq2seq_attn.files import write_lines
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config


@pytest.fixture(scope="session")
def toy_runs(tmp_path_factory):
    """Runs that no test changes: with subwords (`toy`), with words as tokens, and with words and a
    fixed vector."""
    root = tmp_path_factory.mktemp("runs")
    words = toy_config(tokenizer="spacy")
    fixed = toy_config(tokenizer="spacy", attention="fixed")
    configs = {"toy": None, "words": words, "fixed": fixed}
    return {name: make_toy_run(root / name, config) for name, config in configs.items()}


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """Two runs of one corpus with two test sets, and one of another corpus."""
    root = tmp_path_factory.mktemp("evaluate")
    for language, sentences in (("de", SOURCE), ("en", TARGET)):
        for name in ("train", "valid", "short"):
            write_lines(root / f"{name}.{language}", sentences)
        write_lines(root / f"long.{language}", map(" ".join, product(sentences, repeat=2)))
    data = {
        "corpus": "files",
        "data_dir": str(root),
        "train": str(root / "train"),
        "valid": str(root / "valid"),
        "test": {"short": str(root / "short"), "long": str(root / "long")},
    }
    make_toy_run(root / "additive", toy_config(**data))
    make_toy_run(root / "none", toy_config(attention="fixed", **data), seed=4)
    other = toy_config(tokenizer="spacy", **{**data, "test": {"short": str(root / "long")}})
    other.data.tokenizer.lowercase = True
    make_toy_run(root / "other", other)
    return root
