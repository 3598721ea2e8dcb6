"""A run directory with a small model of random weights, real tokenizers and vocabularies: enough to
translate with."""

from collections import Counter
from types import SimpleNamespace
from typing import cast

import torch

from seq2seq_attn.config import config_from_dict
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.model.build import build_model
from seq2seq_attn.run import Run
from seq2seq_attn.text.tokenizers.factory import build_tokenizers
from seq2seq_attn.text.vocab import EOS, build_vocab

SOURCE = [
    "Ein Hund rennt über die grüne Wiese.",
    "Zwei Männer spielen Fußball im Park.",
    "Eine Frau liest ein Buch; das Kind schläft.",
    "Der große Junge springt ins kalte Wasser!",
    "Drei Kinder sitzen auf einer Bank und essen Eis.",
]
TARGET = [
    "A dog runs across the green meadow.",
    "Two men play football in the park.",
    "A woman reads a book; the child sleeps.",
    "The big boy jumps into the cold water!",
    "Three children sit on a bench and eat ice cream.",
]


def toy_config(*, tokenizer="sentencepiece", attention="additive", **data):
    return config_from_dict(
        {
            "name": "toy",
            "data": {"tokenizer": {"name": tokenizer, "vocab_size": 120}, "max_length": 30, **data},
            "model": {
                "embedding_size": 11,
                "hidden_size": 13,
                "encoder": {"hidden_size": 7},
                "attention": {"name": attention},
            },
            "search": {
                "beam_size": 3,
                "max_length_ratio": 1.5,
                "max_length_extra": 4,
                "batch_size": 16,
            },
        }
    )


def toy_corpus(config):
    """Tokenizers and vocabularies of the sentences above; without the files of a prepared
    corpus."""
    source_tokenizer, target_tokenizer = build_tokenizers(SOURCE, TARGET, config.data)
    vocabs = [
        build_vocab(Counter(token for tokens in tok.tokenize_many(lines) for token in tokens))
        for tok, lines in ((source_tokenizer, SOURCE), (target_tokenizer, TARGET))
    ]
    corpus = SimpleNamespace(
        source_tokenizer=source_tokenizer,
        target_tokenizer=target_tokenizer,
        source_vocab=vocabs[0],
        target_vocab=vocabs[1],
        text_hashes=lambda sides: {"content": "toy", "train": "toy"},
    )
    return cast(PreparedCorpus, corpus)


def make_toy_run(path, config=None, *, seed=4, is_reverse=False):
    """Write a finished run; its model ends sentences after some ten tokens. It keeps the test sets
    of a configuration that names a text. `is_reverse`: from English."""
    config = config or toy_config()
    corpus = toy_corpus(config)
    run = Run.create(path)
    run.save_config(config)
    run.save_text(corpus, ("target", "source") if is_reverse else ("source", "target"))
    if config.data.train is not None:
        run.save_sets(prepare_corpus(config))
    torch.manual_seed(seed)
    sizes = [len(corpus.source_vocab), len(corpus.target_vocab)][:: -1 if is_reverse else 1]
    model = build_model(config.model, num_source_ids=sizes[0], num_target_ids=sizes[1])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4.0)  # sharper than a fresh model, so that inputs tell
        if config.model.output.name != "pointer":  # which has no parameters
            model.output.projection.bias[EOS] += 1.5
    run.save_best(model.state_dict(), {"update": 0})
    run.mark_finished()
    return run
