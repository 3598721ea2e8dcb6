"""Block `tests`: the device tests and the golden loss curves, by pytest."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from scripts.laboratory.benchmarks.gpu.plan import Budget, Settings, child_environment, write_record
from scripts.laboratory.harness.records import ROOT, Record

ON_A_GPU = ["-m", "device", "tests/device", "tests/golden"]
ON_A_CPU = ["tests/golden", "-k", "stored and dot and not scaled"]
TAIL = 3_000


def run(name: str, settings: Settings, budget: Budget) -> bool:
    """Run the tests, record what they found; True if none failed."""
    report = settings.work / "tests.xml"
    report.unlink(missing_ok=True)
    # warnings are shown, not errors: another torch on another machine deprecates other things
    command = [sys.executable, "-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider", f"--junitxml={report}"]
    command += ON_A_CPU if settings.is_rehearsal else ON_A_GPU
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=child_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=budget.left_s,
        )
    except subprocess.TimeoutExpired:
        print("the tests took longer than the block may; raise --minutes", file=sys.stderr)
        return False
    if not report.is_file():
        print(done.stdout[-TAIL:], file=sys.stderr)
        return False
    found = read_report(report)
    is_good = found["passed"] > 0 and not found["failed"]
    write_record(settings, name, is_finished=is_good, values={**found, "output_tail": done.stdout[-TAIL:]})
    return is_good


def read_report(path: Path) -> Record:
    """Counts, and the failed tests with the first line of their message, from a JUnit file."""
    passed, skipped, seconds, failed = 0, 0, 0.0, []
    for case in ElementTree.parse(path).iter("testcase"):
        seconds += float(case.get("time", 0.0))
        problem = next((node for node in case if node.tag in ("failure", "error")), None)
        if problem is not None:
            message = (problem.get("message") or problem.text or "").strip().splitlines()
            failed.append({"name": case.get("name", ""), "message": message[0] if message else ""})
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return {"passed": passed, "skipped": skipped, "failed": failed, "seconds": seconds}
