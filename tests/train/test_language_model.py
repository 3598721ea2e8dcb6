"""A run without a source: trained on text of one language, validated by perplexity, fused into
translations."""

import json
import math
from pathlib import Path

import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.__main__ import run
from seq2seq_attn.api.train import train_model
from seq2seq_attn.config import load_config
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.search.steps import step_model
from seq2seq_attn.text.corpus import find_text
from seq2seq_attn.text.vocab import BOS, EOS
from seq2seq_attn.train.check import check_config

LANGUAGE_MODEL = {
    "data.vocab_from": "mt",
    "train.max_epochs": 6,
    "train.optimizer.learning_rate": 0.01,
}


def test_a_language_model_is_trained_and_fused(toy_config, toy_corpus, tmp_path, monkeypatch):
    from seq2seq_attn.train.loop import train

    monkeypatch.chdir(tmp_path)
    small = ("model.tie_embeddings=none", "model.readout_size=null", "train.max_updates=2")
    train(toy_config(*small, f"data.data_dir={tmp_path}"), run_dir=Path("mt"))
    settings = {**LANGUAGE_MODEL, "train.max_updates": None, "train.schedule.warmup_updates": 0}
    text = {"train_text": str(toy_corpus / "train.en"), "valid_text": str(toy_corpus / "valid.en")}
    train_model(["mt/config.yaml", "language-model"], settings, run_dir="lm", **text)  # type: ignore[arg-type]

    train_model(None, {"train.max_epochs": 7}, run_dir="lm", resume=True)
    events = [
        json.loads(line)
        for line in Path("lm/metrics.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    perplexities = [event["perplexity"] for event in events if event["event"] == "validation"]
    assert "bleu" not in events[-2]
    assert min(perplexities) < 0.7 * perplexities[0]
    model, total, number = load("lm", "cpu"), 0.0, 0
    assert len(model.source_vocab) == 4
    for line in (toy_corpus / "valid.en").read_text(encoding="utf-8").splitlines():
        ids = [*model.target_vocab.ids_of(model.target_tokenizer.tokenize(line)), EOS]
        total, number = total + log_prob(model, ids), number + len(ids)
    assert math.exp(-total / number) == pytest.approx(min(perplexities), rel=1e-4)

    translator, options = load("mt", "cpu"), {"scorers": {"fusion": {"run": "lm", "weight": 2.0}}}
    for plain, fused in zip(
        *(translator.translate(["Hund Katze"], **o) for o in ({}, options)), strict=True
    ):
        assert plain.tokens != fused.tokens
        ids = [*translator.target_vocab.ids_of(fused.tokens), *([EOS] if fused.is_finished else [])]
        assert fused.score == pytest.approx(fused.log_prob + 2.0 * log_prob(model, ids), rel=1e-4)
    assert run(["evaluate", "mt", "--set", "scorers.fusion.run=lm"]) == 0
    with pytest.raises(UsageError, match=r"search\.scorers\.fusion\.run"):
        model.translate(["Hund"])
    with pytest.raises(UserError, match="language model"):
        model.score(["Hund"], ["dog"])
    assert run(["score", str(toy_corpus / "valid.en"), "--run", "lm"]) == 2


@torch.inference_mode()
def log_prob(model, ids: list[int]) -> float:
    """The log-probability of target tokens, step by step."""
    steps, total, previous = step_model(model.model), 0.0, BOS
    state = steps.start(collate_source([[]]), 1)
    for token in ids:
        tokens, state = steps.step(torch.tensor([previous]), state)
        total, previous = total + float(tokens.log_probs()[0, token]), token
    return total


def test_text_without_a_source_is_one_file_or_a_prefix(tmp_path):
    (tmp_path / "a.en").write_text("A dog.\nTwo, three.\n", encoding="utf-8")
    for name in ("a.en", "a"):
        assert [*find_text(str(tmp_path / name), "none", "en").pairs()] == [
            ("", "A dog."),
            ("", "Two, three."),
        ]
    (tmp_path / "b.tsv").write_text("A dog.\tEin Hund.\nTwo.\tZwei.\n", encoding="utf-8")
    for name in ("b.tsv", "c"):
        with pytest.raises(UserError, match=name):
            find_text(str(tmp_path / name), "none", "en")


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("train.validation.metric=bleu", r"train\.validation\.metric"),
        ("data.links=ibm1", r"data\.links"),
        ("data.source_languages=[none, de]", r"data\.source_languages"),
        ("data.corpus=multi30k", "language 'none'"),
    ],
)
def test_settings_that_need_a_source_are_refused(setting, name):
    train = "data.train=null" if "multi30k" in setting else "data.train=a"
    with pytest.raises(UsageError, match=name):
        check_config(
            load_config(["own-tiny", "language-model"], [train, "data.target_language=en", setting])
        )
