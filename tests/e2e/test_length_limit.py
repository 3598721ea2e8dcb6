"""Targets up to five times as long as their sources are translated to their end."""

import json
import logging
import random
from pathlib import Path

import pytest

from seq2seq_attn import load
from seq2seq_attn.config import load_config
from seq2seq_attn.train.loop import train
from tests.translation_requests import translate

NUM_STEPS = (1, 3, 5, 5, 5)
"""of a command, by its number"""


def write_commands(directory: Path) -> None:
    """Each command is translated into its steps, one by one."""
    draw = random.Random(1)
    for split, num_pairs in (("train", 3000), ("valid", 50), ("test", 200)):
        pairs = [[draw.randrange(20) for _ in range(draw.randint(1, 10))] for _ in range(num_pairs)]
        sources = [" ".join(f"do{command}" for command in pair) for pair in pairs]
        targets = [" ".join(f"step{c}x{k}" for c in pair for k in range(NUM_STEPS[c % 5])) for pair in pairs]
        for language, lines in (("de", sources), ("en", targets)):
            (directory / f"{split}.{language}").write_text("\n".join(lines) + "\n")


@pytest.mark.slow
def test_no_translation_is_cut_that_the_model_would_have_ended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_commands(tmp_path)
    settings = [
        *("data.corpus=files", f"data.data_dir={tmp_path}", "data.tokenizer.name=spacy"),
        *(f"data.{split}={tmp_path / split}" for split in ("train", "valid")),
        *("model.embedding_size=32", "model.hidden_size=64", "model.encoder.hidden_size=32"),
        *(f"model.dropout.{part}=0" for part in ("embedding", "encoder", "readout")),
        *("train.batch.size=32", "train.optimizer.learning_rate=4e-3", "train.max_epochs=12", "train.num_threads=1"),
    ]
    run = train(load_config((), settings), run_dir=tmp_path / "run")
    ratio = run.config().search.max_length_ratio
    assert ratio is not None
    assert 4.5 < ratio < 6.5
    sources, targets = ((tmp_path / f"test.{language}").read_text().splitlines() for language in ("de", "en"))
    by_default = load(run.path).translate(sources)
    assert sum(found.text == target for found, target in zip(by_default, targets, strict=True)) > 190
    never_cut = load(run.path).translate(sources, max_length_ratio=50)
    would_end = [not found.is_cut for found in never_cut]
    assert [found.is_cut for found in by_default].count(True) == would_end.count(False)
    with caplog.at_level(logging.WARNING):  # where the limit is set by hand, the number of cut lines is logged
        out = tmp_path / "out"
        translate(input=tmp_path / "test.de", output=out, run=run.path, format="json", max_length_ratio=2, device="cpu")
    num_cut = [json.loads(line)["is_cut"] for line in out.read_text().splitlines()].count(True)
    assert num_cut >= sum(len(t.split()) >= 2 * len(s.split()) + 10 for s, t in zip(sources, targets, strict=True)) - 10
    assert f"{num_cut} of 200" in caplog.text
