"""Fine-tuning: a run's tokenizers, vocabularies and model on other text, with and without pairs of
its own text."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from seq2seq_attn import train_model
from seq2seq_attn.__main__ import run
from seq2seq_attn.config import load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.vocabs import vocab_identity
from seq2seq_attn.files import list_files
from seq2seq_attn.run import Run
from seq2seq_attn.text.known_words import KnownWords
from seq2seq_attn.train.loop import train
from tests.cli.command_line import assert_fails, outputs
from tests.train.conftest import toy_settings, write_toy_corpus
from tests.train.runs import assert_same_tensors

NEW = [
    ("Hund Vogel", "bird dog"),
    ("Vogel Maus", "mouse bird"),
    ("Katze Hund", "dog cat"),
    ("Mann", "man"),
] * 5
NUM_NEW = len(NEW)
TUNE = "train --from=old --train=new.tsv --valid=corpus/valid --test=corpus/test".split()
OLD_TRAIN = ["train", "-c", "old/config.yaml"]
OLD = "prepare -c old/config.yaml --set=data.vocab_from=old".split()


@pytest.fixture(scope="module")
def finished(module_path):
    """A folder with a run `old` on words, the toy corpus, and a new text with words that the run
    lacks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(module_path)
        write_toy_corpus(Path("corpus"))
        settings = [
            *toy_settings(Path("corpus")),
            "data.data_dir=data",
            "data.tokenizer.name=spaces",
            "train.max_updates=6",
            "train.max_epochs=1",
            "data.limit.train=100",
        ]
        train(load_config(["base"], settings), run_dir=Path("old"))
    rows = ["de\ten", *(f"{source}\t{target}" for source, target in NEW)]
    (module_path / "new.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    return module_path


@pytest.fixture(autouse=True)
def _folder(finished, tmp_path, monkeypatch):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def tune(*arguments):
    assert run([*TUNE, *arguments, "--run-dir=new"]) == 0
    return Run("new")


def test_a_run_is_tuned_with_its_vocabulary(capsys):
    new = tune("--set=train.max_epochs=2")
    old = Run("old")
    err = capsys.readouterr().err
    assert (new.source_vocab, new.target_vocab) == (old.source_vocab, old.target_vocab)
    for side in ("source", "target"):
        # Vogel twice and Maus, or bird and mouse, in each of 5
        assert f"{side}: 15 of 35 tokens" in err
    config = new.config
    assert config.model == old.config.model
    assert config.train.max_updates is None
    assert config.data.limit.train is None
    assert config.train.schedule.name == "cosine"
    assert "training starts from its weights" in new.log_path.read_text("utf-8")
    assert len(outputs(capsys, "translate", "--run=new", "Hund Katze", "Vogel")) == 2
    shutil.rmtree("old")
    shutil.rmtree("data")  # its corpus is prepared again, from the tokenizers in the run
    assert "BLEU" in "\n".join(outputs(capsys, "evaluate", "new", "--no-attention"))


@pytest.mark.parametrize("mix", [0, 0.5, 6])
def test_mixing_adds_pairs_of_the_old_text(mix):
    texts = {"train_text": "new.tsv", "valid_text": "corpus/valid", "test_text": "corpus/test"}
    new = train_model(settings={"data.mix": mix, "train.max_updates": 1}, from_run="old", **texts)
    prepared = prepare_corpus(load_config([str(new.config_path)]))
    kept = list(zip(*prepared.text("train"), strict=True))
    assert kept[:NUM_NEW] == NEW
    old = prepare_corpus(Run("old").config)
    old_pairs = Counter(zip(*old.text("train"), strict=True))
    # the run has 100 pairs: 6 * 20 are all of them, and 20 again
    assert len(kept) + num_denied(prepared.meta["notes"]) == NUM_NEW + mix * NUM_NEW
    assert set(kept[NUM_NEW:]) <= set(old_pairs)
    assert old.meta["splits"] == ["train", "valid", "test"]


@pytest.mark.parametrize("name", ["finetune", "language-model"])
def test_text_that_a_run_mixed_in_is_not_inherited(name, tmp_path):
    tuned = tmp_path / "tuned.yaml"
    tuned.write_text("data: {mix: 1, vocab_from: old, columns: [2, 1]}\n", "utf-8")
    data = load_config([str(tuned), name]).data
    assert (data.mix, data.columns) == (0, [])


def test_another_run_may_give_the_weights():
    shutil.copytree("old", "other")
    tune("--set=train.start_from=other")
    assert Run(Path("new")).config.train.start_from == Path("other")


def test_an_old_run_with_other_words_is_another_corpus():
    data = load_config(["old/config.yaml"], {"data.vocab_from": "old"}).data
    before = vocab_identity(data, Path("old"))
    KnownWords(frozenset(), [], [], []).save(Path("old/words.json"))
    list_files(Path("old"), [Path("old/words.json")])
    assert vocab_identity(data, Path("old")) != before


def num_denied(notes):
    """The pairs that were drawn, but have a sentence of the validation or test set."""
    return sum(int(note.split("pairs; ")[1].split()[0]) for note in notes if "data.mix" in note)


def test_a_language_model_can_mix_in_old_target_text(capsys):
    arguments = ["-c", "language-model", "--set=data.mix=1"]
    text = ["--train=corpus/valid.en", "--valid=corpus/test.en"]
    assert "data.mix=1: " in "\n".join(outputs(capsys, *OLD, *arguments, *text))


def test_a_resume_needs_the_old_run_no_more():
    settings = [
        "--set=data.mix=1",
        "--set=train.batch.size=4",
        "--set=train.schedule.name=constant",
    ]
    tune(*settings, "--set=train.max_updates=4")
    shutil.move("new", "whole")
    tune(*settings, "--set=train.max_updates=2")
    shutil.move("old", "elsewhere")
    shutil.move("new", "moved")
    assert run("train --resume --run-dir=moved --set=train.max_updates=4".split()) == 0
    assert_same_tensors(Run("moved"), Run("whole"))


def test_a_run_whose_text_is_mixed_in_is_not_overwritten(capsys):
    overwrite = ["--set=data.mix=1", "--run-dir=./old", "--overwrite"]
    assert_fails(capsys, *TUNE, *overwrite, code=2, message="data.mix=1")


def test_a_changed_old_text_is_not_mixed(capsys):
    write_toy_corpus(Path("corpus"))
    lines = Path("corpus/train.de").read_text("utf-8").replace("Hund", "Katze")
    Path("corpus/train.de").write_text(lines, "utf-8")
    assert_fails(capsys, *TUNE, "--set=data.mix=1", code=1, message="data.mix")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--from=old"], "--train"),
        (["train", "--from=nowhere", "--train=new.tsv"], "nowhere"),
        ([*TUNE[:3], "--columns=1,2", "--source-language=fr"], "de to en"),
        ([*TUNE, "--set=data.vocab.min_frequency=2"], "data.vocab"),
        ([*TUNE, "--set=data.mix=-1"], "data.mix"),
        ([*TUNE, "--set=data.mix=1", "--set=data.links=corpus/train.de"], "data.links"),
        ([*OLD_TRAIN, "--set=data.mix=1"], "data.vocab_from"),
        ([*OLD, "--set=data.tokenizer.name=characters"], "data.tokenizer"),
        ([*OLD, "--set=data.source_language=en", "--set=data.target_language=de"], "de to en"),
        ([*OLD_TRAIN, "--set=train.start_from=old", "--set=data.limit.train=9"], "vocab_from=old"),
    ],
)
def test_wrong_uses(arguments, message, capsys):
    assert_fails(capsys, *arguments, code=2, message=message)
