"""Settings that do not fit are refused before data is prepared, by `train` and `train
--dump-config` alike."""

import re
from pathlib import Path

import pytest

from seq2seq_attn.__main__ import run
from seq2seq_attn.config import load_config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.train import loop
from seq2seq_attn.train.check import check_config
from seq2seq_attn.train.loop import train
from tests.cli.command_line import assert_fails

pytestmark = pytest.mark.usefixtures("in_tmp_path")

FILES = ["data.corpus=files", "data.train=a", "data.valid=b", "data.extra=[]"]
ATTENTION_SIZE = "model.attention.options.attention_size"
WRONG = [
    (["model.attention.options.heads=3"], "model.attention.options.heads"),
    ([f"{ATTENTION_SIZE}=0"], f"{ATTENTION_SIZE}="),
    ([f"{ATTENTION_SIZE}=true"], f"{ATTENTION_SIZE}="),
    (["model.attention.name=slots", "model.attention.options={num_slots: 0}"], "num_slots=0:"),
    (["model.attention.name=dot"], "model.hidden_size"),
    (["model.encoder.hidden_size=65536", "model.encoder.num_layers=3"], "parameters"),
    (
        ["model.attention.name=hard", "model.attention.options.estimator=reinforce"],
        "model.attention.options.estimator",
    ),
    (["train.cuda_graphs=true", "train.precision=fp16"], "train.precision=fp16"),
    (["train.cuda_graphs=true", "train.objectives={coverage: {}}"], "train.objectives"),
    (["train.device=gpu"], "device 'gpu'"),
    (["train.max_epochs=null"], "train.schedule.name='cosine'"),
    (["train.objectives={gided: {}}"], "did you mean 'guided'?"),
    (["train.objectives={reverse: {}}"], "train.objectives.reverse"),
    (["train.objectives.guided.weight=-1"], "train.objectives.guided.weight=-1:"),
    (["train.objectives={coverage: {options: {a: 1}}}"], "train.objectives.coverage.options.a"),
    (["train.objectives={guided: {}}"], "data.links"),
    (
        ["train.objectives={entropy: {}}", "model.attention.name=fixed"],
        "model.attention.name='fixed'",
    ),
    (["data.corpus=multi30k", "data.links=gold"], "data.links=gold"),
    (["data.source_language=fr"], "captions 'fr' -> 'en'"),
    (["data.corpus=files"], "data.train is not set"),
    (["data.train=a"], "data.train='a'"),
    (["data.corpus=multi30k", "data.test.mine=a"], "data.test={'mine': 'a'}"),
    ([*FILES, "data.test={train: a}"], "data.test.train"),
    ([*FILES, "data.test={../x: a}"], "../x"),
    ([*FILES, "data.source_language=klingon"], "language 'klingon'"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG, ids=str)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        check_config(load_config(["quickstart"], settings))


@pytest.mark.parametrize(
    "settings",
    [
        ["train.teacher_forcing.end=0.5"],
        ["model.encoder.name=convolutional", "model.encoder.cell=lstm"],
        ["model.attention.name=fixed", "search.coverage_penalty=0.2"],
        ["data.tokenizer.vocab_size=4000", "data.links=ibm1", "data.extra_in_vocab=true"],
        ["train.cuda_graphs=true", "train.device=cpu"],
    ],
)
def test_a_setting_without_effect_is_silent(settings, caplog):
    check_config(load_config(["quickstart"], settings))
    assert not caplog.messages


def test_training_without_an_end_is_warned_about(caplog):
    check_config(load_config(["tutorial"], ["train.max_epochs=null"]))
    assert "train.max_epochs" in caplog.text


@pytest.mark.parametrize("options", [[], ["--dump-config"]])
def test_train_and_dump_config_refuse_the_same_before_data_is_prepared(
    capsys, toy_config, monkeypatch, options
):
    train(toy_config("train.max_updates=1"), run_dir=Path("r"))
    monkeypatch.setattr(loop, "prepare_corpus", lambda *_, **__: pytest.fail("data is prepared"))
    arguments = ["train", "-c", "quickstart", "--set=train.max_epochs=null", *options]
    assert_fails(capsys, *arguments, code=2, message="train.schedule.name='cosine'")
    for mismatch in (["-c", "multi30k"], ["--seed", "9"]):
        assert run(["train", "--resume", "--run-dir", "r", *mismatch, *options]) == 2
    assert [path.name for path in Path().iterdir()] == ["r"]
