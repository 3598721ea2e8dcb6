"""`pytest tests/contract --import MODULE` asks the whole contract of the variants of modules."""

import os
import re
import subprocess
import sys

from tests import ROOT

NAMES = (
    "cosine",
    "variants:SSRU",
    "variants",
    "gated_pair",
    "confidence_penalty:ConfidencePenalty",
    "sentinel:Sentinel",
    "pyramid:Pyramid",
)
"""variants of `examples/`"""
BROKEN = """
from seq2seq_attn.model.normalizer import softmax

def weights(scores, mask):
    return softmax.weights(scores.nan_to_num(0.0), mask)
"""


def test_the_examples_keep_the_contract_and_a_variant_that_breaks_a_rule_fails_its_test(tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN, "utf-8")
    modules = dict.fromkeys([*(name.partition(":")[0] for name in NAMES), "broken"])
    named = [word for module in modules for word in ("--import", module)]
    command = [
        sys.executable,
        *"-m pytest -vv -n 0 -p no:cacheprovider".split(),
        f"{ROOT}/tests/contract",
    ]
    paths = os.pathsep.join(
        filter(None, [str(ROOT), f"{ROOT}/examples", os.environ.get("PYTHONPATH")])
    )
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        [*command, *named], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stdout
    assert [name for name in NAMES if f"[{name}]" not in done.stdout] == []
    failed = re.findall(r"^FAILED \S+::(\S+)", done.stdout, re.MULTILINE)
    assert (
        "test_a_score_that_is_not_finite_gives_weights_that_are_not_numbers[broken-nan]" in failed
    )
    assert [test for test in failed if "[broken-" not in test] == []
