"""A training run that is killed and resumed ends like an uninterrupted one, bit for bit."""

import json

from scripts.laboratory import kill_resume


def test_a_training_killed_and_resumed_ends_like_an_uninterrupted_one(tmp_path):
    record = tmp_path / "record.json"
    assert kill_resume.main(["--kills", "3", "--seed", "2", "--record", str(record)]) == 0
    found = json.loads(record.read_text(encoding="utf-8"))
    assert found["identical"] is True
    assert len(found["kills"]) == 3
