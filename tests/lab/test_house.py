"""A sentence and an update take short ways through the package; `tests/test_layers.py` keeps the
other limits."""

from scripts.laboratory.house import WALKS, walks


def test_walks_are_short() -> None:
    walked = walks()
    assert all(value > 1 for value, _ in walked.values())
    assert {name: walked[name] for name, limit in WALKS.items() if walked[name][0] > limit} == {}
