"""The test sets of runs: their own text, whatever has become of the corpus."""

import shutil

import pytest

from seq2seq_attn.config import load_config
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.test_sets import find_sets
from seq2seq_attn.run import Run
from seq2seq_attn.train.loop import train
from tests.toy_run import make_toy_run
from tests.train.conftest import toy_settings, write_toy_corpus


@pytest.fixture(scope="module")
def trained(module_path):
    """A folder with the run `run`, whose validation pairs were set aside from its training text,
    and its text."""
    write_toy_corpus(module_path / "text")
    train_run(module_path, "run", "data.valid=null")
    return module_path


@pytest.mark.parametrize(("split", "num_pairs"), [("valid", 12), ("test", 20)])
def test_a_run_keeps_its_sets_when_it_is_moved(trained, tmp_path, split, num_pairs):
    [expected] = find_sets([Run(trained / "run")], [split])
    run = Run(shutil.copytree(trained / "run", tmp_path / "moved"))
    [test_set] = find_sets([run], [split])
    assert test_set == expected
    assert len(test_set.source) == len(test_set.references) == num_pairs


def test_the_default_is_the_test_set(trained):
    [test_set] = find_sets([Run(trained / "run")])
    assert test_set.source == (trained / "text/test.de").read_text().splitlines()
    assert test_set.references == (trained / "text/test.en").read_text().splitlines()


def test_the_reverse_model_keeps_the_sets_and_their_links_swapped(tmp_path, in_tmp_path):
    settings = ["data.limit={train: 40, valid: 9, test: 9}", "train.max_updates=1"]
    config = load_config(["quickstart"], [*settings, "train.objectives={agreement: {}}"])
    run = train(config, run_dir=tmp_path / "run")
    [there] = find_sets([run])
    [back] = find_sets([run.reverse])
    assert (back.source, back.references) == (there.references, there.source)
    assert there.gold.source_words == back.gold.target_words
    first = [link.split("-")[::-1] for link in there.gold.links[0].split()]
    assert [link.split("-") for link in back.gold.links[0].split()] == first


@pytest.mark.parametrize("split", ["valid", "test"])
def test_runs_of_different_sets_are_not_compared(trained, tmp_path, split):
    text = shutil.copytree(trained / "text", tmp_path / "text")
    for language in ("de", "en"):
        path = text / f"{'train' if split == 'valid' else 'test'}.{language}"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:15]))
    train_run(tmp_path, "other", "data.valid=null")
    runs = [Run(trained / "run"), Run(tmp_path / "other")]
    with pytest.raises(UsageError, match=r"other and .*run .*test sets"):
        find_sets(runs, [split])


@pytest.mark.parametrize(
    ("split", "message"),
    [("train", "--split train: .*--source FILE --reference FILE"), ("dev", "dev.*valid, test")],
)
def test_a_split_that_a_run_does_not_keep_is_refused(trained, split, message):
    with pytest.raises(UsageError, match=message):
        find_sets([Run(trained / "run")], [split])


def test_without_a_test_set_the_option_and_the_argument_of_a_split_are_named(trained):
    run = train_run(trained, "no test", "data.test={}")
    with pytest.raises(UsageError, match=r"--split valid.*split='valid'"):
        find_sets([run])


def test_a_run_without_sets_asks_for_files(tmp_path):
    """Like a run from the hub."""
    with pytest.raises(UserError, match="--source FILE --reference FILE"):
        find_sets([make_toy_run(tmp_path / "run")])


def train_run(folder, name, *settings):
    config = load_config((), [*toy_settings(folder / "text"), *settings, "train.max_updates=1"])
    return train(config, run_dir=folder / name)
