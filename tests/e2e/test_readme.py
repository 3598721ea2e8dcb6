"""README and the hand-written pages keep their word: commands and Python run, links lead somewhere,
README is short."""

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

import seq2seq_attn
from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.api import compare as comparison
from seq2seq_attn.cli import app
from seq2seq_attn.config import load_config
from seq2seq_attn.model import variants
from seq2seq_attn.model.build import build_model
from seq2seq_attn.run import Run
from tests import ROOT
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config

EXAMPLES = ("bag_of_words", "cosine", "variants")
NAMES = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/tutorial.md",
    "docs/own-text.md",
    "docs/train.md",
    "docs/translate.md",
    "docs/evaluate.md",
    "docs/api.md",
    "docs/architecture.md",
]
PAGES = {name: (ROOT / name).read_text("utf-8") for name in NAMES}
TEXT = "\n".join(PAGES.values())
ELSEWHERE = {
    # These need a download.
    "seq2seq prepare",
    "seq2seq prepare multi30k --source-dir FOLDER",
    # tests/cli/test_sources.py
    "seq2seq translate -i captions.de -i captions.fr -i captions.cs -o captions.en",
    "seq2seq translate picture.npy",
    'seq2seq translate "Ein Hund rennt." picture.npy',
    # tests/export
    "seq2seq export runs/demo-attention runs/demo-fixed -o runs/demo.html",
    "seq2seq export RUN -o page.html",
    "seq2seq export RUN -o captions.onnx",
}
RUNS = ("runs/demo-attention", "runs/demo-fixed")
FOLDERS = ("seq2seq_attn", "scripts", "tests")
NUM_PAIRS = 30


def blocks(language, text=TEXT):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands():
    """Every `seq2seq ...` of a bash block or of the text but those that other tests run."""
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    lines += re.findall(r"`(seq2seq [a-z][^`]*)`", TEXT)
    shown = {line.split("  #")[0].strip() for line in lines if line.startswith("seq2seq ")}
    return sorted(shown - ELSEWHERE)


def commands_named(name):
    """The arguments of every command of that name, with `RUN` as the names of two runs."""
    found = []
    for command in commands():
        _, *arguments = shlex.split(command)
        if arguments[0] == name:
            names = iter(RUNS)
            arguments = [next(names) if argument == "RUN" else argument for argument in arguments]
            found.append([argument.replace("RUN/", f"{RUNS[0]}/") for argument in arguments])
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with every file and run that the commands name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(variants, "_imported", {})
    write_text_files(tmp_path)
    config = toy_config(
        corpus="files", train="corpus/train", valid="corpus/dev", test={"test": "corpus/test"}
    )
    for seed, name in enumerate(RUNS, start=97):
        make_toy_run(tmp_path / name, config, seed=seed)
    for name in EXAMPLES:
        shutil.copy(ROOT / "examples" / f"{name}.py", tmp_path)
    (tmp_path / "my.yaml").write_text("extends: quickstart\n", "utf-8")
    yield tmp_path
    for name in EXAMPLES:
        sys.modules.pop(name, None)


def write_text_files(folder):
    sources = [f"{i} {SOURCE[i % len(SOURCE)]}" for i in range(NUM_PAIRS)]
    targets = [f"{i} {TARGET[i % len(TARGET)]}" for i in range(NUM_PAIRS)]
    files = {
        "english.txt": sources,
        "french.txt": targets,
        "FILE": sources,
        "in.de": ["Ein Hund.", "", "Zwei Hunde."],
        "moses.txt": sources,
        "film.srt": ["1", "00:00:01,000 --> 00:00:02,000", "Ein Hund."],
        "app.pot": ['msgid "Ein Hund."', 'msgstr ""'],
        "shop.csv": ["item,description", "1,Ein Hund."],
        "gold.links": ["0-0"] * NUM_PAIRS,
        "corpus/train.vectors": ["picture.npy"] * NUM_PAIRS,
    }
    for split in ("train", "dev", "test"):
        files[f"corpus/{split}.de"] = sources
        files[f"corpus/{split}.en"] = sources
        files[f"corpus/{split}.fr"] = targets
    for name in ("train.tsv", "new.tsv", "pairs.tsv", "dictionary.tsv"):
        files[name] = fill_rows("{}\t{}", sources, targets)
    files["train.csv"] = fill_rows('"{}","{}"', sources, targets)
    files["train.jsonl"] = fill_rows('{{"en": "{}", "fr": "{}"}}', sources, targets)
    unit = '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="fr"><seg>{}</seg></tuv></tu>'
    units = fill_rows(unit, sources, targets)
    files["memory.tmx"] = ["<tmx><body>", *units, "</body></tmx>"]
    (folder / "corpus").mkdir()
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n", "utf-8")
    np.save(folder / "picture.npy", np.zeros((3, 4), dtype=np.float32))


def fill_rows(row, sources, targets):
    return [row.format(source, target) for source, target in zip(sources, targets, strict=True)]


def run_all(argument_lists, capsys):
    for arguments in argument_lists:
        assert run_command(arguments) == 0, f"{shlex.join(arguments)}: {capsys.readouterr().err}"


def test_the_front_pages_stay_short():
    assert len(PAGES["README.md"].splitlines()) <= 150
    assert len(PAGES["README.md"].split()) <= 1200
    assert len(PAGES["CONTRIBUTING.md"].splitlines()) <= 150
    assert len(PAGES["CHANGELOG.md"].splitlines()) <= 40


MANUAL = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
manual_pages = pytest.mark.parametrize("path", MANUAL, ids=lambda path: str(path.relative_to(ROOT)))


@manual_pages
def test_a_page_trains_the_runs_that_its_commands_use(path):
    if path.name == "commands.md":
        return  # what --help prints
    text = path.read_text("utf-8")
    shown = "\n".join(blocks("(?:bash|text|python)", text) + re.findall(r"`(seq2seq [^`]*)`", text))
    used = set(re.findall(r"\bruns/[a-z][a-z0-9-]*(?![\w.<-])", shown))
    assert used <= set(re.findall(r"(?:--run-dir |run_dir=\")(runs/[a-z0-9-]+)", text))


@manual_pages
def test_a_page_says_that_scripts_are_in_the_repository(path):
    text = path.read_text("utf-8")
    assert "`scripts/" not in text or "repository" in text


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "path", [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], ids=lambda path: path.stem
)
def test_links_and_pictures_lead_to_a_file_and_a_heading(path):
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", path.read_text("utf-8")):
        name, _, anchor = target.partition("#")
        other = path.parent / name if name else path
        assert other.exists(), target
        assert not anchor or anchor in anchors(other.read_text("utf-8")), target


def test_each_promise_of_security_names_tests_that_exist():
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    promises = re.findall(r"`(tests/\S+\.py)`: ((?:`test_\w+`(?:, )?)+)", text)
    assert len(promises) >= 15
    for file, names in promises:
        tests = (ROOT / file).read_text("utf-8")
        for name in re.findall(r"`(\w+)`", names):
            assert f"def {name}(" in tests, file


def test_commands_of_the_server_and_the_hub_take_their_options():
    text = ""
    for name in ("docs/serve.md", "examples/seq2seq.service", "examples/Dockerfile"):
        text += (ROOT / name).read_text("utf-8").replace('", "', " ")
    shown = re.findall(r"seq2seq (serve|push|translate|evaluate) (.*)", text)
    assert {name for name, _ in shown} == {"serve", "push", "translate", "evaluate"}
    for name, arguments in shown:
        known = set()
        for param in get_command(app).commands[name].params:
            known.update(param.opts)
        assert {*re.findall(r"--[a-z-]+", arguments)} <= known, name
    for names in re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE):
        for name in names.split():
            assert (ROOT / name).exists()


def test_the_architecture_names_what_exists():
    paths = set()
    identifiers = set()
    for name in re.findall(r"`([\w./-]+)`", PAGES["docs/architecture.md"]):
        if name.endswith(".py"):
            paths.add(name)
        elif "/" not in name:
            identifiers.update(re.findall(r"\w+_\w+|\w*[a-z][A-Z]\w*", name))
    assert len(paths) > 30
    for path in paths:
        assert any(any(ROOT.glob(f"{folder}/**/{path}")) for folder in FOLDERS) or (
            (ROOT / path).exists()
        ), path
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "seq2seq_attn").rglob("*.py"))
    assert identifiers <= set(re.findall(r"\w+", code))


def test_every_page_of_docs_is_linked():
    linked = {Path(target).name for target in re.findall(r"\]\(([^)#\s]+\.md)", TEXT)}
    assert {path.name for path in (ROOT / "docs").glob("*.md")} <= linked


def test_every_command_is_shown():
    assert {command.split()[1] for command in commands()} == {
        "prepare",
        "train",
        "evaluate",
        "translate",
        "compare",
        "score",
    }


def test_training_commands_resolve(folder, capsys):
    settings = re.findall(r"`(--(?:train|valid|import)\b .*?)`", TEXT)
    trainings = [["train", "-c", "my.yaml"], *commands_named("train")]
    num_before = len(trainings)
    languages = "--source-language en --target-language fr".split()
    for options in settings:
        if "--valid" in options:
            options = f"--train corpus/train {options}"
        if "--train" in options:
            trainings.append(["train", *shlex.split(options), *languages])
    assert len(trainings) >= num_before + 5
    for arguments in trainings:
        resolved = [word for word in arguments if word != "--resume"]
        if "--run-dir" in resolved:
            resolved.append("--overwrite")
        run_all([[*resolved, "--dump-config"]], capsys)


def test_settings_and_overlays_are_valid():
    for options in re.findall(r"`(--set [^`]*?)`", TEXT):
        words = shlex.split(options)
        load_config([], [value for flag, value in itertools.pairwise(words) if flag == "--set"])
    for options in re.findall(r"`(-c [^`]*)`", TEXT):
        names = re.findall(r"-c (\S+)", options)
        load_config([name for name in names if not name.endswith(".yaml")])


def test_the_guide_to_training_shows_an_example_as_it_is():
    assert (ROOT / "examples" / "cosine.py").read_text("utf-8") in PAGES["docs/train.md"]


def test_each_example_builds_on_the_quickstart(folder):
    seq2seq_attn.import_variants("variants")
    shown = re.findall(r"^### .*`(--set model[^`]*)`", PAGES["CONTRIBUTING.md"], re.MULTILINE)
    assert len(shown) == 6
    for options in shown:
        model = load_config(["quickstart"], shlex.split(options)[1::2]).model
        build_model(model, num_source_ids=9, num_target_ids=9)


def test_preparing_commands_run(folder, capsys):
    run_all(commands_named("prepare"), capsys)


def test_translating_commands_run(folder, capsys):
    more = re.findall(
        r"`(--(?:n-best|unk|precision|prefix|method|no-repeat-ngram|coverage-penalty) [^`]*)`", TEXT
    )
    assert len(more) >= 8
    run_all(commands_named("translate"), capsys)
    run_all([["translate", "Ein Hund.", *shlex.split(options)] for options in more], capsys)
    assert (folder / "out.en").read_text("utf-8").count("\n") == 3
    assert (folder / "map.png").is_file()


def test_evaluating_and_scoring_commands_run(folder, capsys):
    run_all([*commands_named("evaluate"), *commands_named("score")], capsys)
    for name in ("report.html", "scores.csv", "report.json"):
        assert (folder / name).is_file()


def test_comparing_commands_plan_their_runs(folder, monkeypatch, capsys):
    planned = []

    def train_none(runs, **_):
        planned.extend(run.run.path.name for run in runs)
        return list(runs)

    monkeypatch.setattr(comparison, "prepare_corpora", lambda *_, **__: None)
    monkeypatch.setattr(comparison, "train_runs", train_none)
    for arguments in commands_named("compare"):
        assert run_command(arguments) == 1
        assert re.search(r"(\d) of \1 runs failed", capsys.readouterr().err)
    assert {"additive-s1", "bilinear-s3"} <= set(planned)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_coprocess_answers(folder):
    [script] = [block for block in blocks("bash") if block.startswith("coproc")]
    binary = folder / "bin" / "seq2seq"
    binary.parent.mkdir()
    binary.write_text(f'#!/bin/sh\nexec {sys.executable} -m seq2seq_attn "$@"\n', "utf-8")
    binary.chmod(0o755)
    path = f"{binary.parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip(), done.stderr


@pytest.mark.parametrize("block", blocks("python"))
def test_python_examples_run(folder, monkeypatch, capsys, block):
    def train_nothing(config="own", settings=(), **_):
        load_config([config], [f"{key}={value}" for key, value in dict(settings).items()])
        return Run(RUNS[0])

    monkeypatch.setattr(seq2seq_attn, "train_model", train_nothing, raising=False)
    monkeypatch.setattr(
        seq2seq_attn, "compare", lambda config, vary, seeds: train_nothing(config), raising=False
    )
    exec(compile(block, "example", "exec"), {"seq2seq_attn": seq2seq_attn})
    assert capsys.readouterr().out.strip()
    assert "savefig" not in block or (folder / "map.pdf").is_file()
