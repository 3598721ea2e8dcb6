"""The measurement of the server, at a tiny size: nothing lost, nothing wrong."""

from scripts.laboratory.harness.records import RECORDS
from scripts.laboratory.serve import QUICK, measure
from seq2seq_attn.files import read_json
from tests.toy_run import make_toy_run


def test_a_server_under_load(tmp_path):
    figures = measure(make_toy_run(tmp_path / "run").path, QUICK)
    assert figures["clients"]["failed"] == 0
    assert figures["clients"]["wrong"] == 0
    published = read_json(RECORDS / "serve.json")
    assert published.keys() >= figures.keys()
