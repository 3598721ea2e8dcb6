"""Validation: perplexity, the sample translations, and the mode of the model afterwards."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from seq2seq_attn.config import Config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.train.distributed import ALONE
from seq2seq_attn.train.validate import Interrupted, Validator
from tests.train.conftest import ConfigMaker


@pytest.fixture
def config(toy_config: ConfigMaker) -> Config:
    return toy_config("train.validation.num_samples=3", "search.batch_size=5")


@pytest.fixture
def prepared(config: Config) -> PreparedCorpus:
    return prepare_corpus(config)


@pytest.fixture
def model(config: Config, prepared: PreparedCorpus) -> Seq2Seq:
    torch.manual_seed(1)
    num_source_ids, num_target_ids = len(prepared.source_vocab), len(prepared.target_vocab)
    return build_model(config.model, num_source_ids=num_source_ids, num_target_ids=num_target_ids)


def validator(prepared: PreparedCorpus, config: Config, *, is_stopped: bool = False) -> Validator:
    updater = SimpleNamespace(device=torch.device("cpu"), precision="fp32", group=ALONE)
    return Validator(prepared, config, updater, should_stop=lambda: is_stopped)  # type: ignore[arg-type]


def test_perplexity_is_per_target_token_with_the_end_of_sentence(
    prepared: PreparedCorpus, config: Config, model: Seq2Seq
) -> None:
    """A model whose tokens are all equally probable has the perplexity of its vocabulary's size."""
    with torch.no_grad():
        model.output.projection.weight.zero_()  # type: ignore[union-attr, operator]
        model.output.projection.bias.zero_()  # type: ignore[union-attr, operator]
    assert validator(prepared, config).validate(model).scores["perplexity"] == pytest.approx(
        len(prepared.target_vocab), rel=1e-5
    )


@pytest.mark.parametrize("is_training", [True, False])
def test_the_mode_of_the_model_stays(
    prepared: PreparedCorpus, config: Config, model: Seq2Seq, is_training: bool
) -> None:
    model.train(is_training)
    validator(prepared, config).validate(model)
    assert model.training == is_training
    with pytest.raises(Interrupted):
        validator(prepared, config, is_stopped=True).validate(model)
    assert model.training == is_training


def test_samples_are_spread_over_the_validation_set(prepared: PreparedCorpus, config: Config, model: Seq2Seq) -> None:
    samples = validator(prepared, config).validate(model).samples
    sources, references = prepared.text("valid")
    assert len(sources) == 24
    expected = [(sources[i], references[i]) for i in (0, 8, 16)]
    assert [(sample.source, sample.reference) for sample in samples] == expected


@pytest.mark.parametrize(("target", "is_told"), [("Ein Hund rennt hier", False), ("红色的球", True)])
def test_a_bleu_of_few_targets_is_told(
    prepared: PreparedCorpus,
    config: Config,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    target: str,
    is_told: bool,
) -> None:
    sources, _ = prepared.text("valid")
    monkeypatch.setattr(PreparedCorpus, "text", lambda *_: (sources, [target] * len(sources)))
    validator(prepared, config)
    assert ("set train.validation.metric=chrf" in caplog.text) == is_told
