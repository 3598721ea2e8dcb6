"""The project's own files: the hosted gate runs what exists, the version stands in one place."""

import os
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import seq2seq_attn

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_scripts_that_a_workflow_runs_exist(workflow):
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"]
    commands = [step.get("run", "") for job in jobs.values() for step in job.get("steps", [])]
    scripts = re.findall(r"scripts/\w+", "\n".join(commands))
    assert commands
    for script in scripts:
        assert os.access(ROOT / script, os.X_OK), script


def test_the_hosted_gate_tests_every_python_that_the_package_names():
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text("utf-8"))["jobs"]
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    named = re.findall(r"Python :: (3\.\d+)", project)
    assert jobs["tests"]["strategy"]["matrix"]["python"] == named


def test_citation_and_changelog_state_version_and_date():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == seq2seq_attn.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## {seq2seq_attn.__version__} ({citation['date-released']})\n" in changelog


def test_the_package_states_its_version_in_one_place():
    literal = f'"{seq2seq_attn.__version__}"'
    package = ROOT / "seq2seq_attn"
    stating = [path for path in package.rglob("*.py") if literal in path.read_text("utf-8")]
    assert stating == [package / "__init__.py"]


def test_the_oldest_versions_that_are_tried_are_those_that_the_package_allows():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    allowed = project["dependencies"]
    for extra in ("train", "words", "plots", "tensorboard", "serve", "hub", "onnx"):
        allowed += extras[extra]
    floors = dict(re.findall(r"^([\w-]+)[>=]=([\d.]+)$", "\n".join(allowed), re.MULTILINE))
    text = (ROOT / "constraints-oldest.txt").read_text("utf-8")
    oldest = dict(re.findall(r"^([\w-]+)==([\d.]+)$", text, re.MULTILINE))
    assert oldest.keys() == floors.keys() - {"torch"}
    for name, version in oldest.items():
        assert f"{version}.".startswith(f"{floors[name]}."), name
