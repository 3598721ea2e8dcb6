"""Text in any language: trained on, translated and scored, from and into English."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from seq2seq_attn.__main__ import run
from seq2seq_attn.evaluation.scoring import Settings, score_sets
from seq2seq_attn.evaluation.test_sets import EvaluationSet, Languages
from seq2seq_attn.evaluation.translations import SetTranslations
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.run import Run
from seq2seq_attn.text.normalize import normalize

LANGUAGES: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("languages.yaml").read_text(encoding="utf-8")
)
ENGLISH = LANGUAGES.pop("en")["lines"]
IN_DEFAULT_TIER = ("yor", "ar", "zh")
CASES = [
    code if code in IN_DEFAULT_TIER else pytest.param(code, marks=pytest.mark.slow)
    for code in LANGUAGES
]
DIRECTIONS = [(code, is_target) for code in LANGUAGES for is_target in (True, False)]
TRAINED_IN_DEFAULT_TIER = [("km", True)]
WITHOUT_SPACES = frozenset("zh zho_Hant yue ja th lo my km bo".split())
BLEU_TOKENIZERS = dict.fromkeys(("zh", "zho_Hant", "yue"), "zh") | dict.fromkeys(
    "ja th lo my km bo ko".split(), "char"
)
TINY = [
    *(
        "model.embedding_size=7",
        "model.hidden_size=11",
        "model.readout_size=7",
        "model.encoder.hidden_size=6",
    ),
    *("train.num_threads=1", "train.device=cpu", "train.max_epochs=2", "data.max_length=400"),
]
IS_EMPTY = "no translation has any tokens"
"""of a model that has learnt next to nothing"""
EXPECTED = (
    "are in the training text",
    "the length limit",
    "unknown to this run",
    "no installed font",
    IS_EMPTY,
)


@pytest.mark.parametrize(
    ("code", "is_target"),
    [
        pytest.param(
            *one,
            marks=() if one in TRAINED_IN_DEFAULT_TIER else pytest.mark.slow,
            id="-".join(map(str, one)),
        )
        for one in DIRECTIONS
    ],
)
def test_training_translating_and_evaluating(code, is_target, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    source, target = ("en", code) if is_target else (code, "en")
    lines = LANGUAGES[code]["lines"]
    for language, text in ((code, lines), ("en", ENGLISH)):
        Path(f"text.{language}").write_text("\n".join(text) + "\n", encoding="utf-8")
    splits = [f"--{split}=text" for split in ("train", "valid", "test")]
    caplog.set_level(logging.WARNING)
    assert (
        run(
            [
                "train",
                *splits,
                f"--source-language={source}",
                *(f"--set={setting}" for setting in TINY),
            ]
        )
        == 0
    )
    assert run(["translate", "-i", f"text.{source}", "-o", "out"]) == 0
    Path("one").write_text(min(lines if source == code else ENGLISH, key=len), encoding="utf-8")
    assert run(["translate", "-i", "one", "-o", "out-one", "--attention=map.png"]) == 0
    side = "reference" if is_target else "source"
    assert (
        run(["evaluate", "--report=report.html", "--json=scores.json", f"--length-of={side}"]) == 0
    )

    warnings = [
        record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING
    ]
    assert [line for line in warnings if not any(expected in line for expected in EXPECTED)] == []
    assert len(Path("out").read_text(encoding="utf-8").split("\n")) == len(lines) + 1
    assert Path("map.png").exists() != any(IS_EMPTY in line for line in warnings)
    scores = json.loads(Path("scores.json").read_text(encoding="utf-8"))
    unit = "characters" if code in WITHOUT_SPACES else "tokens"
    assert scores["length"]["in"] == unit
    assert f"{side} {unit}" in Path("report.html").read_text(encoding="utf-8")
    signature = next(
        measure["signature"]
        for measure in scores["sets"][0]["measures"]
        if measure["name"] == "bleu"
    )
    assert f"|tok:{BLEU_TOKENIZERS.get(target, '13a')}|" in signature
    assert "No conclusion" not in scores["conclusion"]
    if is_target:
        [own] = Path("runs").iterdir()
        tokenizer = Run(own).target_tokenizer
        assert [tokenizer.detokenize(tokens) for tokens in tokenizer.tokenize_many(lines)] == [
            *map(normalize, lines)
        ]


@pytest.mark.parametrize("code", CASES)
def test_a_perfect_translation_is_perfect_and_another_is_not(code):
    lines = LANGUAGES[code]["lines"]
    other = [line[: len(line) // 2] for line in lines]
    scored = score_sets(
        [EvaluationSet("test", ENGLISH, lines)],
        {name: [SetTranslations(text)] for name, text in (("perfect", lines), ("half", other))},
        languages=Languages("en", code),
        settings=Settings(by_length="9,19", length_of="reference", metrics=tuple(METRICS)),
    )
    [scores] = scored.sets
    for part in (scores.whole, *scores.buckets):
        for measure, (perfect, _) in part.scores.items():
            assert perfect.interval.value == pytest.approx(
                0 if METRICS[measure].is_lower_better else 100
            )
            assert not perfect.is_too_short
    assert all(
        0 < half.interval.value < 100
        for measure, (_, half) in scores.whole.scores.items()
        if measure != "exact"
    )
    for measure in ("bleu_tutorial", "ter", "wer"):
        assert ("|characters" in scores.signatures[measure]) == (code in WITHOUT_SPACES)
