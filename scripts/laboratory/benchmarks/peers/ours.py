"""Our own turns in scripts/bench_peers: the updates of `seq2seq train`, the translator of `seq2seq translate`."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import torch

from scripts.laboratory.benchmarks.peers.turns import Turns
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.runtime.memory import TRAINING_PRIMITIVES, keep_primitives, reuse_large_blocks
from seq2seq_attn.text.vocab import EOS
from seq2seq_attn.train.batches import EpochBatches
from seq2seq_attn.train.update import Updater
from seq2seq_attn.translate.translator import Translator

CPU = torch.device("cpu")
LEARNING_RATE = 1e-3


def main() -> None:
    """Train or decode, turn by turn."""
    turns = Turns()
    keep_primitives(TRAINING_PRIMITIVES)
    if turns.task["do"] == "train":
        reuse_large_blocks()
    torch.manual_seed(1)
    config = config_of(turns.task)
    prepared = prepare_corpus(config)
    num_source_ids, num_target_ids = len(prepared.source_vocab), len(prepared.target_vocab)
    model = build_model(config.model, num_source_ids=num_source_ids, num_target_ids=num_target_ids)
    turns.ready(model, "seq2seq-attn")
    (train if turns.task["do"] == "train" else decode)(turns, config, prepared, model)


def train(turns: Turns, config: Config, prepared: PreparedCorpus, model: Seq2Seq) -> None:
    """The updates of an epoch, batches built ahead."""
    updater = Updater(model, config.train, device=CPU, precision=turns.task["precision"])
    epoch = EpochBatches(prepared.pairs("train"), config.train.batch, seed=1, epoch=0)
    with closing(epoch.updates(0)) as updates:
        turn = turns.train(updates, lambda batches: batches.num_tokens)
        for number, batches in enumerate(turn):
            updater.train_step(batches, update=number, learning_rate=LEARNING_RATE, teacher_forcing_ratio=1.0)


def decode(turns: Turns, config: Config, prepared: PreparedCorpus, model: Seq2Seq) -> None:
    """Text to text with an untrained model that never ends a sentence: the length limit does."""
    with torch.no_grad():
        model.get_parameter("output.projection.bias")[EOS] = -1e9
    translator = Translator(
        model.eval(),
        source_tokenizer=prepared.source_tokenizer,
        target_tokenizer=prepared.target_tokenizer,
        source_vocab=prepared.source_vocab,
        target_vocab=prepared.target_vocab,
        search=config.search,
        device=CPU,
        max_source_length=config.data.max_length,
        precision=turns.task["precision"],
    )
    text = prepared.text(turns.task["test_set"])[0]
    lines = {split: text[:count] for split, count in turns.task["num_sentences"].items()}

    def translate(split: str, beam_size: int) -> list[Any]:
        found = translator.translate(lines[split], beam_size=beam_size, keep_attention=False)
        return [translation.tokens for translation in found]

    turns.decode(translate)


def config_of(task: dict[str, Any]) -> Config:
    """The Multi30k configuration with the sizes of the comparison."""
    size = task["hidden_size"]
    settings = {
        "model.embedding_size": task["embedding_size"],
        "model.hidden_size": size,
        "model.readout_size": size,
        "model.tie_embeddings": "none",
        "model.encoder.hidden_size": size // 2,
        "model.attention.options.attention_size": size,
        "model.decoder.name": "bahdanau",  # one cell, as the peers' decoders have
        "model.output.name": "softmax",
        **{f"model.dropout.{where}": task["dropout"] for where in ("embedding", "encoder", "readout")},
        "train.batch.size": task["batch_size"],
        "train.label_smoothing": 0.0,
        "train.optimizer.name": "adam",
        "train.optimizer.average_decay": 0.0,
        "search.batch_size": task["batch_size"],
        "search.length_penalty": 0.0,
        "search.max_length_ratio": 1e-9,  # nothing: `steps` is the limit
        "search.max_length_extra": task["steps"],
    }
    return load_config(["multi30k"], [f"{key}={value}" for key, value in settings.items()])


if __name__ == "__main__":
    main()
