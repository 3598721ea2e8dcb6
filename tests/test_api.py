"""The Python API: what a notebook completes, shows and runs."""

import html
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import seq2seq_attn
from seq2seq_attn.api import compare as comparison
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.run import Run
from seq2seq_attn.train import loop
from seq2seq_attn.translate.attention_map import AttentionMap
from tests.toy_run import SOURCE, make_toy_run, toy_config


@pytest.fixture(scope="module")
def root(module_path):
    for attention in ("fixed", "additive"):  # the last one is the newest
        make_toy_run(
            module_path / "runs" / attention, toy_config(tokenizer="spacy", attention=attention)
        )
    return module_path


@pytest.fixture
def translation(root):
    return seq2seq_attn.load(root / "runs" / "additive").translate([SOURCE[0]])[0]


def test_names_are_listed_without_importing_torch():
    code = "import sys, seq2seq_attn; dir(seq2seq_attn); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="laod"):
        _ = seq2seq_attn.laod


def test_load_without_a_name_takes_the_newest_finished_run(root, monkeypatch, caplog):
    monkeypatch.chdir(root)
    caplog.set_level("INFO")
    assert seq2seq_attn.load().has_attention
    assert caplog.messages == ["model: runs/additive, de to en"]
    monkeypatch.chdir(root / "runs" / "fixed")
    with pytest.raises(UserError, match="no finished run"):
        seq2seq_attn.load()


def test_a_translator_and_a_translation_are_one_short_line(root):
    translator = seq2seq_attn.load(root / "runs" / "fixed", "cpu")
    [long] = translator.score(["Ein Hund"], ["a dog\n" * 200])
    for value in (translator, long):
        assert repr(value).startswith(f"{type(value).__name__}(")
        assert len(repr(value)) < 130
        assert "\n" not in repr(value)
        assert "0x" not in repr(value)


def parsed(snippet):
    """The texts, the tags and the names of attributes of a snippet of HTML."""
    texts = [html.unescape(text) for text in re.findall(r">([^<]+)<", snippet)]
    attributes = re.findall(r"\s([\w-]+)=", " ".join(re.findall("<[^>]*>", snippet)))
    return texts, re.findall(r"<(\w+)", snippet), {*attributes}


def test_a_notebook_shows_text_and_attention(translation, root):
    texts, tags, _ = parsed(translation._repr_html_())
    labels = [*translation.source_tokens, *translation.attention_map().target_tokens]
    assert texts == [translation.text, *labels]
    assert tags.count("td") == 1 + translation.attention.size
    assert set(tags) == {"p", "table", "tr", "th", "td"}
    without = seq2seq_attn.load(root / "runs" / "fixed").translate([SOURCE[0]])[0]
    assert parsed(without._repr_html_())[1] == ["p"]
    assert without.attention_map() is None
    with pytest.raises(ValueError, match="no attention to draw"):
        without.plot()


def test_what_a_notebook_shows_is_text_whatever_it_holds():
    hostile = [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "&amp;",
        "'",
        "</table>",
    ]
    snippet = AttentionMap(hostile, hostile, np.full((5, 5), 0.2), (1,))._repr_html_()
    texts, tags, attributes = parsed(snippet)
    assert texts == hostile * 2
    assert set(tags) == {"table", "tr", "th", "td"}
    assert attributes == {"style", "title"}
    odd = AttentionMap(["a", "b", "c"], ["d"], np.array([[np.nan, 2.0, -1.0]]))._repr_html_()
    assert 'title="0.00"' in odd
    assert 'title="2.00"' in odd


@pytest.fixture
def trained(monkeypatch):
    """The configurations that were to be trained, instead of training."""
    configs = []

    def train(config, **_):
        configs.append(config)
        return Run("runs/fixed")

    monkeypatch.setattr(loop, "train", train)
    return configs


def test_settings_from_python_are_plain_values_or_those_of_numpy_and_paths(trained):
    settings = {
        "train.optimizer.clip_norm": None,
        "train.optimizer.learning_rate": np.float32(0.5),
        "train.optimizer.betas": np.array([0.5, 0.25]),
        "train.cuda_graphs": np.bool_(False),
        "seed": np.int64(7),
        "data.corpus": "files",
        "data.train": [Path("a.de"), Path("a.en")],
        "data.data_dir": Path("x"),
        "data.limit": {"train": 3},
        "search.scorers": {"fusion": {}},
    }
    seq2seq_attn.train_model("quickstart", settings)
    [config] = trained
    flat = config.flat()
    expected = {
        "train.optimizer.clip_norm": None,
        "train.optimizer.learning_rate": 0.5,
        "train.optimizer.betas": [0.5, 0.25],
        "train.cuda_graphs": False,
        "seed": 7,
        "data.train": ["a.de", "a.en"],
        "data.data_dir": "x",
        "data.limit.train": 3,
        "search.scorers.fusion": {},
    }
    assert flat | expected == flat


def test_a_configuration_may_be_a_path(trained, tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text("name: mine\n")
    for config in (mine, [mine], str(mine)):
        seq2seq_attn.train_model(config)
    assert [config.name for config in trained] == ["mine"] * 3


@pytest.mark.parametrize(
    ("options", "named"), [({"seeds": []}, "seeds"), ({"at_once": -1}, "at_once")]
)
def test_a_comparison_needs_a_seed_and_a_run_at_once(monkeypatch, options, named):
    # with -1 it would wait for ever
    monkeypatch.setattr(comparison, "train_and_compare", lambda *_, **__: None)
    with pytest.raises(UsageError, match=named):
        seq2seq_attn.compare("quickstart", **options)


@pytest.mark.parametrize("value", [object(), {1, 2}, {(1, 2): 3}, [1j]])
def test_a_setting_that_is_no_plain_value_is_a_usage_error(trained, value):
    with pytest.raises(UsageError, match=r"^data\.test="):
        seq2seq_attn.train_model("quickstart", {"data.test": value})
    assert trained == []
