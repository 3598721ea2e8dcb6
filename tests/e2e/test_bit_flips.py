"""Single-bit flips in a run directory and in a prepared corpus: each is refused with one line, or
has no effect on anything that is used. The sample is small; the slow tier takes 200 flips of
each."""

import logging
import random
import shutil

import pytest

from seq2seq_attn import load
from seq2seq_attn.config import load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.model.weights import read_tensors
from seq2seq_attn.run import Run, newest_run
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.session import load_settings
from tests.train.conftest import toy_settings, write_toy_corpus

SENTENCES = ["Hund Katze", "Mann Frau Kind Ball", "Haus"]
NUM_FLIPS = pytest.mark.parametrize("num_flips", [24, pytest.param(200, marks=pytest.mark.slow)])


@pytest.fixture(scope="module")
def trained(module_path):
    """A configuration, and the folder of a run trained with it."""
    write_toy_corpus(module_path / "text")
    changes = [
        "train.max_epochs=1",
        "data.tokenizer.name=sentencepiece",
        "data.tokenizer.vocab_size=30",
    ]
    config = load_config((), [*toy_settings(module_path / "text"), *changes])
    return config, train(config, run_dir=module_path / "runs/toy").path


def flip_bits(folder, num_flips, use):
    """Flip bits one after the other, in all files in turn. Returns the outcomes of
    `use`, each with the name of the file.

    A refusal is one line: an error, or a warning that names the file.
    """
    generator = random.Random(1)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    expected = use()
    outcomes = set()
    for number in range(num_flips):
        path = files[number % len(files)]
        whole = path.read_bytes()
        damaged = bytearray(whole)
        damaged[generator.randrange(len(whole))] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)
        try:
            outcome = "without effect" if use() == expected else "WRONG"
        except UserError as error:
            outcome = "refused" if "\n" not in str(error) else "WRONG: several lines"
        path.write_bytes(whole)
        outcomes.add((outcome, path.name))
    assert {outcome for outcome, _ in outcomes} <= {"refused", "without effect"}, outcomes
    return outcomes


@NUM_FLIPS
def test_a_run_directory(trained, num_flips, caplog):
    def use():
        caplog.clear()
        run = Run(trained[1])
        translations = load(run.path, "cpu").translate(SENTENCES)
        settings = load_settings([], run_dir=run.path, resume=True)
        tensors, values, _ = read_tensors(run.state_path)
        used = [settings, values, run.environment, run.load_best().values]
        used += [(one.text, one.score) for one in translations]
        used.append({name: tensor.tolist() for name, tensor in tensors.items()})
        used.append(newest_run(run.path.parent).finished_at())
        for record in caplog.records:
            if record.levelno >= logging.WARNING:
                raise UserError(record.getMessage())
        return used

    for outcome, name in flip_bits(trained[1], num_flips, use):
        assert outcome == "refused" or not name.endswith(
            (".safetensors", ".vocab", ".model", ".tokenizer.json")
        ), name


@NUM_FLIPS
def test_a_prepared_corpus(trained, tmp_path, num_flips):
    store = shutil.copytree(prepare_corpus(trained[0]).directory, tmp_path / "store")

    def use():
        prepared = PreparedCorpus(store)
        used = [prepared.meta, prepared.source_vocab.tokens, prepared.target_vocab.tokens]
        used.append(prepared.source_tokenizer.tokenize_many(SENTENCES))
        used.append(prepared.target_tokenizer.tokenize("a dog"))
        for split in prepared.splits:
            used += [prepared.text(split), prepared.links(split)]
            pairs = prepared.pairs(split)
            for index in range(len(pairs)):
                used += [pairs.source_ids[index].tolist(), pairs.target_ids[index].tolist()]
        return used

    outcomes = flip_bits(store, num_flips, use)
    assert all(outcome == "refused" or name == "manifest.json" for outcome, name in outcomes), (
        outcomes
    )
