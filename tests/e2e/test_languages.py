"""Text in any language: trained on, translated and scored, from and into English."""

from pathlib import Path

import pytest
import yaml

from seq2seq_attn.__main__ import run
from seq2seq_attn.evaluation.scoring import Settings, score_sets
from seq2seq_attn.evaluation.test_sets import EvaluationSet, Languages
from seq2seq_attn.evaluation.translations import SetTranslations
from seq2seq_attn.files import read_json
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.run import Run
from seq2seq_attn.text.normalize import normalize

LANGUAGES = yaml.safe_load(Path(__file__).with_name("languages.yaml").read_text("utf-8"))
ENGLISH = LANGUAGES.pop("en")["lines"]
IN_DEFAULT_TIER = ("yor", "ar", "zh")
WITHOUT_SPACES = frozenset("zh zho_Hant yue ja th lo my km bo".split())
BLEU_TOKENIZERS = dict.fromkeys(("zh", "zho_Hant", "yue"), "zh") | dict.fromkeys(
    "ja th lo my km bo ko".split(), "char"
)
TINY = [
    "--set=model.embedding_size=7",
    "--set=model.hidden_size=11",
    "--set=model.readout_size=7",
    "--set=model.encoder.hidden_size=6",
    "--set=train.num_threads=1",
    "--set=train.device=cpu",
    "--set=train.max_epochs=2",
    "--set=data.max_length=400",
]
IS_EMPTY = "no translation has any tokens"
"""of a model that has learnt next to nothing"""
EXPECTED = (
    "are in the training text",
    "the length limit",
    "unknown to this run",
    "which the font lacks",
    IS_EMPTY,
)


def slow_but(codes, *more):
    """All languages, with more parameters of the test; slow but for these languages."""
    return [
        pytest.param(code, *more, marks=() if code in codes else pytest.mark.slow)
        for code in LANGUAGES
    ]


@pytest.mark.parametrize(("code", "is_target"), slow_but(["km"], True) + slow_but([], False))
def test_training_translating_and_evaluating(code, is_target, in_tmp_path, caplog):
    source, target = ("en", code) if is_target else (code, "en")
    lines = LANGUAGES[code]["lines"]
    for language, text in ((code, lines), ("en", ENGLISH)):
        Path(f"text.{language}").write_text("\n".join(text) + "\n", "utf-8")
    splits = [f"--{split}=text" for split in ("train", "valid", "test")]
    caplog.set_level("WARNING")
    assert run(["train", *splits, f"--source-language={source}", *TINY]) == 0
    assert run(["translate", "-i", f"text.{source}", "-o", "out"]) == 0
    Path("one").write_text(min(lines if source == code else ENGLISH, key=len), "utf-8")
    assert run("translate -i one -o out-one --attention=map.png".split()) == 0
    side = "reference" if is_target else "source"
    files = ["--report=report.html", "--json=scores.json"]
    assert run(["evaluate", *files, f"--length-of={side}"]) == 0

    for record in caplog.records:
        assert any(expected in record.getMessage() for expected in EXPECTED), record
    assert len(Path("out").read_text("utf-8").split("\n")) == len(lines) + 1
    assert Path("map.png").exists() != (IS_EMPTY in caplog.text)
    scores = read_json(Path("scores.json"))
    unit = "characters" if code in WITHOUT_SPACES else "tokens"
    assert scores["length"]["in"] == unit
    assert f"{side} {unit}" in Path("report.html").read_text("utf-8")
    signatures = {
        measure["name"]: measure["signature"] for measure in scores["sets"][0]["measures"]
    }
    assert f"|tok:{BLEU_TOKENIZERS.get(target, '13a')}|" in signatures["bleu"]
    assert "No conclusion" not in scores["conclusion"]
    if is_target:
        [own] = Path("runs").iterdir()
        tokenizer = Run(own).target_tokenizer
        for line, tokens in zip(lines, tokenizer.tokenize_many(lines), strict=True):
            assert tokenizer.detokenize(tokens) == normalize(line)


@pytest.mark.parametrize("code", slow_but(IN_DEFAULT_TIER))
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
            best = 0 if METRICS[measure].is_lower_better else 100
            assert perfect.interval.value == pytest.approx(best)
            assert not perfect.is_too_short
    for measure, (_, half) in scores.whole.scores.items():
        assert measure == "exact" or 0 < half.interval.value < 100
    for measure in ("bleu_tutorial", "ter", "wer"):
        assert ("|characters" in scores.signatures[measure]) == (code in WITHOUT_SPACES)
