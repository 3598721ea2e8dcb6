"""Mistakes that need no data are reported before data is prepared, by `train` and `train --dump-config` alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from seq2seq_attn.__main__ import run
from seq2seq_attn.config import load_config, packaged_config_names
from seq2seq_attn.errors import UsageError
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train.check import check_config

AXES = ("attention/", "tokenizer/", "output/", "objective/")
BASES = [name for name in packaged_config_names() if not name.startswith(AXES)]
WITHOUT_POSITIONS = [f"attention/{name}" for name in ("fixed", "initial", "none", "slots")]
WITHOUT_SCORES = [f"attention/{name}" for name in ("fixed", "initial", "monotonic", "none", "uniform")]
OVERLAYS = [name for name in packaged_config_names() if name.startswith(("attention/", "tokenizer/"))]
FILES = ["data.corpus=files", "data.train=a", "data.valid=b"]


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise AssertionError("data is prepared")

    monkeypatch.setattr("seq2seq_attn.train.loop.prepare_corpus", fail)


@pytest.mark.parametrize("overlay", OVERLAYS)
@pytest.mark.parametrize("base", BASES)
def test_every_overlay_fits_every_packaged_configuration(base: str, overlay: str, tmp_path: Path) -> None:
    for language in ("de", "en"):
        (tmp_path / f"train.{language}").write_text("Wort\n", encoding="utf-8")
    text = [f"data.train={tmp_path / 'train'}", "data.source_language=de", "data.target_language=en"]
    own = text if load_config([base]).data.corpus == "files" else ["data.extra=[]"]  # scripts write the extra pairs
    config = load_config([base, overlay], own)
    if overlay in WITHOUT_SCORES and config.model.attention.normalizer != "softmax":
        with pytest.raises(UsageError, match="takes no normalizer"):
            check_config(config)
    elif config.model.output.name == "pointer" and overlay in (*WITHOUT_POSITIONS, "attention/uniform"):
        with pytest.raises(UsageError, match=r"attention weights over source positions|nothing to learn"):
            check_config(config)
    elif config.model.output.name == "lexical" and overlay in WITHOUT_POSITIONS:
        with pytest.raises(UsageError, match=r"attention weights over source positions.*, or add -c output/softmax$"):
            check_config(config)
        check_config(load_config([base, overlay, "output/softmax"], own))
    else:
        check_config(config)


def test_every_shipped_option_of_a_variant_is_within_its_limits() -> None:
    options = ["model.attention.name=slots", "model.attention.options={num_slots: 8, attention_size: 16}"]
    check_config(load_config(["quickstart"], options))


@pytest.mark.parametrize("value", ["-1", "0", "1.5", "1e9", "true", ".nan", ".inf", "abc", "[8]", "1" + "0" * 22])
@pytest.mark.parametrize("name", ["additive", "scaled_dot", "slots"])
def test_an_option_of_another_type_is_refused(name: str, value: str) -> None:
    options = [f"model.attention.name={name}", f"model.attention.options.attention_size={value}"]
    with pytest.raises(UsageError, match=r"^model\.attention\.options\.attention_size=.*: expected (a whole|a f|at )"):
        check_config(load_config(["quickstart"], options))


WRONG = [
    (["model.attention.name=aditive"], "no such variant; did you mean 'additive'?"),
    (["model.encoder.name=lstm"], "model.encoder.name='lstm'"),
    (
        ["model.output.name=pointer", "model.attention.name=slots", "model.tie_embeddings=none"],
        "'pointer': reads attention weights over source positions",
    ),
    (
        ["model.output.name=pointer", "model.attention.name=uniform", "model.tie_embeddings=none"],
        "'pointer': has no parameters, and model.attention.name='uniform' always gives the same weights",
    ),
    (
        ["train.objectives={r_drop: {}}", "train.teacher_forcing.schedule=linear"],
        "train.objectives.r_drop compares passes that read the same tokens: set train.teacher_forcing.schedule=con",
    ),
    (
        ["train.objectives={r_drop: {}}", "train.teacher_forcing.start=0.5"],
        "train.objectives.r_drop compares passes that read the same tokens",
    ),
    (
        ["model.output.name=copy", "model.attention.name=fixed"],
        "'copy': reads attention weights over source positions",
    ),
    (["model.output.name=copy", "model.attention.name=initial"], "model.attention.name='initial' has none"),
    (["model.attention.options.heads=3"], "model.attention.options.heads: not an option of 'additive'"),
    (["model.attention.name=slots", "model.attention.options={num_slots: 0}"], "expected at least 1"),
    (["model.attention.name=dot"], "set model.hidden_size=null"),
    (["model.tie_embeddings=all"], "set data.vocab.joint=true"),
    (["model.tie_embeddings=target", "model.readout_size=7"], "model.tie_embeddings needs model.readout_size=96"),
    (["model.encoder.hidden_size=65536", "model.encoder.num_layers=3"], "parameters"),
    (
        ["model.encoder.cell=lstm"],
        "model.encoder.cell='lstm': model.encoder.name='bigru' has the cell 'gru'; set model.encoder.name=bidirec",
    ),
    (
        ["model.encoder.name=convolutional", "model.encoder.cell=lstm"],
        "model.encoder.cell='lstm': model.encoder.name='convolutional' has no cell; set model.encoder.cell=gru",
    ),
    (
        ["model.encoder.name=reversed_gru", "model.encoder.cell=layer_norm_gru"],
        "model.encoder.name='reversed_gru' has the cell 'gru'; set model.encoder.name=reversed",
    ),
    (
        ["model.attention.name=hard", "model.attention.options={estimator: reinforce, temperature: 0.5}"],
        "model.attention.options.temperature=0.5: the estimator 'reinforce' has no temperature; leave it out, or set",
    ),
    (
        ["model.attention.name=coverage", "model.attention.options={kind: linguistic, coverage_size: 3}"],
        "model.attention.options.coverage_size=3: coverage of the kind 'linguistic' is a single number; leave it out",
    ),
    (
        ["model.attention.name=coverage", "model.attention.options={fertility: true}"],
        "model.attention.options.fertility=True: coverage of the kind 'neural' has no fertility; leave it out, or set",
    ),
    (
        ["model.attention.name=coverage", "model.attention.options={max_fertility: 3}"],
        "model.attention.options.max_fertility=3.0: coverage of the kind 'neural' has no fertility; leave it out, or",
    ),
    (
        [
            "model.attention.name=coverage",
            "model.attention.options={kind: linguistic, fertility: false, max_fertility: 3}",
        ],
        "model.attention.options.max_fertility=3.0: there is no fertility; leave it out, or set",
    ),
    (
        ["model.output.name=lexicon", "model.output.options={variant: interpolation, epsilon: 0.1}"],
        "model.output.options.epsilon=0.1: the variant 'interpolation' has no epsilon; leave it out, or set",
    ),
    *(
        (
            [f"model.attention.name={name}", "model.attention.normalizer=sparsemax"],
            f"model.attention.normalizer='sparsemax': model.attention.name='{name}' takes no normalizer; set",
        )
        for name in ("fixed", "initial", "monotonic")
    ),
    (
        ["train.cuda_graphs=true", "train.precision=fp16"],
        "train.cuda_graphs=true: not supported with train.precision=fp16; set",
    ),
    (
        ["train.cuda_graphs=true", "train.objectives={coverage: {}}"],
        "train.cuda_graphs=true: not supported with train.objectives",
    ),
    *(
        (
            ["model.attention.name=uniform", f"train.objectives={{{name}: {{}}}}"],
            f"train.objectives.{name}: no effect with model.attention.name=uniform, whose weights never change; choose",
        )
        for name in ("coverage", "entropy", "fertility")
    ),
    (
        ["train.objectives={r_drop: {}}", "model.dropout={embedding: 0, encoder: 0, readout: 0}"],
        "train.objectives.r_drop compares passes with different dropout, and all dropout rates are 0: set",
    ),
    (
        [
            *("model.attention.name=hard", "model.attention.options.estimator=reinforce"),
            "train.objectives.reinforce.weight=0",
        ],
        "model.attention.options.estimator=reinforce: only the objective reinforce trains these weights; add",
    ),
    (["train.device=gpu"], "device 'gpu': expected auto, cpu, cuda or cuda:N"),
    (["train.device=cuda:99"], "device 'cuda:99': this machine has"),
    *(
        (
            [f"train.schedule.name={name}", f"train.schedule.{setting}"],
            f"train.schedule.{setting}: no effect with train.schedule.name='{name}'; set train.schedule.{setting[:5]}",
        )
        for name, setting in (
            *(("cosine", "factor=0.1"), ("constant", "patience=3"), ("plateau", "final_ratio=0.1")),
            ("cosine", "cooldown=0.1"),
        )
    ),
    (
        ["train.teacher_forcing.end=0.5"],
        "train.teacher_forcing.end=0.5: no effect with train.teacher_forcing.schedule='constant'; set train.",
    ),
    (
        ["train.teacher_forcing.num_updates=5"],
        "train.teacher_forcing.num_updates=5: no effect with train.teacher_forcing.schedule='constant'; set train.",
    ),
    (["train.max_epochs=null"], "train.schedule.name='cosine': needs to know when training ends"),
    (["train.objectives={gided: {}}"], "train.objectives.gided: no such variant; did you mean 'guided'?"),
    (["train.objectives={guided: {wait: 1}}"], "unknown configuration key 'train.objectives.guided.wait'"),
    (["train.objectives.guided.weight=-1"], "train.objectives.guided.weight=-1: expected at least 0"),
    (["train.objectives={coverage: {options: {a: 1}}}"], "train.objectives.coverage.options.a: not an option of"),
    (
        ["train.objectives={fertility: {options: {fertility: -1}}}"],
        "train.objectives.fertility.options.fertility=-1: expected at least 0",
    ),
    (["train.objectives=guided"], "train.objectives='guided': write train.objectives: {NAME: {weight: 1}}"),
    (["train.objectives.guided=3"], "train.objectives.guided=3: write train.objectives: {NAME: {weight: 1}}"),
    (
        ["train.objectives={guided: {}}"],
        "train.objectives.guided needs word alignments of the training pairs: set",
    ),
    (
        ["train.objectives={entropy: {}}", "model.attention.name=fixed"],
        "train.objectives.entropy needs attention over source positions, which model.attention.name=fixed does not",
    ),
    (
        ["search.coverage_penalty=0.2", "model.attention.name=fixed"],
        "search.coverage_penalty=0.2: needs attention over source positions, which model.attention.name=fixed does not",
    ),
    (
        ["model.output.name=marginal", "model.attention.name=hard"],
        "model.output.name='marginal': sums over source positions, and model.attention.name='hard' gives all weight to",
    ),
    (
        ["model.attention.name=structural", "model.attention.options={radius: 9, markov: false, fertility: false}"],
        "model.attention.options.radius=9: no effect without markov and fertility; leave it out",
    ),
    *(
        ([f"model.{part}.options={{residual: true}}"], f"model.{part}.options.residual=true: no effect with a single")
        for part in ("encoder", "decoder")
    ),
    (["data.corpus=multi30k", "data.links=gold"], "data.links=gold: data.corpus=multi30k has no gold links"),
    (["data.source_language=fr"], "captions 'fr' -> 'en'"),
    (["data.corpus=multi30k", "data.source_language=ja"], "language 'ja': Multi30k has"),
    (["data.corpus=files"], "data.train is not set"),
    (["data.train=a"], "data.train='a': not read with data.corpus=captions; set data.corpus=files, or use --train"),
    (["data.valid=[a, b]"], "data.valid=['a', 'b']: not read with data.corpus=captions; set data.corpus=files, or"),
    (["data.corpus=multi30k", "data.test.mine=a"], "data.test={'mine': 'a'}: not read with data.corpus=multi30k"),
    ([*FILES, "data.test={train: a}"], "data.test.train: this name is taken"),
    ([*FILES, "data.test={../x: a}"], "is not a valid name"),
    ([*FILES, "data.valid=[a, b, c]"], "valid=['a', 'b', 'c']: expected a prefix or two files"),
    ([*FILES, "data.source_language=klingon"], "language 'klingon': spaCy cannot tokenize it"),
]


def test_the_cell_that_an_encoders_name_implies_may_be_set_too() -> None:
    check_config(load_config(["quickstart"], ["model.encoder.name=bilstm", "model.encoder.cell=lstm"]))


def test_a_teacher_forcing_that_ends_as_it_starts_is_constant() -> None:
    check_config(load_config(["quickstart"], ["train.teacher_forcing.start=0.5", "train.teacher_forcing.end=0.5"]))


@pytest.mark.parametrize(("settings", "message"), WRONG)
@pytest.mark.parametrize("options", [[], ["--dump-config"]])
def test_train_and_dump_config_refuse_the_same(
    capsys: pytest.CaptureFixture[str], settings: list[str], message: str, options: list[str]
) -> None:
    arguments = [argument for setting in settings for argument in ("--set", setting)]
    code = run(["train", "-c", "quickstart", *arguments, *options])
    out, err = capsys.readouterr()
    assert (code, out) == (2, ""), err
    assert message in err
    assert err.count("\n") == 1
    assert not list(Path().iterdir())


def test_training_without_an_end_is_told(caplog: pytest.LogCaptureFixture) -> None:
    check_config(load_config(["tutorial"], ["train.max_epochs=null"]))
    assert "no limit is set: training goes on until Ctrl-C" in caplog.text


RISK = "train.objectives.minimum_risk"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            [f"{RISK}={{}}"],
            f"{RISK}: learns from translations by the model, so it needs a trained one; set train.start_",
        ),
        ([f"{RISK}={{}}", "train.start_from=runs/a"], None),
        ([f"{RISK}={{start: 0.5}}"], None),
        (
            ["data.links=ibm1"],
            "data.links='ibm1': no objective needs links; add one that does, such as guided, or set ",
        ),
        (["data.links=ibm1", "train.objectives={guided: {weight: 0}}"], None),
    ],
)
def test_an_objective_that_lacks_something_is_told(
    settings: list[str], message: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    check_config(load_config(["quickstart"], settings))
    assert [record.getMessage()[: len(message or "")] for record in caplog.records] == ([message] if message else [])


def test_fp16_on_a_cpu_is_told(caplog: pytest.LogCaptureFixture) -> None:
    check_config(load_config(["tutorial"], ["train.precision=fp16", "train.device=cpu"]))
    assert "fp16" in caplog.text


def test_cuda_graphs_on_a_cpu_are_told(caplog: pytest.LogCaptureFixture) -> None:
    check_config(load_config(["quickstart"], ["train.cuda_graphs=true", "train.device=cpu"]))
    assert caplog.messages == ["train.cuda_graphs=true: no effect on a CPU"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "data.extra_in_vocab=true",
            "data.extra_in_vocab=true: no effect without extra pairs; name them in data.extra",
        ),
    ],
)
def test_a_setting_of_data_that_are_not_read_is_told(
    setting: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    check_config(load_config(["quickstart"], [setting]))
    assert caplog.messages == [message]


@pytest.mark.parametrize("setting", ["vocab_size=4000", "joint=false", "model_type=bpe"])
def test_a_setting_of_subwords_without_subwords_is_told(setting: str, caplog: pytest.LogCaptureFixture) -> None:
    check_config(load_config(["quickstart"], [f"data.tokenizer.{setting}"]))
    assert [message.partition(";")[0] for message in caplog.messages] == [
        f"data.tokenizer.{setting}: no effect with data.tokenizer.name=spacy"
    ]
    caplog.clear()
    check_config(load_config(["quickstart", "tokenizer/sentencepiece"], [f"data.tokenizer.{setting}"]))
    assert not caplog.messages


@pytest.mark.parametrize("attention", ["fixed", "initial"])
def test_dropout_of_an_encoder_whose_values_are_not_read_is_told(
    attention: str, caplog: pytest.LogCaptureFixture
) -> None:
    softmax, fixed = ["multi30k", "output/softmax"], f"model.attention.name={attention}"
    check_config(load_config(softmax, [fixed]))
    remedy = "model.attention.options.dropout=0.4" if attention == "fixed" else "model.dropout.encoder=0"
    assert caplog.messages == [
        f"model.dropout.encoder=0.4: no effect with model.attention.name={attention} and a single layer, because the "
        f"summary has none of the encoder's dropout; set {remedy}"
    ]
    caplog.clear()
    check_config(load_config(softmax, [fixed, remedy]))
    check_config(load_config(softmax, [fixed, "model.encoder.num_layers=2"]))
    check_config(load_config(softmax))
    assert not caplog.messages


def test_layers_that_a_variant_does_not_take_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from seq2seq_attn.model.variants import import_variants

    code = "from seq2seq_attn.model.encoder.embeddings import build as full\n"
    code += "def build(*, embedding, hidden_size, dropout):\n"
    code += "    return full(embedding=embedding, hidden_size=hidden_size, num_layers=1, dropout=dropout)\n"
    (tmp_path / "shallow_encoder.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import_variants("shallow_encoder")
    check_config(load_config(["quickstart"], ["model.encoder.name=shallow_encoder"]))
    with pytest.raises(UsageError, match=r"model\.encoder\.num_layers=3: 'shallow_encoder' has one layer"):
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
def two_runs(tmp_path: Path) -> list[str]:
    for name, config in (("a", "multi30k"), ("b", "quickstart")):
        RunDir(tmp_path / name).path.mkdir()
        RunDir(tmp_path / name).save_config(load_config([config]))
    return ["a", "b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a", "b"], "b and a have different test sets"),
        (["a", "--split", "tset"], "--split 'tset': this corpus has train, valid, test_2016_flickr"),
        (["a", "--by-length", "12,9"], "--by-length '12,9': expected rising first lengths"),
        (["a", "--by-length", "quantiles:999999999"], "at most 100 buckets"),
        (["a", "--device", "gpu"], "device 'gpu': expected auto, cpu, cuda or cuda:N"),
        (["a", "--precision", "fp8"], "precision 'fp8': expected auto, fp32, bf16, int8"),
    ],
)
def test_evaluate_checks_its_options_before_data_is_prepared(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    two_runs: list[str],
    options: list[str],
    message: str,
) -> None:
    monkeypatch.setattr("seq2seq_attn.evaluation.test_sets.prepare_corpus", lambda *_, **__: pytest.fail("prepared"))
    assert run(["evaluate", *options]) == 2
    assert message in capsys.readouterr().err
