"""Pages and pictures: what they show is what the records say."""

from statistics import fmean

import pytest

from scripts.laboratory.harness import records
from scripts.laboratory.pages import __main__ as docs
from scripts.laboratory.pages import quality, render
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_json


@pytest.fixture
def change_record(monkeypatch):
    """Replaces a value in a record, as it is read."""

    def change(name, *keys, value):
        def read(path):
            record = inner = read_json(path)
            if path.name == name:
                for key in keys[:-1]:
                    inner = inner[key]
                inner[keys[-1]] = value
            return record

        monkeypatch.setattr(records, "read_json", read)

    return change


def test_every_document_and_picture_says_what_the_records_say(capsys):
    assert docs.main(["check"]) == 0, capsys.readouterr().err


def test_a_changed_number_is_noticed_in_every_document_that_shows_it(change_record):
    change_record("joined.json", "points", 0, "scores", "fixed", "bleu", "mean", value=99.0)
    stale = [line.partition(":")[0] for line in docs.problems()]
    assert stale == ["docs/bottleneck/README.md", "docs/bottleneck/joined.png"]


def test_test_scores_need_settings_that_were_not_chosen_on_them(change_record):
    change_record("multi30k.json", "chosen_on", value="test_2016_flickr")
    assert [line.partition(":")[0] for line in quality.problems()] == ["multi30k", "multi30k"]


def test_a_recipe_that_is_no_longer_the_measured_one_is_noticed(monkeypatch):
    load = quality.load_config
    monkeypatch.setattr(quality, "load_config", lambda names: load(names, ["train.max_epochs=99"]))
    stale = [line for line in quality.problems() if "train.max_epochs" in line]
    assert [line.partition(":")[0] for line in stale] == [
        f"configs/{name}.yaml" for name in ("multi30k-fast", "multi30k", "multi30k-extra")
    ]


def traces(record):
    """Texts by which a page shows a record: its date or that of a run, its row, or its scores."""
    runs = record.get("runs", [])
    yield from (value for value in [record.get("environment", {}).get("written_at")] if value)
    yield from (run["date"] for run in runs if "date" in run)
    yield from (f"`{record[key]}`" for key in ("row",) if key in record)
    scores = [run["validation"]["bleu"] for run in runs if "validation" in run]
    if scores:
        by_seed = ", ".join(f"{score:.2f}" for score in scores)
        yield f"| {by_seed} | {fmean(scores):.2f} |"


def is_shown(record, text):
    """Whether a text has a trace of the record, or all its rows where these have names."""
    rows = [f"| {name} |" for name in record.get("rows", ()) if isinstance(name, str)]
    return any(trace in text for trace in traces(record)) or (
        rows != [] and all(row in text for row in rows)
    )


def test_a_record_is_shown_or_listed_with_a_reason():
    records = {
        str(path.relative_to(render.DOCS)): read_json(path) for path in render.DOCS.rglob("*.json")
    }
    assert len(records) > 100
    groups = render.load_yaml("not-shown.yaml")
    listed = [name for group in groups for name in group["records"] if group["reason"]]
    generated = "\n".join(text for _, text in docs.documents())
    not_shown = {name for name, record in records.items() if not is_shown(record, generated)}
    assert sorted(not_shown) == sorted(listed)


def test_a_page_without_its_markers_is_refused():
    begin = "<!-- demo: written by scripts/docs -->"
    end = "<!-- end of demo -->"
    page = f"before\n{begin}\nold\n{end}\nafter\n"
    expected = f"before\n{begin}\n\nnew\n\n{end}\nafter\n"
    assert render.replace_block(page, "demo", "new\n") == expected
    with pytest.raises(UserError, match="demo"):
        render.replace_block("no markers\n", "demo", "new")
