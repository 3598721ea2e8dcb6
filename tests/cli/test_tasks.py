"""Small tasks through the commands, each learned in a hundred updates: pointing at a position of
the source, pronouncing a word."""

import random
from pathlib import Path

import pytest

from seq2seq_attn import load
from seq2seq_attn.__main__ import run
from seq2seq_attn.files import read_json, write_lines
from seq2seq_attn.run import Run
from tests.cli.command_line import assert_fails, outputs, set_options

pytestmark = pytest.mark.usefixtures("in_tmp_path")

SMALL = [
    "model.embedding_size=16",
    "model.hidden_size=24",
    "model.encoder.hidden_size=16",
    "model.tie_embeddings=none",
    "model.dropout={embedding: 0, encoder: 0, readout: 0}",
    "train.max_epochs=null",
    "train.batch.size=32",
    "train.optimizer.learning_rate=0.02",
    "train.device=cpu",
    "train.precision=fp32",
    "search.beam_size=2",
]


def train(*arguments, settings):
    assert run(["train", *arguments, *set_options(settings), "--run-dir", "run"]) == 0
    return Run("run")


def test_pointing_at_the_letter_x(capsys):
    """A target is the number of a source position, in words that are longer than those of training
    too."""
    generator = random.Random(1)
    for split, num_pairs, longest in (("train", 200, 7), ("valid", 20, 7), ("test", 20, 12)):
        words = []
        positions = []
        for _ in range(num_pairs):
            word = generator.choices("abcd", k=generator.randint(2, longest))
            position = generator.randrange(len(word))
            word[position] = "x"
            words.append("".join(word))
            positions.append(str(position + 1))
        write_lines(Path(f"{split}.word"), words)
        write_lines(Path(f"{split}.position"), positions)
    settings = [
        "data.corpus=files",
        "data.train=train",
        "data.valid=valid",
        "data.test={test: test}",
        "data.data_dir=.",
        "data.source_language=word",
        "data.target_language=position",
        "data.max_length_ratio=30",
        "data.tokenizer={name: characters, target: positions}",
        "model.readout_size=null",
        *SMALL,
        "train.validation.metric=exact",
        "train.max_updates=60",
    ]
    trained = train("-c", "base", "-c", "output/pointer", settings=settings)
    assert float(trained.load_best().values["exact"]) > 90
    assert outputs(capsys, "translate", "--run", "run", "abxcd", "xa", "bbbbx") == ["3", "1", "5"]
    # farther to the right than in any training pair: the number is no token of the vocabulary
    assert "12" not in trained.target_vocab
    assert outputs(capsys, "translate", "--run", "run", "--unk", "forbid", "abcdabcdabcx") == ["12"]
    translator = load("run")
    word = ["abcdabcdabcx"]
    [in_segments] = translator.with_max_source_length(4).translate(word, unk="forbid")
    assert in_segments.text == "12"
    [answer] = translator.translate(word, prefix="11", unk="forbid")
    assert answer.is_finished
    [scored] = translator.score(word, [answer.text])
    assert answer.log_prob == pytest.approx(scored.log_prob, rel=1e-4)
    files = "--source test.word --target test.position"
    scored = outputs(capsys, "score", "--run", "run", *files.split())
    assert len(scored) == 20
    assert sum(float(line.split("\t")[0]) > -0.7 for line in scored) > 14
    options = "--metric exact --metric cer --length-in characters --json scores.json".split()
    assert run(["evaluate", "run", *options]) == 0
    [scores] = read_json(Path("scores.json"))["sets"]
    assert scores["measures"][0]["runs"][0]["score"] >= 80
    assert_fails(capsys, "evaluate", "run", "--concatenate", "2", code=2, message="--concatenate 2")


SOUNDS = {"a": "AH", "c": "K", "e": "EH", "o": "OW", "s": "S", "t": "T", "x": "K S"}


@pytest.mark.slow
def test_pronouncing_words_letter_by_letter(capsys):
    for name, seed, num_words in (("train.tsv", 1, 240), ("test.tsv", 2, 30)):
        generator = random.Random(seed)
        lines = []
        for _ in range(num_words):
            word = generator.choices([*SOUNDS], k=generator.randint(1, 3))
            sounds = " ".join(SOUNDS[letter] for letter in word)
            lines.append(f"{''.join(word)}\t{sounds}")
        write_lines(Path(name), lines)
    settings = [
        *SMALL,
        "model.readout_size=16",
        "model.encoder.num_layers=1",
        "model.attention.options.attention_size=16",
        "model.hidden_size=32",
        "train.schedule.warmup_updates=5",
        "train.max_updates=240",
    ]
    trained = train("-c", "g2p", "--train", "train.tsv", "--test", "test.tsv", settings=settings)
    assert {"K", "OW"} <= {*trained.target_vocab.tokens}
    assert float(trained.load_best().values["wer"]) < 25
    assert outputs(capsys, "translate", "--run", "run", "cat") == ["K AH T"]
    options = "--metric wer --metric exact --length-in characters --json scores.json".split()
    assert run(["evaluate", "run", *options]) == 0
    [scores] = read_json(Path("scores.json"))["sets"]
    assert [measure["name"] for measure in scores["measures"]] == ["wer", "exact"]
    assert scores["measures"][0]["runs"][0]["score"] < 25
    assert "unit:word" in scores["measures"][0]["signature"]
