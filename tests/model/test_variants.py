"""Variants by name: packaged ones, and those of modules that the user named. A name alone imports
nothing."""

import re
import sys
from pathlib import Path

import pytest

from seq2seq_attn.config import Config, ObjectiveConfig
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.model import variants
from seq2seq_attn.model.build import model_without_weights
from seq2seq_attn.model.normalizer import softmax
from seq2seq_attn.model.variants import build_variant, find_build, import_variants, located
from seq2seq_attn.train.loss import build_objectives
from tests import ROOT

EXAMPLES = ROOT / "examples"
SIZES = {
    "query_size": 7,
    "memory_size": 11,
    "normalizer": softmax.weights,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder; nothing that a test imports from it is known to the next one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(variants, "_imported", {})
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith((str(tmp_path), str(EXAMPLES))):
            del sys.modules[name]


def attention(name, **options):
    return build_variant("attention", name, options, **SIZES)


def objectives(**by_name):
    """Objectives of a model with additive attention."""
    config = Config(train={"objectives": by_name})
    model = model_without_weights(config.model, num_source_ids=9, num_target_ids=9)
    return build_objectives(config, model)


def write(folder, name, text):
    (folder / f"{name}.py").write_text(text, "utf-8")


DOT = "from seq2seq_attn.model.attention.scaled_dot import ScaledDot as build\n"


def test_a_module_of_the_current_folder_is_a_variant_once_it_was_imported(folder):
    write(folder, "mine", DOT)
    with pytest.raises(UsageError, match=r"model\.attention\.name='mine': .*--import mine"):
        attention("mine")
    assert "mine" not in sys.modules
    path = list(sys.path)
    import_variants("mine")
    assert attention("mine").context_size == 11
    assert sys.path == path


@pytest.mark.parametrize(
    ("axis", "key"),
    [
        ("normalizer", "model.attention.normalizer='nowhere'"),
        ("cell", "model.encoder.cell or model.decoder.cell='nowhere'"),
        ("output", "model.output.name='nowhere'"),
    ],
)
def test_a_message_names_the_key_of_the_configuration(axis, key):
    with pytest.raises(UsageError, match=f"^{re.escape(key)}: "):
        find_build(axis, "nowhere")


def test_no_name_reaches_beyond_what_the_user_imported(folder):
    written = "from seq2seq_attn.files import write_json\n"
    write(
        folder,
        "mine",
        DOT + written + "import os\nfrom subprocess import run\nclass Bag:\n    pass\n",
    )
    import_variants("mine")
    names = ("os", "os:system", "subprocess:run", "mine.os:system", "seq2seq_attn.model.build")
    for name in (*names, "mine:os.system", "mine:os", "mine:run", "mine:Bag"):
        with pytest.raises(UsageError, match=f"'{name}'"):
            attention(name)
    for name, options in (
        ("run", {"args": ["touch", "called"]}),
        ("write_json", {"path": "called", "value": 1}),
    ):
        with pytest.raises(UsageError, match=f"mine:{name}"):
            objectives(**{f"mine:{name}": ObjectiveConfig(options=options)})
        assert not Path("called").exists()


def test_an_objective_with_parameters_is_refused(folder):
    lines = (
        "from torch import nn",
        "from seq2seq_attn.train.objectives.fertility import Fertility",
        "class Learned(nn.Module, Fertility):",
        "    def __init__(self):",
        "        super().__init__()",
        "        self.layer = nn.Linear(2, 3)",
    )
    write(folder, "learned", "\n".join(lines))
    import_variants("learned")
    with pytest.raises(UsageError, match=r"train\.objectives\.learned:Learned"):
        objectives(**{"learned:Learned": ObjectiveConfig()})


def test_what_a_variant_builds_is_checked(folder):
    write(
        folder,
        "wrong",
        "def build(*, query_size, memory_size, normalizer, depth=1):\n    return depth\n",
    )
    import_variants("wrong")
    with pytest.raises(UsageError, match=r"'wrong': .*Attention"):
        attention("wrong")
    with pytest.raises(UsageError, match=r"options\.width: .*depth"):
        attention("wrong", width=2)


def test_a_module_named_like_a_packaged_variant_is_not_mistaken_for_it(folder):
    write(folder, "dot", DOT)
    import_variants("dot")
    with pytest.raises(UsageError, match="'dot:build'"):
        attention("dot")
    assert type(attention("dot:build")).__name__ == "ScaledDot"


@pytest.mark.parametrize(
    ("name", "text", "error", "message"),
    [
        ("absent", None, UsageError, "--import absent: "),
        ("needy.py", "", UsageError, "--import needy.py: "),
        ("./mine", None, UsageError, "--import ./mine: "),
        ("needy", "import absent_too\n", UserError, r"--import needy: .*needy\.py:1: .*absent_too"),
        ("broken", "1 / 0\n", UserError, r"--import broken: .*broken\.py:1: ZeroDivisionError: "),
        (
            "unfinished",
            "def (\n",
            UserError,
            r"--import unfinished: .*unfinished\.py:1: SyntaxError: ",
        ),
    ],
)
def test_a_module_that_cannot_be_imported(folder, name, text, error, message):
    if text is not None:
        write(folder, name, text)
    with pytest.raises(error, match=message):
        import_variants(name)


def test_an_error_in_a_package_is_shown_with_its_line(folder):
    (folder / "mypackage").mkdir()
    write(folder, "mypackage/__init__", "from mypackage.inner import build\n")
    write(folder, "mypackage/inner", "def build():\n    raise OSError('no memory cell')\n")
    import_variants("mypackage")
    with pytest.raises(OSError, match="cell") as error:
        attention("mypackage")
    assert located(error.value) == f"{folder}/mypackage/inner.py:2: OSError: no memory cell"


PAIR = """
from seq2seq_attn.model.variants import Nested
from seq2seq_attn.model.attention.base import Attention
class Pair(Attention):
    def prepare(self, encoded, source): ...
    def step(self, query, memory, state): ...
def build(*, query_size: int, first: Nested):
    pair = Pair(2)
    pair.first = first(query_size=query_size + 1)
    return pair
"""


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (None, "first: not set"),
        ("additive", "first='additive': expected {name, options}"),
        ({"nme": "additive"}, "first={'nme': 'additive'}: expected {name, options}"),
        ({"name": 3}, "first.name=3"),
        ({"name": "aditive"}, "first.name='aditive'"),
        ({"name": "additive", "options": {"size": 3}}, "first.options.size"),
        (
            {"name": "pair", "options": {"first": {"name": "dot", "options": {"a": 1}}}},
            "first.options.first.options.a: ",
        ),
    ],
)
def test_an_error_in_an_inner_option_names_its_full_key(folder, first, message):
    write(folder, "pair", PAIR)
    import_variants("pair")
    with pytest.raises(UsageError, match=re.escape(f"model.attention.options.{message}")):
        attention("pair", **({} if first is None else {"first": first}))
