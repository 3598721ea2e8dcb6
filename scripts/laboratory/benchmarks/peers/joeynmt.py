"""JoeyNMT's turns in scripts/bench_peers, run in its environment.

Its own `TrainManager.train_and_validate` and `predict` run; what they are given is wrapped: the training batches, to
stop between turns, and `search`, because `predict` does not pass `min_output_length` on to it.
"""

from __future__ import annotations

import functools
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joeynmt.prediction
from joeynmt.config import parse_global_args, set_validation_args
from joeynmt.data import load_data
from joeynmt.model import build_model
from joeynmt.training import TrainManager

from scripts.laboratory.benchmarks.peers.turns import Turns

FAR = 10**9
"""updates: never"""


def main() -> None:
    """Train or decode, turn by turn."""
    logging.getLogger("joeynmt").setLevel(logging.INFO)
    turns = Turns()
    with tempfile.TemporaryDirectory(dir=turns.task["data"]) as folder:
        args = parse_global_args(config(turns.task, folder), rank=0, mode="train")
        (train if turns.task["do"] == "train" else decode)(turns, args)


def train(turns: Turns, args: Any) -> None:
    """As `joeynmt.training.train`, with batches that wait for their turn."""
    model, train_data, dev_data, _ = joeynmt.prediction.prepare(args, rank=0, mode="train")
    trainer = TrainManager(
        model=model,
        model_dir=args.model_dir,
        device=args.device,
        n_gpu=args.n_gpu,
        num_workers=args.num_workers,
        rank=0,
        autocast=args.autocast,
        seed=args.seed,
        train_args=args.train,
        dev_args=set_validation_args(args.test),
    )
    make_iter = train_data.make_iter
    train_data.make_iter = lambda **options: Gate(turns, make_iter(**options))
    turns.ready(model, "joeynmt")
    trainer.train_and_validate(train_data=train_data, valid_data=dev_data)


class Gate:
    """A data loader that gives its batches out turn by turn."""

    def __init__(self, turns: Turns, loader: Any) -> None:
        self._turns, self._loader = turns, loader
        self.batch_sampler = loader.batch_sampler

    def __iter__(self) -> Iterator[Any]:
        return self._turns.train(self._loader, lambda batch: batch.ntokens)


def decode(turns: Turns, args: Any) -> None:
    """`predict` with an untrained model: the number of steps is given, so it does not matter what is found."""
    data = {}
    for split in ("warm", "test"):
        args.data["test"] = f"{turns.task['data']}/{split}"
        source_vocab, target_vocab, _, _, data[split] = load_data(cfg=args.data, datasets=["test"])
    model = build_model(args.model, src_vocab=source_vocab, trg_vocab=target_vocab)
    model.loss_function = (args.train.loss, 0.0)
    steps = turns.task["steps"]
    joeynmt.prediction.search = functools.partial(joeynmt.prediction.search, min_output_length=steps)

    def translate(split: str, beam_size: int) -> Any:
        test_args = args.test._replace(beam_size=beam_size, max_output_length=steps)
        options = {"device": args.device, "n_gpu": 0, "args": test_args, "autocast": args.autocast}
        return joeynmt.prediction.predict(model, data[split], **options)[3]

    turns.ready(model, "joeynmt")
    turns.decode(translate)


def config(task: dict[str, Any], folder: str) -> dict[str, Any]:
    """The values of a configuration file."""
    embeddings = {"embedding_dim": task["embedding_size"], "scale": False, "dropout": task["dropout"]}
    rnn = {"type": "recurrent", "rnn_type": "gru", "num_layers": 1, "embeddings": embeddings}
    decoder = {
        "input_feeding": True,
        "init_hidden": "bridge",
        "attention": "bahdanau",
        "hidden_dropout": task["dropout"],
    }
    sides = {"src": ("de", "source"), "trg": ("en", "target")}
    return {
        "name": "bench",
        "model_dir": str(Path(folder)),
        "use_cuda": False,
        "random_seed": 1,
        "data": {
            "train": f"{task['data']}/train",
            "dev": f"{task['data']}/valid",
            "dataset_type": "plain",
            **{
                name: {"lang": language, "level": "word", "voc_file": f"{task['data']}/{side}.vocab"}
                for name, (language, side) in sides.items()
            },
        },
        "training": {
            "optimizer": "adam",
            "learning_rate": 1e-3,
            # constant; the default, "plateau", gives torch an argument that it no longer has
            "scheduling": "exponential",
            "decrease_factor": 1.0,
            "clip_grad_norm": 1.0,
            "normalization": "tokens",
            "batch_size": task["batch_size"],
            "batch_type": "sentence",
            "epochs": FAR,
            "validation_freq": FAR,
            "logging_freq": FAR,
        },
        "testing": {"batch_size": task["batch_size"], "batch_type": "sentence", "beam_alpha": -1},
        "model": {
            "initializer": "xavier_uniform",
            "encoder": {**rnn, "hidden_size": task["hidden_size"] // 2, "bidirectional": True},
            "decoder": {**rnn, "hidden_size": task["hidden_size"], **decoder},
        },
    }


if __name__ == "__main__":
    main()
