"""Mistakes that need no data are reported before data is prepared, by `train` and `train --dump-config` alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from seq2seq_attn.__main__ import run
from seq2seq_attn.config import load_config, packaged_config_names
from seq2seq_attn.errors import UsageError
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train.check import check_config
from tests.cli.command_line import assert_fails

AXES = ("attention/", "tokenizer/", "output/", "objective/")
OVERLAYS = [name for name in packaged_config_names() if name.startswith(("attention/", "tokenizer/"))]
WITHOUT_POSITIONS = [f"attention/{name}" for name in ("fixed", "initial", "slots")]
WITHOUT_SCORES = [f"attention/{name}" for name in ("fixed", "initial", "monotonic", "uniform")]
FILES = ["data.corpus=files", "data.train=a", "data.valid=b"]


def variants_of(name: str) -> tuple[str, ...]:
    """The variants of a packaged configuration, without its sizes and options."""
    model = load_config([name]).model
    encoder, decoder = model.encoder, model.decoder
    names = (encoder.name, encoder.cell, decoder.name, decoder.cell, model.attention.normalizer, model.output.name)
    return (*names, model.tie_embeddings)


BASES = {variants_of(name): name for name in packaged_config_names() if not name.startswith(AXES)}


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise AssertionError("data is prepared")

    monkeypatch.setattr("seq2seq_attn.train.loop.prepare_corpus", fail)


@pytest.mark.parametrize("overlay", OVERLAYS)
@pytest.mark.parametrize("base", BASES.values())
def test_every_overlay_fits_every_packaged_configuration(base: str, overlay: str, tmp_path: Path) -> None:
    for language in ("de", "en"):
        (tmp_path / f"train.{language}").write_text("Wort\n", encoding="utf-8")
    text = [f"data.train={tmp_path / 'train'}", "data.source_language=de", "data.target_language=en"]
    own = text if load_config([base]).data.corpus == "files" else ["data.extra=[]"]  # scripts write the extra pairs
    config = load_config([base, overlay], own)
    if overlay in WITHOUT_SCORES and config.model.attention.normalizer != "softmax":
        with pytest.raises(UsageError, match=r"model\.attention\.normalizer="):
            check_config(config)
    elif config.model.output.name == "pointer" and overlay in (*WITHOUT_POSITIONS, "attention/uniform"):
        with pytest.raises(UsageError, match=r"attention weights over source positions|nothing to learn"):
            check_config(config)
    elif config.model.output.name == "lexical" and overlay in WITHOUT_POSITIONS:
        with pytest.raises(UsageError, match=r"attention weights over source positions.*-c output/softmax"):
            check_config(config)
        check_config(load_config([base, overlay, "output/softmax"], own))
    else:
        check_config(config)


@pytest.mark.parametrize("value", ["-1", "0", "1.5", "1e9", "true", ".nan", ".inf", "abc", "[8]", "1" + "0" * 22])
@pytest.mark.parametrize("name", ["additive", "scaled_dot", "slots"])
def test_an_option_of_another_type_is_refused(name: str, value: str) -> None:
    options = [f"model.attention.name={name}", f"model.attention.options.attention_size={value}"]
    with pytest.raises(UsageError, match=r"^model\.attention\.options\.attention_size=.*: expected (a whole|a f|at )"):
        check_config(load_config(["quickstart"], options))


WRONG = [
    (["model.attention.name=aditive"], "did you mean 'additive'?"),
    (["model.encoder.name=lstm"], "model.encoder.name='lstm'"),
    (["model.attention.options.heads=3"], "model.attention.options.heads"),
    (["model.attention.name=slots", "model.attention.options={num_slots: 0}"], "num_slots=0: expected at least 1"),
    (["model.attention.name=dot"], "model.hidden_size"),
    (["model.tie_embeddings=all"], "data.vocab.joint=true"),
    (["model.tie_embeddings=target", "model.readout_size=7"], "model.readout_size=96"),
    (["model.encoder.hidden_size=65536", "model.encoder.num_layers=3"], "parameters"),
    (["model.encoder.cell=lstm"], "model.encoder.cell='lstm'"),
    (["model.encoder.name=convolutional", "model.encoder.cell=lstm"], "model.encoder.cell='lstm'"),
    (["model.encoder.name=reversed_gru", "model.encoder.cell=layer_norm_gru"], "model.encoder.name=reversed"),
    (["model.attention.name=monotonic", "model.attention.normalizer=sparsemax"], "model.attention.normalizer"),
    (["model.attention.name=hard", "model.attention.options.estimator=reinforce"], "model.attention.options.estimator"),
    (["train.cuda_graphs=true", "train.precision=fp16"], "train.precision=fp16"),
    (["train.cuda_graphs=true", "train.objectives={coverage: {}}"], "train.objectives"),
    (["train.device=gpu"], "device 'gpu'"),
    (["train.device=cuda:99"], "device 'cuda:99'"),
    (["train.max_epochs=null"], "train.schedule.name='cosine'"),
    (["train.objectives={gided: {}}"], "did you mean 'guided'?"),
    (["train.objectives={guided: {wait: 1}}"], "train.objectives.guided.wait"),
    (["train.objectives.guided.weight=-1"], "train.objectives.guided.weight=-1: expected at least 0"),
    (["train.objectives={coverage: {options: {a: 1}}}"], "train.objectives.coverage.options.a"),
    (["train.objectives.guided=3"], "train.objectives.guided=3"),
    (["train.objectives={guided: {}}"], "data.links"),
    (["train.objectives={entropy: {}}", "model.attention.name=fixed"], "model.attention.name='fixed'"),
    (["search.coverage_penalty=0.2", "model.attention.name=fixed"], "search.coverage_penalty=0.2"),
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


def test_the_cell_that_an_encoders_name_implies_may_be_set_too() -> None:
    check_config(load_config(["quickstart"], ["model.encoder.name=bilstm", "model.encoder.cell=lstm"]))


@pytest.mark.parametrize(("settings", "message"), WRONG, ids=str)
def test_settings_that_do_not_fit_are_refused(settings: list[str], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_config(load_config(["quickstart"], settings))
    assert message in str(refused.value)


@pytest.mark.parametrize("options", [[], ["--dump-config"]])
def test_train_and_dump_config_refuse_the_same(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    arguments = ["train", "-c", "quickstart", "--set=train.max_epochs=null", *options]
    assert_fails(capsys, *arguments, code=2, message="train.schedule.name='cosine'")
    assert not list(Path().iterdir())


def test_training_without_an_end_is_told(caplog: pytest.LogCaptureFixture) -> None:
    check_config(load_config(["tutorial"], ["train.max_epochs=null"]))
    assert "no limit is set: training goes on until Ctrl-C" in caplog.text


def test_fp16_on_a_cpu_is_told(caplog: pytest.LogCaptureFixture) -> None:
    check_config(load_config(["tutorial"], ["train.precision=fp16", "train.device=cpu"]))
    assert "fp16" in caplog.text


@pytest.mark.parametrize(
    "settings",
    [
        ["train.schedule.factor=0.1", "train.teacher_forcing.end=0.5"],
        ["model.encoder.options.residual=true"],
        ["model.attention.name=uniform", "train.objectives={coverage: {}}"],
        ["model.attention.name=hard", "model.attention.options={temperature: 0.5, estimator: reinforce}"],
        ["data.tokenizer.vocab_size=4000", "data.links=ibm1", "data.extra_in_vocab=true"],
        ["train.cuda_graphs=true", "train.device=cpu"],
    ],
)
def test_a_setting_without_effect_is_silent(settings: list[str], caplog: pytest.LogCaptureFixture) -> None:
    trained = ["train.objectives={reinforce: {}}"] if "model.attention.name=hard" in settings else []
    check_config(load_config(["quickstart"], [*settings, *trained]))
    assert not caplog.messages


def test_layers_that_a_variant_does_not_take_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from seq2seq_attn.model.variants import import_variants

    code = "from seq2seq_attn.model.encoder.embeddings import Embeddings as full\n"
    code += "def build(*, embedding, hidden_size, dropout):\n"
    code += "    return full(embedding=embedding, hidden_size=hidden_size, num_layers=1, dropout=dropout)\n"
    (tmp_path / "shallow_encoder.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import_variants("shallow_encoder")
    check_config(load_config(["quickstart"], ["model.encoder.name=shallow_encoder"]))
    with pytest.raises(UsageError, match=r"model\.encoder\.num_layers=3"):
        check_config(load_config(["quickstart"], ["model.encoder.name=shallow_encoder", "model.encoder.num_layers=3"]))


def test_a_resume_of_another_corpus_is_refused_before_that_is_prepared(toy_config, monkeypatch) -> None:
    from seq2seq_attn.data.prepare import prepare_corpus
    from seq2seq_attn.train.loop import train

    with monkeypatch.context() as with_data:
        with_data.setattr("seq2seq_attn.train.loop.prepare_corpus", prepare_corpus)
        train(toy_config("train.max_updates=1"), run_dir=Path("r"))
    for mismatch in (["-c", "multi30k"], ["--seed", "9"]):
        assert run(["train", "--resume", "--run-dir", "r", *mismatch]) == 2
        assert run(["train", "--resume", "--run-dir", "r", *mismatch, "--dump-config"]) == 2


@pytest.fixture
def two_runs(tmp_path: Path) -> None:
    for name, config in (("a", "multi30k"), ("b", "quickstart")):
        RunDir(tmp_path / name).path.mkdir()
        RunDir(tmp_path / name).save_config(load_config([config]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a", "b"], "different test sets"),
        (["a", "--split", "tset"], "--split 'tset'"),
        (["a", "--by-length", "12,9"], "--by-length '12,9'"),
        (["a", "--by-length", "quantiles:999999999"], "at most 100"),
        (["a", "--device", "gpu"], "device 'gpu'"),
        (["a", "--precision", "fp8"], "precision 'fp8'"),
    ],
)
@pytest.mark.usefixtures("two_runs")
def test_evaluate_checks_its_options_before_data_is_prepared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.setattr("seq2seq_attn.evaluation.test_sets.prepare_corpus", lambda *_, **__: pytest.fail("prepared"))
    assert_fails(capsys, "evaluate", *options, code=2, message=message)
