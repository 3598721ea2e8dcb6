"""A run without a source: trained on text of one language, validated by perplexity, fused into
translations."""

import itertools
import math
from pathlib import Path

import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.__main__ import run
from seq2seq_attn.api.train import train_model
from seq2seq_attn.api.translate import translate_lines
from seq2seq_attn.config import load_config
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.run import Run
from seq2seq_attn.search.steps import step_model
from seq2seq_attn.text.corpus import find_text
from seq2seq_attn.text.vocab import BOS, EOS
from seq2seq_attn.train.check import check_config
from seq2seq_attn.train.loop import train
from tests.train.runs import events

LANGUAGE_MODEL = {
    "data.vocab_from": "mt",
    "train.max_epochs": 6,
    "train.optimizer.learning_rate": 0.01,
}


def test_a_language_model_is_trained_and_fused(toy_config, toy_corpus, tmp_path, in_tmp_path):
    small = ("model.tie_embeddings=none", "model.readout_size=null", "train.max_updates=2")
    train(toy_config(*small, f"data.data_dir={tmp_path}"), run_dir=Path("mt"))
    settings = {**LANGUAGE_MODEL, "train.max_updates": None, "train.schedule.warmup_updates": 0}
    text = {"train_text": str(toy_corpus / "train.en"), "valid_text": str(toy_corpus / "valid.en")}
    train_model(["mt/config.yaml", "language-model"], settings, run_dir="lm", **text)

    train_model(None, {"train.max_epochs": 7}, run_dir="lm", resume=True)
    validations = events(Run("lm"), "validation")
    perplexities = [validation["perplexity"] for validation in validations]
    assert "bleu" not in validations[-1]
    assert min(perplexities) < 0.7 * perplexities[0]
    model = load("lm", "cpu")
    assert len(model.source_vocab) == 4
    total = 0.0
    num_tokens = 0
    for line in (toy_corpus / "valid.en").read_text("utf-8").splitlines():
        ids = [*model.target_vocab.ids_of(model.target_tokenizer.tokenize(line)), EOS]
        total += log_prob(model, ids)
        num_tokens += len(ids)
    assert math.exp(-total / num_tokens) == pytest.approx(min(perplexities), rel=1e-4)

    translator = load("mt", "cpu")
    [plain] = translator.translate(["Hund Katze"])
    fusion = {"fusion": {"run": "lm", "weight": 2.0}}
    [fused] = translator.translate(["Hund Katze"], scorers=fusion)
    assert plain.tokens != fused.tokens
    ids = translator.target_vocab.ids_of(fused.tokens)
    if fused.is_finished:
        ids.append(EOS)
    assert fused.score == pytest.approx(fused.log_prob + 2.0 * log_prob(model, ids), rel=1e-4)
    assert run("evaluate mt --set scorers.fusion.run=lm".split()) == 0
    with pytest.raises(UsageError, match=r"search\.scorers\.fusion\.run"):
        model.translate(["Hund"])
    with pytest.raises(UsageError, match="cannot translate"):
        translate_lines(["Hund"], run=["lm"])
    with pytest.raises(UserError, match="language model"):
        model.score(["Hund"], ["dog"])
    assert run(["score", str(toy_corpus / "valid.en"), "--run", "lm"]) == 2


@torch.inference_mode()
def log_prob(model, ids):
    """The log-probability of target tokens, step by step."""
    steps = step_model(model.model)
    state = steps.start(collate_source([[]]), 1)
    total = 0.0
    for previous, token in itertools.pairwise([BOS, *ids]):
        tokens, state = steps.step(torch.tensor([previous]), state)
        total += tokens.log_probs()[0, token].item()
    return total


def test_text_without_a_source_is_one_file_or_a_prefix(tmp_path):
    (tmp_path / "a.en").write_text("A dog.\nTwo, three.\n", "utf-8")
    for name in ("a.en", "a"):
        pairs = list(find_text(str(tmp_path / name), "none", "en").pairs())
        assert pairs == [("", "A dog."), ("", "Two, three.")]
    (tmp_path / "b.tsv").write_text("A dog.\tEin Hund.\nTwo.\tZwei.\n", "utf-8")
    for name in ("b.tsv", "c"):
        with pytest.raises(UserError, match=name):
            find_text(str(tmp_path / name), "none", "en")


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("train.validation.metric=bleu", r"train\.validation\.metric"),
        ("data.links=ibm1", r"data\.links"),
        ("data.source_languages=[none, de]", r"data\.source_languages"),
    ],
)
def test_settings_that_need_a_source_are_refused(setting, name):
    settings = ["data.train=a", "data.target_language=en", setting]
    with pytest.raises(UsageError, match=name):
        check_config(load_config(["own-tiny", "language-model"], settings))
