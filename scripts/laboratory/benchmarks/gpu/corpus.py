"""The corpus and models that the blocks use: Multi30k, or tiny stand-ins for a rehearsal."""

from __future__ import annotations

import random

from scripts.laboratory.benchmarks.gpu.plan import Settings
from seq2seq_attn.config import ModelConfig, load_config
from seq2seq_attn.files import write_lines

SOURCE = "Hund Katze Mann Frau Kind Ball Haus Baum".split()
TARGET = "dog cat man woman child ball house tree".split()
_TINY = ["model.embedding_size=16", "model.hidden_size=16", "model.encoder.hidden_size=16"]
TINY_MODELS = {
    "tutorial": _TINY,
    "multi30k": [*_TINY, "model.readout_size=16", "model.attention.options.attention_size=16"],
}


def model_config(name: str, settings: Settings) -> ModelConfig:
    """The model of a configuration, for a rehearsal a tiny one of the same function."""
    return load_config([name], TINY_MODELS[name] if settings.is_rehearsal else []).model


def data_settings(settings: Settings) -> list[str]:
    """The data settings for `--set`, beside `-c multi30k`. Writes a rehearsal's files."""
    if not settings.is_rehearsal:
        return []
    folder = settings.work / "toy"
    folder.mkdir(parents=True, exist_ok=True)
    generator = random.Random(1)
    for split, num_pairs in (("train", 64), ("valid", 8)):
        pairs = [[generator.randrange(8) for _ in range(generator.randint(1, 4))] for _ in range(num_pairs)]
        for language, words in (("de", SOURCE), ("en", TARGET)):
            write_lines(folder / f"{split}.{language}", (" ".join(words[i] for i in pair) for pair in pairs))
    return [
        "data.corpus=files",
        f"data.data_dir={folder}",
        *(f"data.{split}={folder / split}" for split in ("train", "valid")),
        "data.tokenizer.name=characters",
    ]
