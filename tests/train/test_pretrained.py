"""Start values that are not random: the weights of another run, word vectors, a translation table.
A resumed and moved run needs none of their files."""

import re
import shutil
from pathlib import Path

import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.run import Run
from seq2seq_attn.text.ibm1 import estimate_table
from seq2seq_attn.train.loop import train
from tests.train.conftest import write_toy_corpus
from tests.train.runs import assert_same_tensors, logged

HARDLY = ["train.optimizer.learning_rate=1e-6", "train.max_updates=1"]
AVERAGE = "train.optimizer.average_decay=0.9"
SIZE = 17
LETTERS = "abdefgHKlMnrstu"


@pytest.fixture(scope="module")
def before(toy_config, module_path):
    """The run to start from."""
    config = toy_config("train.max_updates=6", "seed=5")
    return train(config, run_dir=module_path / "before")


@pytest.fixture
def vectors(tmp_path):
    """A vector for each of some letters: the corpus is tokenized into characters."""
    path = tmp_path / "letters.vec"
    numbers = " ".join(["0.25"] * (SIZE - 1))
    lines = [f"{letter} {number} {numbers}" for number, letter in enumerate(LETTERS)]
    path.write_text(f"{len(LETTERS)} {SIZE}\n" + "\n".join(lines) + "\n", "utf-8")
    return path


def largest_difference(run, expected):
    expected_tensors = expected.load_best().tensors
    tensors = run.load_best().tensors
    return max((tensors[name] - expected_tensors[name]).abs().max().item() for name in tensors)


def embedded(run, name):
    """The rows of the letters in an embedding, and their vectors."""
    vocab = run.source_vocab if name.startswith("encoder") else run.target_vocab
    known = [letter for letter in LETTERS if letter in vocab]
    first = torch.tensor([[float(LETTERS.index(letter))] for letter in known])
    expected = torch.cat([first, torch.full((len(known), SIZE - 1), 0.25)], dim=1)
    return run.load_best().tensors[name][vocab.ids_of(known)], expected


@pytest.mark.parametrize("average_decay", [0.0, 0.9])
def test_training_starts_from_the_best_weights(train_toy, before, average_decay, caplog):
    caplog.set_level("INFO")
    settings = [f"train.start_from={before.path}", f"train.optimizer.average_decay={average_decay}"]
    run = train_toy(*settings, *HARDLY, "model.dropout.embedding=0.6")
    assert largest_difference(run, before) < 1e-4
    assert f"{before.path}: " in caplog.text


@pytest.mark.parametrize("freeze", ["true", "false"])
def test_training_starts_from_word_vectors(train_toy, vectors, freeze, caplog):
    caplog.set_level("INFO")
    settings = [
        f"model.embedding.source_vectors={vectors}",
        f"model.embedding.freeze={freeze}",
        AVERAGE,
        *HARDLY,
    ]
    run = train_toy(*settings)
    rows, expected = embedded(run, "encoder.embedding.weight")
    torch.testing.assert_close(rows, expected, atol=1e-4, rtol=0)
    assert torch.equal(rows, expected) is (freeze == "true")
    types = run.source_vocab.tokens[4:]
    number = sum(letter.lower() in LETTERS.lower() for letter in types)
    assert f"vectors for {number} of {len(types)} source types" in caplog.text
    assert f"{number - len(rows)} of them found only in a different case" in logged(run)


def test_trained_word_vectors_and_lexicons_are_kept(train_toy, tmp_path, vectors):
    settings = [
        f"model.embedding.source_vectors={vectors}",
        "model.output={name: lexicon, options: {num_entries: 3}}",
    ]
    before = train_toy(*settings, "train.max_updates=4", name="before")
    settings += [f"train.start_from={before.path}", *HARDLY]
    corpus = tmp_path / "corpus"  # the same letters, and other words beside one another
    write_toy_corpus(corpus)
    lines = (corpus / "train.en").read_text("utf-8").splitlines()
    (corpus / "train.en").write_text("\n".join(lines[::-1]) + "\n", "utf-8")
    run = train_toy(*settings, f"data.train={corpus / 'train'}")
    assert largest_difference(run, before) < 1e-4


def test_new_word_vectors_are_not_read_beside_the_weights_of_a_run(
    train_toy, before, vectors, caplog
):
    setting = f"model.embedding.source_vectors={vectors}"
    train_toy(setting, f"train.start_from={before.path}", *HARDLY)
    assert f"{setting}: not read" in caplog.text


def test_both_models_of_an_agreement_start_from_the_other_run(train_toy, before, caplog):
    caplog.set_level("INFO")
    agreement = "train.objectives={agreement: {}}"
    both = train_toy(agreement, "train.max_updates=4", name="both")
    run = train_toy(agreement, *HARDLY, f"train.start_from={both.path}")
    assert largest_difference(run.reverse, both.reverse) < 1e-4
    train_toy(agreement, *HARDLY, f"train.start_from={before.path}", name="forward")
    assert f"{before.path}: " in caplog.text


@pytest.mark.parametrize("start", ["run", "vectors", "table"])
def test_a_resumed_and_moved_run_needs_the_files_no_more(
    train_toy, toy_config, tmp_path, before, vectors, start
):
    files = [f"model.embedding.{side}_vectors={vectors}" for side in ("source", "target")]
    first = shutil.copytree(before.path, tmp_path / "before")
    settings = {
        "run": [f"train.start_from={first}"],
        "vectors": [*files, "model.embedding.freeze=true"],
        "table": ["model.output={name: lexicon, options: {num_entries: 3}}", AVERAGE],
    }[start]
    whole = train_toy(*settings, "train.max_updates=4", name="whole")
    train_toy(*settings, "train.max_updates=2", name="half")
    shutil.rmtree(first)
    vectors.unlink()
    shutil.move(tmp_path / "half", tmp_path / "moved")
    resumed = train_toy(*settings, "train.max_updates=4", name="moved", resume=True)
    assert_same_tensors(resumed, whole)
    translator = load(resumed.path)
    assert len(translator.translate(["Hund"])) == 1
    if start == "vectors":
        assert torch.equal(*embedded(resumed, "embedding.weight"))
    if start == "table":
        probs_UK = resumed.load_best().tensors["output.probs_UK"]
        pairs = prepare_corpus(toy_config(*settings)).pairs("train")
        num_target_ids = len(translator.model.embedding.weight)
        model = build_model(
            resumed.config.model, num_source_ids=len(probs_UK), num_target_ids=num_target_ids
        )
        source = pairs.source_ids.__getitem__
        table = estimate_table(source, pairs.target_ids.__getitem__, len(pairs))
        model.output.set_table(table)
        assert torch.equal(model.output.probs_UK, probs_UK)
        assert torch.equal(translator.model.output.probs_UK, probs_UK)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.hidden_size=29", "model settings"),
        ("data.tokenizer.lowercase=true", r"data\.tokenizer"),
        ("data.vocab.min_frequency=2", r"data\.vocab"),
        ("train.start_from=nowhere", "nowhere"),
        ("train.start_from=null", r"missing\.vec"),
        ("model.embedding.target_vectors=short.vec", r"model\.embedding_size=3"),
        ("model.embedding.target_vectors=wrong.vec", r"wrong\.vec"),
    ],
)
def test_what_does_not_fit_is_refused_before_data_is_prepared(
    toy_config, before, setting, message, in_tmp_path
):
    Path("short.vec").write_text("a 1 2 3\n")
    Path("wrong.vec").write_text("a b\n")
    start = [] if "_vectors" in setting else [f"train.start_from={before.path}"]
    vectors = ["model.embedding.source_vectors=missing.vec"] if setting.endswith("null") else []
    with pytest.raises((UsageError, UserError), match=message):
        train(toy_config(*start, *vectors, setting, "data.data_dir=empty"), run_dir=Path("run"))
    assert not Path("empty").exists()
    assert not Path("run").exists()


def test_a_file_that_is_no_use_leaves_no_run(train_toy, tmp_path, vectors):
    vectors.write_text("ж" + " 1" * SIZE + "\n", "utf-8")
    with pytest.raises(UserError, match=r"letters\.vec"):
        train_toy(f"model.embedding.source_vectors={vectors}")
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_another_vocabulary_is_refused(train_toy, tmp_path, before):
    write_toy_corpus(tmp_path)
    for language in ("de", "en"):
        path = tmp_path / f"train.{language}"
        path.write_text(path.read_text().replace("a", "z"))
    with pytest.raises(UsageError, match=re.escape(str(before.path))):
        train_toy(f"data.train={tmp_path / 'train'}", f"train.start_from={before.path}")
    assert Run(tmp_path / "run").is_empty()


@pytest.mark.parametrize(
    ("tie", "embedding", "frozen"),
    [
        ("target", {"freeze": True, "source_vectors": "x"}, ["encoder.embedding.weight"]),
        ("target", {"freeze": True, "target_vectors": "x"}, None),
        ("all", {"freeze": True, "source_vectors": "x"}, None),
        ("all", {"source_vectors": "x", "target_vectors": "y"}, None),
    ],
)
def test_frozen_embeddings_are_not_tied_to_what_is_trained(tie, embedding, frozen):
    config = ModelConfig(embedding_size=8, readout_size=8, tie_embeddings=tie, embedding=embedding)
    if frozen is None:
        with pytest.raises(UsageError, match=f"tie_embeddings={tie}"):
            build_model(config, num_source_ids=9, num_target_ids=9)
    else:
        parameters = build_model(config, num_source_ids=9, num_target_ids=9).named_parameters()
        assert [name for name, weight in parameters if not weight.requires_grad] == frozen
