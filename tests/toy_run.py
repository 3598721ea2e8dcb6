"""A run directory with a small model of random weights, real tokenizers and vocabularies: enough to
translate with."""

import itertools
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import torch

from seq2seq_attn.config import config_from_dict
from seq2seq_attn.data.line_facts import LineFacts
from seq2seq_attn.data.prepare import prepare_corpus
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


def toy_corpus(config, facts=None):
    """Tokenizers and vocabularies of the sentences above; without the files of a prepared
    corpus."""
    source_tokenizer, target_tokenizer = build_tokenizers(SOURCE, TARGET, config.data)
    source_tokens = itertools.chain(*source_tokenizer.tokenize_many(SOURCE))
    target_tokens = itertools.chain(*target_tokenizer.tokenize_many(TARGET))
    return SimpleNamespace(
        source_tokenizer=source_tokenizer,
        target_tokenizer=target_tokenizer,
        source_vocab=build_vocab(Counter(source_tokens)),
        target_vocab=build_vocab(Counter(target_tokens)),
        directory=Path("no corpus"),
        text_hashes=lambda sides: {"content": "toy", "train": "toy"},
        line_facts=lambda sides: facts or LineFacts(),
    )


def make_toy_run(path, config=None, *, seed=4, is_reverse=False, facts=None):
    """Write a finished run; its model ends sentences after some ten tokens. It keeps the test sets
    of a configuration that names a text. `is_reverse`: from English. `facts`: about its lines."""
    config = config or toy_config()
    corpus = toy_corpus(config, facts)
    run = Run.create(path)
    run.save_config(config)
    vocabs = [corpus.source_vocab, corpus.target_vocab]
    sides = ["source", "target"]
    if is_reverse:
        vocabs.reverse()
        sides.reverse()
    run.save_text(corpus, tuple(sides))
    if config.data.train is not None:
        run.save_sets(prepare_corpus(config))
    torch.manual_seed(seed)
    model = build_model(config.model, num_source_ids=len(vocabs[0]), num_target_ids=len(vocabs[1]))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4.0)  # sharper than a fresh model, so that inputs tell
        if config.model.output.name != "pointer":  # which has no parameters
            model.output.projection.bias[EOS] += 1.5
    run.save_best(model.state_dict(), {"update": 0})
    run.mark_finished({})
    return run
