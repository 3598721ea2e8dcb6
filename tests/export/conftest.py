"""Pages of runs, and a browser to look at them."""

import pytest

from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.export.page import export_page
from seq2seq_attn.files import write_listed
from tests.toy_run import make_toy_run, toy_config


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run with attention and one with a fixed vector."""
    folder = tmp_path_factory.mktemp("runs")
    return [
        make_toy_run(folder / name, toy_config(tokenizer="spacy", attention=name), seed=seed)
        for seed, name in enumerate(("additive", "fixed"), start=4)
    ]


@pytest.fixture(scope="module")
def address(runs):
    path = runs[0].path.with_name("page.html")
    export_page(runs, path)
    return path.as_uri()


@pytest.fixture(scope="module")
def captions(tmp_path_factory):
    """A run on captions whose first eight test sentences, of twelve, are translated without a
    mistake."""
    folder = tmp_path_factory.mktemp("captions")
    limit = {"train": 60, "valid": 10, "test": 12}
    config = toy_config(corpus="captions", data_dir=str(folder), limit=limit, tokenizer="spacy")
    run = make_toy_run(folder / "run", config)
    run.save_sets(prepare_corpus(config))
    run.hyps_dir.mkdir(exist_ok=True)
    content = "\n".join([*run.read_set("test").references[:8], *"abcd", ""])
    write_listed(run.hyps_dir / "test.txt", content.encode())
    return run


@pytest.fixture(scope="module")
def captions_page(captions):
    path = captions.path.with_name("page.html")
    export_page([captions, captions], path)
    return path
