"""The measurement of the server, at a tiny size: nothing lost, nothing wrong, each malformed
request refused."""

import json
from pathlib import Path

from scripts.laboratory.harness.records import RECORDS
from scripts.laboratory.serve import QUICK, measure
from tests.toy_run import make_toy_run


def test_a_server_under_load(tmp_path: Path) -> None:
    figures = measure(make_toy_run(tmp_path / "run").path, QUICK)
    assert (figures["clients"]["failed"], figures["clients"]["wrong"]) == (0, 0)
    assert {status[0] for status in figures["malformed"]["statuses"]} == {"4"}
    assert (
        sum(figures["malformed"]["statuses"].values())
        == figures["malformed"]["log_lines"]
        == QUICK.malformed
    )
    stop = figures["stop"]
    assert (stop["exit_code"], stop["lost"]) == (143, 0)
    assert stop["accepted"] == stop["answered"] > 0
    published = json.loads((RECORDS / "serve.json").read_text())
    assert published.keys() - {"environment"} == figures.keys()
