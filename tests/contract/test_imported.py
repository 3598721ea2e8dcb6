"""`pytest tests/contract --import MODULE` asks the whole contract of the variants of a module."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BROKEN = """
from seq2seq_attn.model.normalizer import softmax

def weights(scores, mask):
    return softmax.weights(scores.nan_to_num(0.0), mask)
"""


def contract(folder: Path, *modules: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    named = [word for module in modules for word in ("--import", module)]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", f"{ROOT}/tests/contract"]
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run([*command, *named, *options], cwd=folder, env=environment, capture_output=True, text=True)


def test_the_examples_keep_the_contract():
    done = contract(ROOT / "examples", "cosine", "variants", "gated_pair", "confidence_penalty", options=("-vv",))
    assert done.returncode == 0, done.stdout
    names = ("cosine", "variants:SSRU", "variants", "gated_pair", "confidence_penalty")
    assert [name for name in names if f"[{name}]" not in done.stdout] == []


def test_a_variant_that_breaks_a_rule_fails_its_test(tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN, encoding="utf-8")
    done = contract(tmp_path, "broken")
    assert done.returncode == 1, done.stdout
    assert "test_a_score_that_is_not_finite_gives_weights_that_are_not_numbers[broken-nan]" in done.stdout
    assert "test_attention.py" not in done.stdout
