"""A toy corpus (words translated and reversed) and configurations small enough to train in a
second."""

import random

import pytest
import torch

from seq2seq_attn.config import load_config
from seq2seq_attn.run import Run
from seq2seq_attn.train.checkpoint import TrainState
from seq2seq_attn.train.log import TrainLog
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.schedules import Schedules

SOURCE = "Hund Katze Mann Frau Kind Ball Haus Baum".split()
TARGET = "dog cat man woman child ball house tree".split()


def write_toy_corpus(directory):
    generator = random.Random(1)
    directory.mkdir(parents=True, exist_ok=True)
    for split, num_pairs in (("train", 160), ("valid", 24), ("test", 20)):
        sources = ""
        targets = ""
        for _ in range(num_pairs):
            indices = [generator.randrange(8) for _ in range(generator.randint(1, 5))]
            sources += " ".join(SOURCE[index] for index in indices) + "\n"
            targets += " ".join(TARGET[index] for index in reversed(indices)) + "\n"
        (directory / f"{split}.de").write_text(sources)
        (directory / f"{split}.en").write_text(targets)


def toy_settings(corpus):
    """The overrides of a toy training, for a configuration or a command line."""
    return [
        "name=toy",
        "data.corpus=files",
        f"data.data_dir={corpus}",
        f"data.train={corpus / 'train'}",
        f"data.valid={corpus / 'valid'}",
        f"data.test={{test: {corpus / 'test'}}}",
        "data.tokenizer.name=characters",
        "model.embedding_size=17",
        "model.hidden_size=23",
        "model.encoder.hidden_size=13",
        "train.num_threads=1",
        "train.device=cpu",
        "train.precision=fp32",
        "train.batch.size=16",
        "train.log_every_updates=3",
        "train.checkpoint_every_updates=2",
        "train.max_epochs=2",
    ]


@pytest.fixture(scope="session")
def toy_config(toy_corpus):
    """Makes the configuration of a toy training: 10 updates an epoch; overrides as `--set` takes
    them."""

    def make(*overrides):
        return load_config((), [*toy_settings(toy_corpus), *overrides])

    return make


@pytest.fixture
def train_toy(toy_config, tmp_path):
    """Trains by `toy_config` and its overrides, in a folder of the test."""

    def train_run(*overrides, name="run", **options):
        return train(toy_config(*overrides), run_dir=tmp_path / name, **options)

    return train_run


def open_log(directory, *, position=None, update=0):
    """The log of a new run, or of one that is resumed at this position of `metrics.jsonl`."""
    config = load_config(["quickstart"]).train
    saved_at = None if position is None else update
    state = TrainState(update=update, saved_at=saved_at, metrics_position=position or 0)
    return TrainLog(
        Run(directory),
        config,
        Schedules(config, updates_per_epoch=1),
        state,
        num_types=9,
        writes=True,
    )


@pytest.fixture(autouse=True)
def _threads():
    number = torch.get_num_threads()
    yield
    torch.set_num_threads(number)
