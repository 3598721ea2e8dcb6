"""Mistakes that need no data are reported before data is prepared, by `train` and `train
--dump-config` alike: settings that do not fit, and variants from `--import` that break the contract
of their axis."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from seq2seq_attn.__main__ import run
from seq2seq_attn.config import load_config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.variants import import_variants
from seq2seq_attn.train import loop
from seq2seq_attn.train.check import check_config
from seq2seq_attn.train.loop import train
from tests.cli.command_line import assert_fails

pytestmark = pytest.mark.usefixtures("in_tmp_path")

FILES = [
    "data.corpus=files",
    "data.train=a",
    "data.valid=b",
    "data.target_language=en",
    "data.extra=[]",
]


ATTENTION_SIZE = "model.attention.options.attention_size"
WRONG = [
    (["model.attention.name=aditive"], "did you mean 'additive'?"),
    (["model.encoder.name=lstm"], "model.encoder.name='lstm'"),
    (["model.attention.options.heads=3"], "model.attention.options.heads"),
    *(
        ([f"{ATTENTION_SIZE}={value}"], f"{ATTENTION_SIZE}=")
        for value in ("0", "1.5", "true", ".nan", "[8]")
    ),
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
    (["train.device=cuda:99"], "device 'cuda:99'"),
    (["train.max_epochs=null"], "train.schedule.name='cosine'"),
    (["train.objectives={gided: {}}"], "did you mean 'guided'?"),
    (["train.objectives={guided: {wait: 1}}"], "train.objectives.guided.wait"),
    (["train.objectives.guided.weight=-1"], "train.objectives.guided.weight=-1:"),
    (["train.objectives={coverage: {options: {a: 1}}}"], "train.objectives.coverage.options.a"),
    (["train.objectives.guided=3"], "train.objectives.guided=3"),
    (["train.objectives={guided: {}}"], "data.links"),
    (
        ["train.objectives={entropy: {}}", "model.attention.name=fixed"],
        "model.attention.name='fixed'",
    ),
    (["data.corpus=multi30k", "data.links=gold"], "data.links=gold"),
    (["data.source_language=fr"], "captions 'fr' -> 'en'"),
    (["data.corpus=multi30k", "data.source_language=ja"], "language 'ja'"),
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
        ["train.schedule.factor=0.1", "train.teacher_forcing.end=0.5"],
        ["model.encoder.options.residual=true"],
        ["model.encoder.name=convolutional", "model.encoder.cell=lstm"],
        ["model.attention.name=monotonic", "model.attention.normalizer=sparsemax"],
        ["model.attention.name=fixed", "search.coverage_penalty=0.2"],
        ["model.attention.name=uniform", "train.objectives={coverage: {}}"],
        ["model.attention.name=hard", "model.attention.options={temperature: 0.5}"],
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


HEAD = """
import torch
from seq2seq_attn.model.attention.additive import Additive
from seq2seq_attn.model.normalizer import softmax
from seq2seq_attn.model.output.softmax import Softmax
from seq2seq_attn.train.objectives.base import Objective

class Mine(Additive):
    def __init__(self, *, query_size: int, memory_size: int) -> None:
        super().__init__(query_size=query_size, memory_size=memory_size, normalizer=softmax.weights)
"""
ATTENTION, OUTPUT = "model.attention.name=wrong:Mine", "model.output.name=wrong:Mine"
OBJECTIVE = "train.objectives={'wrong:Mine': {}}"
STEP = (
    "def step(self, query, memory, state):\n"
    "    attended = super().step(query, memory, state)\n    weights = attended.weights_BS\n"
)
PREPARE = (
    "def prepare(self, encoded, source):\n    memory, state = super().prepare(encoded, source)\n"
)
BROKEN = {
    "weights sum to 1; seen: 2, ": (
        ATTENTION,
        f"{STEP}    return attended._replace(weights_BS=2 * weights)",
    ),
    "never negative; seen: -": (
        ATTENTION,
        f"{STEP}    return attended._replace(weights_BS=2 * weights - weights.roll(1, 1))",
    ),
    "0 on padding; seen: 0[.]": (
        ATTENTION,
        "def step(self, query, memory, state):\n"
        "    return super().step(query, memory._replace(mask_BS=torch.ones_like(memory.mask_BS)), "
        "state)",
    ),
    "state is a named tuple of tensors; seen: dict": (
        ATTENTION,
        f"{PREPARE}    return memory, {{'total': None}}",
    ),
    "memory.keys_BSA is batch-first": (
        ATTENTION,
        f"{PREPARE}    return memory._replace(keys_BSA=memory.keys_BSA.transpose(0, 1)), state",
    ),
    "padding does not change results; seen: context_BM": (
        ATTENTION,
        f"{STEP}    return attended._replace(context_BM=attended.context_BM + weights.shape[1])",
    ),
    r"a search step works; seen: .*wrong.py:\d+: AssertionError: rows of a beam": (
        ATTENTION,
        f"{STEP}    assert self.training or len(query) != 6, 'rows of a beam'\n    return attended",
    ),
    "probabilities sum to 1; seen: 2, ": (
        OUTPUT,
        "def log_probs(self, step, memory):\n    return super().log_probs(step, memory) + 0.6931",
    ),
    "the loss is that of the probabilities": (
        OUTPUT,
        "def score(self, step, memory, targets_N):\n"
        "    log_probs, means = super().score(step, memory, targets_N)\n    return 2 * log_probs, "
        "means\ndef target_log_probs(self, outputs, batch):\n"
        "    return super().target_log_probs(outputs, batch) / 4",
    ),
    "padding does not change results; seen: the sum over pairs": (
        OBJECTIVE,
        "def term(self, outputs, batch):\n    return outputs.weights_TBS.square().mean()",
    ),
    "a term is finite; seen: -?(inf|nan)": (
        OBJECTIVE,
        "def term(self, outputs, batch):\n    return outputs.weights_TBS.log().sum()",
    ),
}
CLASSES = {
    "model.output.name": "class Mine(Softmax):\n    def __init__(self, *, feature_size: int, num_ids: int):\n"
    "        super().__init__(feature_size, num_ids)",
    "train.objectives": "class Mine(Objective):",
}


@pytest.fixture
def folder(tmp_path) -> Iterator[Path]:
    """The current folder; a module `wrong` that a test imports from it is forgotten."""
    yield tmp_path
    sys.modules.pop("wrong", None)


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_names_the_variant_the_rule_and_what_was_seen(folder, rule):
    setting, methods = BROKEN[rule]
    key = setting.partition("=")[0]
    own = f"\n{CLASSES[key]}\n" if key in CLASSES else ""
    body = "\n".join(f"    {line}" for line in methods.splitlines())
    (folder / "wrong.py").write_text(f"{HEAD}{own}{body}\n", encoding="utf-8")
    import_variants("wrong")
    with pytest.raises(UsageError, match=rf"^{re.escape(key)}.*wrong:Mine.*{rule}"):
        check_config(load_config(["quickstart"], [setting, "model.tie_embeddings=none"]))


@pytest.mark.parametrize(
    "settings",
    [
        [],
        [*FILES, "data.source_languages=[de, fr]"],
        [*FILES, "data.source_language=vectors"],
        ["model.output.name=copy", "model.tie_embeddings=none"],
    ],
)
def test_a_right_one_passes_and_draws_nothing(folder, settings):
    (folder / "wrong.py").write_text(HEAD, encoding="utf-8")
    import_variants("wrong")
    before = torch.get_rng_state()
    check_config(load_config(["quickstart"], [ATTENTION, *settings]))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_normalizer_with_weight_on_padding(folder):
    code = "def weights(scores, mask):\n    return scores.softmax(dim=-1)\n"
    (folder / "wrong.py").write_text(code, encoding="utf-8")
    import_variants("wrong")
    with pytest.raises(UsageError, match=r"model\.attention\.normalizer='wrong'.*0 on padding"):
        check_config(load_config(["quickstart"], ["model.attention.normalizer=wrong"]))
