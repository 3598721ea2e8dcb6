"""OpenNMT-py's turns in scripts/bench_peers, run in its environment.

Training goes through what `onmt.train_single.main` calls, in its order, but for the iterator of batches, which waits
for its turn. Decoding goes through `Translator._translate`, as `onmt_translate` does.
"""

from __future__ import annotations

import io
import json
import logging
import tempfile
from pathlib import Path
from typing import Any

from onmt import train_single
from onmt.bin.train import _get_parser
from onmt.constants import CorpusTask
from onmt.inputters.dynamic_iterator import build_dynamic_dataset_iter
from onmt.model_builder import build_model
from onmt.opts import translate_opts
from onmt.translate import GNMTGlobalScorer, Translator
from onmt.utils.parse import ArgumentParser

from scripts.laboratory.benchmarks.peers.turns import Turns

CPU = -1
NUM_PAIRS = 29_000
"""a bucket: the training set, sorted as a whole, as with the default of 262,144, which would hold it nine times"""
FAR = 10**9
"""updates: never"""


def main() -> None:
    """Train or decode, turn by turn."""
    turns = Turns()
    with tempfile.TemporaryDirectory(dir=turns.task["data"]) as folder:
        opt = training_options(turns.task, Path(folder))
        train_single.configure_process(opt, CPU)
        _, vocabs, transforms = train_single._init_train(opt)
        model = build_model(opt, opt, vocabs, None, CPU)
        (train if turns.task["do"] == "train" else decode)(turns, opt, vocabs, transforms, model)


def train(turns: Turns, opt: Any, vocabs: Any, transforms: Any, model: Any) -> None:
    """The training loop, with batches that wait for their turn."""
    optimizer = train_single.Optimizer.from_opt(model, opt)
    trainer = train_single.build_trainer(opt, CPU, model, vocabs, optimizer)
    batches = build_dynamic_dataset_iter(opt, transforms, vocabs, task=CorpusTask.TRAIN, device_id=CPU)
    pad = trainer.train_loss.padding_idx

    def count_tokens(item: Any) -> int:
        batch, _ = item
        return int(batch["tgt"][:, 1:, 0].ne(pad).sum())

    turns.ready(model, "OpenNMT-py")
    trainer.train(turns.train(batches, count_tokens), opt.train_steps, save_checkpoint_steps=0, valid_steps=FAR)


def decode(turns: Turns, opt: Any, vocabs: Any, transforms: Any, model: Any) -> None:
    """Translate with an untrained model: the number of steps is given, so it does not matter what is found."""
    model.eval()

    def translate(split: str, beam_size: int) -> list[list[str]]:
        options = decoding_options(turns.task, split, beam_size)
        translator = Translator.from_opt(
            model,
            vocabs,
            options,
            opt,
            global_scorer=GNMTGlobalScorer.from_opt(options),
            out_file=io.StringIO(),
            report_score=False,
            logger=logging.getLogger(),
        )
        lines = build_dynamic_dataset_iter(options, transforms, vocabs, task=CorpusTask.INFER, device_id=CPU)
        _, found = translator._translate(lines, lines.transforms)
        return [best[0].split(" ") for best in found]

    turns.ready(model, "OpenNMT-py")
    turns.decode(translate)


def training_options(task: dict[str, Any], folder: Path) -> Any:
    """The options as the command line and a configuration file give them."""
    data = {
        "path_src": f"{task['data']}/train.de",
        "path_tgt": f"{task['data']}/train.en",
        "transforms": [],
        "weight": 1,
    }
    options = {
        "data": {"train": data},
        "src_vocab": f"{task['data']}/source.vocab",
        "tgt_vocab": f"{task['data']}/target.vocab",
        "vocab_size_multiple": 1,
        "save_model": str(folder / "model"),
        "encoder_type": "brnn",
        "decoder_type": "rnn",
        "rnn_type": "GRU",
        "layers": 1,
        "hidden_size": task["hidden_size"],
        "word_vec_size": task["embedding_size"],
        "global_attention": "mlp",
        "input_feed": 1,
        "dropout": [task["dropout"]],
        "batch_size": task["batch_size"],
        "batch_type": "sents",
        "bucket_size": NUM_PAIRS,
        "num_workers": 0,  # its worker processes would share the one core
        "normalization": "tokens",
        "optim": "adam",
        "learning_rate": 1e-3,
        "max_grad_norm": 1.0,
        "train_steps": FAR,
        "report_every": FAR,
        "seed": 1,
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(options), encoding="utf-8")  # JSON is YAML
    opt = _get_parser().parse_args(["-config", str(path)])
    ArgumentParser.validate_train_opts(opt)
    ArgumentParser.update_model_opts(opt)
    ArgumentParser.validate_model_opts(opt)
    return opt


def decoding_options(task: dict[str, Any], split: str, beam_size: int) -> Any:
    """The options of `onmt_translate`. Greedy: sampling from the best token, which is faster than a beam of one."""
    parser = ArgumentParser()
    translate_opts(parser)
    steps = ["-min_length", str(task["steps"]), "-max_length", str(task["steps"]), "-max_length_ratio", "0"]
    batches = ["-batch_size", str(task["batch_size"]), "-batch_type", "sents"]
    search = ["-beam_size", str(beam_size), "-random_sampling_topk", "1" if beam_size == 1 else "0"]
    options = parser.parse_args(["-model", "none", "-src", f"{task['data']}/{split}.de", *steps, *batches, *search])
    ArgumentParser.validate_translate_opts(options)
    return options


if __name__ == "__main__":
    main()
