"""The output `pointer` with numbers of source positions as targets, through the commands."""

import json
import random
from pathlib import Path

import pytest

from seq2seq_attn import load
from seq2seq_attn.__main__ import run
from seq2seq_attn.run_dir import RunDir

LETTERS = "abcd"
CONFIG = [
    *("data.corpus=files", "data.train=train", "data.valid=valid", "data.test={test: test}", "data.data_dir=."),
    *("data.source_language=word", "data.target_language=position", "data.max_length_ratio=30"),
    *("data.tokenizer.name=characters", "data.tokenizer.target=positions", "model.tie_embeddings=none"),
    *("model.embedding_size=16", "model.hidden_size=24", "model.readout_size=null", "model.encoder.hidden_size=16"),
    *(f"model.dropout.{place}=0" for place in ("embedding", "encoder", "readout")),
    *("train.max_epochs=null", "train.optimizer.learning_rate=0.02", "train.batch.size=32", "train.device=cpu"),
    *("train.validation.metric=exact", "train.precision=fp32", "search.beam_size=2"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Words with one x among other letters, and the number of its position."""
    monkeypatch.chdir(tmp_path)
    generator = random.Random(1)
    for split, num_pairs, longest in (("train", 200, 7), ("valid", 20, 7), ("test", 20, 12)):
        lengths = [generator.randint(2, longest) for _ in range(num_pairs)]
        places = [generator.randrange(length) for length in lengths]
        words = [[generator.choice(LETTERS) for _ in range(length)] for length in lengths]
        for word, place in zip(words, places, strict=True):
            word[place] = "x"
        (tmp_path / f"{split}.word").write_text("".join(f"{''.join(word)}\n" for word in words), encoding="utf-8")
        (tmp_path / f"{split}.position").write_text("".join(f"{place + 1}\n" for place in places), encoding="utf-8")
    return tmp_path


def test_the_answer_is_a_position(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [argument for setting in CONFIG for argument in ("--set", setting)]
    named = ["-c", "base", "-c", "output/pointer", "--set", "train.max_updates=60", "--run-dir", "run"]
    assert run(["train", *named, *arguments]) == 0
    assert float(RunDir("run").load_best().values["exact"]) > 90
    capsys.readouterr()
    assert run(["translate", "--run", "run", "abxcd", "xa", "bbbbx"]) == 0
    assert capsys.readouterr().out.splitlines() == ["3", "1", "5"]
    # farther to the right than in any training pair: the number is no token of the vocabulary
    assert "12" not in RunDir("run").vocab("target")
    assert run(["translate", "--run", "run", "--unk", "forbid", "abcdabcdabcx"]) == 0
    assert capsys.readouterr().out.splitlines() == ["12"]
    translator = load("run")
    assert translator.with_max_source_length(4).translate(["abcdabcdabcx"], unk="forbid")[0].text == "12"
    [answer] = translator.translate(["abcdabcdabcx"], prefix="11", unk="forbid")
    assert answer.is_finished
    assert answer.log_prob == pytest.approx(translator.score(["abcdabcdabcx"], [answer.text])[0].log_prob, rel=1e-4)
    assert run(["score", "--run", "run", "--source", "test.word", "--target", "test.position"]) == 0
    log_probs = [float(line.split("\t")[0]) for line in capsys.readouterr().out.splitlines()]
    assert len(log_probs) == 20
    assert sum(log_prob > -0.7 for log_prob in log_probs) > 14
    options = ["--metric", "exact", "--metric", "cer", "--length-in", "characters", "--json", "scores.json"]
    assert run(["evaluate", "run", *options]) == 0
    assert "exact match by length, test" in capsys.readouterr().out
    assert run(["evaluate", "run", "--concatenate", "2"]) == 2
    assert "--concatenate 2: the targets of run are positions in the source" in capsys.readouterr().err
    [scores] = json.loads((folder / "scores.json").read_text(encoding="utf-8"))["sets"]
    assert scores["measures"][0]["runs"][0]["score"] >= 80
