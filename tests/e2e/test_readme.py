"""README and the hand-written pages keep their word: commands and Python run, links lead somewhere,
README is short."""

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
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ("cosine", "variants")
PAGES = {
    page: (ROOT / page).read_text(encoding="utf-8")
    for page in (
        *("README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
        *(
            f"docs/{name}.md"
            for name in ("tutorial", "own-text", "train", "translate", "evaluate", "api")
        ),
        "docs/architecture.md",
    )
}
TEXT = "\n".join(PAGES.values())
ELSEWHERE = {
    *("seq2seq prepare", "seq2seq prepare multi30k --source-dir FOLDER"),  # need a download
    "seq2seq translate -i captions.de -i captions.fr -i captions.cs -o captions.en",  # tests/cli/test_sources.py
    *("seq2seq export RUN -o page.html", "seq2seq export RUN -o captions.onnx"),  # tests/export
    *(
        f"seq2seq translate {texts}picture.npy" for texts in ("", '"Ein Hund rennt." ')
    ),  # tests/cli/test_sources.py
}
RUNS = ("runs/demo-attention", "runs/demo-fixed")
NUM_PAIRS = 30


def blocks(language, text=TEXT):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands():
    """Every `seq2seq ...` of a bash block or of the text but those that other tests run."""
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    lines += re.findall(r"`(seq2seq [a-z][^`]*)`", TEXT)
    return sorted(
        {line.split("  #")[0].strip() for line in lines if line.startswith("seq2seq ")} - ELSEWHERE
    )


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
    (tmp_path / "my.yaml").write_text("extends: quickstart\n", encoding="utf-8")
    yield tmp_path
    for name in EXAMPLES:
        sys.modules.pop(name, None)


def write_text_files(folder):
    sources = [f"{i} {SOURCE[i % len(SOURCE)]}" for i in range(NUM_PAIRS)]
    targets = [f"{i} {TARGET[i % len(TARGET)]}" for i in range(NUM_PAIRS)]
    pairs = [*zip(sources, targets, strict=True)]
    files = {
        "english.txt": sources,
        "french.txt": targets,
        "FILE": sources,
        "in.de": ["Ein Hund.", "", "Zwei Hunde."],
    }
    for split in ("train", "dev", "test"):
        texts = {"de": sources, "en": sources, "fr": targets}
        files |= {f"corpus/{split}.{language}": lines for language, lines in texts.items()}
    for name in ("train.tsv", "new.tsv", "pairs.tsv", "dictionary.tsv"):
        files[name] = [f"{source}\t{target}" for source, target in pairs]
    files["train.csv"] = [f'"{source}","{target}"' for source, target in pairs]
    files["train.jsonl"] = [f'{{"en": "{source}", "fr": "{target}"}}' for source, target in pairs]
    units = (
        f'<tu><tuv xml:lang="en"><seg>{source}</seg></tuv><tuv xml:lang="fr"><seg>{target}</seg></tuv></tu>'
        for source, target in pairs
    )
    files["memory.tmx"] = ["<tmx><body>", *units, "</body></tmx>"]
    files |= {
        "gold.links": ["0-0"] * NUM_PAIRS,
        "corpus/train.vectors": ["picture.npy"] * NUM_PAIRS,
    }
    (folder / "corpus").mkdir()
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    np.save(folder / "picture.npy", np.zeros((3, 4), dtype=np.float32))


def run_all(argument_lists, capsys):
    for arguments in argument_lists:
        assert run_command(arguments) == 0, f"{shlex.join(arguments)}: {capsys.readouterr().err}"


def test_the_front_pages_stay_short():
    assert len(PAGES["README.md"].splitlines()) <= 150
    assert len(PAGES["README.md"].split()) <= 1200
    assert len(PAGES["CONTRIBUTING.md"].splitlines()) <= 150
    assert len(PAGES["CHANGELOG.md"].splitlines()) <= 15


def test_the_two_main_commands_are_on_the_first_screen():
    screen = "\n".join(PAGES["README.md"].splitlines()[:40])
    for what in (
        "docs/plots/readme.png",
        "PIP_EXTRA_INDEX_URL",
        "scripts/demo",
        "scripts/test",
        "pip install",
    ):
        assert what in screen
    assert (
        screen.index("PIP_EXTRA_INDEX_URL")
        < screen.index("scripts/demo")
        < screen.index("pip install")
    )


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "path", [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], ids=lambda path: path.stem
)
def test_links_and_pictures_lead_to_a_file_and_a_heading(path):
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", path.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        other = path.parent / name if name else path
        assert other.exists(), target
        assert not anchor or anchor in anchors(other.read_text(encoding="utf-8")), target


def test_each_promise_of_security_names_tests_that_exist():
    promises = [
        line
        for line in (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines()
        if "`tests/" in line
    ]
    assert len(promises) >= 15
    for line in promises:
        for file, names in re.findall(r"`(tests/\S+\.py)`: ((?:`test_\w+`(?:, )?)+)", line):
            text = (ROOT / file).read_text(encoding="utf-8")
            assert [
                name for name in re.findall(r"`(\w+)`", names) if f"def {name}(" not in text
            ] == [], file


def test_commands_of_the_server_and_the_hub_take_their_options():
    texts = [
        ROOT / name for name in ("docs/serve.md", "examples/seq2seq.service", "examples/Dockerfile")
    ]
    text = "\n".join(path.read_text(encoding="utf-8") for path in texts).replace('", "', " ")
    params = {
        name: get_command(app).commands[name].params
        for name in ("serve", "push", "translate", "evaluate")
    }
    lines = re.findall(r"seq2seq (serve|push|translate|evaluate) (.*)", text)
    assert {name for name, _ in lines} == params.keys()
    for name, arguments in lines:
        known = {option for param in params[name] for option in param.opts}
        assert {*re.findall(r"--[a-z-]+", arguments)} <= known, name
    copied = re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE)
    assert all((ROOT / name).exists() for names in copied for name in names.split())


def test_the_architecture_names_what_exists():
    names = set(re.findall(r"`([\w./-]+)`", PAGES["docs/architecture.md"]))
    files = {
        path.relative_to(ROOT).as_posix()
        for folder in ("seq2seq_attn", "scripts", "tests")
        for path in (ROOT / folder).rglob("*.py")
    }
    paths = {name for name in names if name.endswith(".py")}
    assert {
        path for path in paths if not any(f"/{file}".endswith(f"/{path}") for file in files)
    } == set()
    code = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "seq2seq_attn").rglob("*.py")
    )
    names_in_code = set(re.findall(r"\w+", code))
    identifiers = {part for name in names - paths if "/" not in name for part in name.split(".")}
    assert {part for part in identifiers if re.search(r"_|[a-z][A-Z]", part)} <= names_in_code
    assert len(paths) > 30


def test_every_page_of_docs_is_linked():
    linked = {Path(target).name for target in re.findall(r"\]\(([^)#\s]+\.md)", TEXT)}
    assert {path.name for path in (ROOT / "docs").glob("*.md")} <= linked


def test_every_command_is_shown():
    assert {command.split()[1] for command in commands()} == {
        *("prepare", "train", "evaluate", "translate", "compare", "score")
    }


def test_training_commands_resolve(folder, capsys):
    settings = re.findall(r"`(--(?:train|valid|import)\b .*?)`", TEXT)
    own_text = [
        ["--train", "corpus/train", *shlex.split(options)]
        for options in settings
        if "--valid" in options
    ]
    own_text += [shlex.split(options) for options in settings if "--train" in options]
    assert len(own_text) >= 5
    languages = ["--source-language", "en", "--target-language", "fr"]
    trainings = [
        [word for word in arguments if word != "--resume"] for arguments in commands_named("train")
    ]
    trainings += [["train", *options, *languages] for options in own_text] + [
        ["train", "-c", "my.yaml"]
    ]
    run_all([[*arguments, "--dump-config"] for arguments in trainings], capsys)


def test_settings_and_overlays_are_valid():
    for options in re.findall(r"`(--set [^`]*?)`", TEXT):
        parts = shlex.split(options)
        load_config(
            [],
            [value for flag, value in zip(parts[::2], parts[1::2], strict=True) if flag == "--set"],
        )
    for options in re.findall(r"`(-c [^`]*)`", TEXT):
        load_config(
            [name for name in re.findall(r"-c (\S+)", options) if not name.endswith(".yaml")], []
        )


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
    shown = commands_named("translate")
    run_all(
        [*shown, *(["translate", "Ein Hund.", *shlex.split(options)] for options in more)], capsys
    )
    assert (folder / "out.en").read_text(encoding="utf-8").count("\n") == 3
    assert (folder / "map.png").is_file()


def test_evaluating_and_scoring_commands_run(folder, capsys):
    run_all([*commands_named("evaluate"), *commands_named("score")], capsys)
    for name in ("report.html", "scores.csv", "table.tex", "report.json"):
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
    binary.write_text(f'#!/bin/sh\nexec {sys.executable} -m seq2seq_attn "$@"\n', encoding="utf-8")
    binary.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{binary.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
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
