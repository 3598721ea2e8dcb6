"""A pronunciation dictionary: characters in, phonemes with spaces between them out."""

import json
import random
from pathlib import Path

import pytest

from seq2seq_attn.__main__ import run
from seq2seq_attn.run_dir import RunDir

SOUNDS = {"a": "AH", "c": "K", "e": "EH", "o": "OW", "s": "S", "t": "T", "x": "K S"}
SMALL = [
    *("model.embedding_size=16", "model.hidden_size=32", "model.readout_size=16", "model.tie_embeddings=none"),
    *("model.encoder.hidden_size=16", "model.encoder.num_layers=1", "model.attention.options.attention_size=16"),
    *(f"model.dropout.{place}=0" for place in ("embedding", "encoder", "readout")),
    *("train.max_epochs=null", "train.max_updates=120", "train.batch.size=32", "train.schedule.warmup_updates=5"),
    *("train.optimizer.learning_rate=0.02", "train.device=cpu", "train.precision=fp32", "search.beam_size=2"),
]


def write_dictionary(path: Path, seed: int, num_words: int) -> None:
    generator = random.Random(seed)
    words = ["".join(generator.choices([*SOUNDS], k=generator.randint(1, 3))) for _ in range(num_words)]
    lines = (f"{word}\t{' '.join(SOUNDS[letter] for letter in word)}\n" for word in words)
    path.write_text("".join(lines), encoding="utf-8")


def test_train_evaluate_and_translate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_dictionary(tmp_path / "train.tsv", 1, 240)
    write_dictionary(tmp_path / "test.tsv", 2, 30)
    settings = [argument for setting in SMALL for argument in ("--set", setting)]
    text = ["--train", "train.tsv", "--test", "test.tsv"]
    assert run(["train", "-c", "g2p", *text, *settings, "--run-dir", "run"]) == 0
    assert {"K", "OW"} <= {*RunDir("run").vocab("target").tokens}
    assert float(RunDir("run").load_best().values["wer"]) < 25
    capsys.readouterr()
    assert run(["translate", "--run", "run", "cat"]) == 0
    assert capsys.readouterr().out == "K AH T\n"
    options = ["--metric", "wer", "--metric", "exact", "--length-in", "characters", "--json", "scores.json"]
    assert run(["evaluate", "run", *options]) == 0
    assert "WER by length, test" in capsys.readouterr().out
    [scores] = json.loads(Path("scores.json").read_text(encoding="utf-8"))["sets"]
    assert [measure["name"] for measure in scores["measures"]] == ["wer", "exact"]
    assert scores["measures"][0]["runs"][0]["score"] < 25
    assert "unit:word" in scores["measures"][0]["signature"]
