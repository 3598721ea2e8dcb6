"""The race: each trainer under the clock at tiny sizes, killed and continued; what the page says of
its record."""

import pytest

from scripts.laboratory.benchmarks import peers, race, race_clock
from scripts.laboratory.pages import race as page
from scripts.laboratory.pages.pictures import Picture, plot_race, race_curves
from scripts.laboratory.pages.render import render
from seq2seq_attn.files import read_json


@pytest.fixture
def record():
    """Two systems that were scored, one that failed, and the missing others."""

    def scored(name, *bleu):
        points = [
            {"updates": updates, "minutes": minutes, "bleu": score, "bleu_lower_case": score}
            for updates, minutes, score in zip((1_200, 2_400), (2.0, 4.0), bleu, strict=False)
        ]
        test = {
            "best_minutes": 2.0,
            "beam_size": 5,
            "bleu": 9.0,
            "bleu_lower_case": 9.5,
            "signature": "nrefs:1",
        }
        test |= {"sentences_per_s": 7.0, "timed_on": "a CPU", "peak_mib": None}
        about = {
            "name": name,
            "recipe": "its own",
            "precision": "fp32",
            "update_s": 0.1,
            "paced_on": "a CPU",
        }
        return {**about, "points": points, "test": test}

    systems = [scored("ours, multi30k-fast", 30.0), scored("JoeyNMT, RNN", 10.0, 35.0)]
    environment = {
        "device_name": "a CPU",
        "packages": {"torch": "2"},
        "git": None,
        "written_at": "today",
    }
    about = {"minutes": [2, 4, 6], "test_set": "test", "environment": environment}
    return {**about, "systems": systems}


@pytest.mark.parametrize(
    "name", ["ours, multi30k", "the tutorial's loop", "JoeyNMT, RNN", "OpenNMT-py, RNN"]
)
def test_each_trainer_keeps_a_scored_checkpoint(name, tmp_path, monkeypatch):
    package = race.RACE["systems"][name].get("package")
    if package and not peers.is_installed(peers.PEERS[package]):
        pytest.skip(f"{package} is not installed in {peers.ENVIRONMENTS}")
    monkeypatch.setattr(race, "FOLDER", tmp_path)
    monkeypatch.setitem(race.RACE, "minutes", [0.01])
    race.main(["--quick", "--only", name])
    record = read_json(tmp_path / "race.json")
    [system] = record["systems"]
    [point] = system["points"]
    assert point["minutes"] > 0
    assert system["test"]["sentences_per_s"] > 0
    race.main(["--quick", "--only", name])  # as after a kill: nothing is trained again
    assert read_json(tmp_path / "race.json")["systems"] == [system]


def test_the_clock_counts_updates_and_keeps_a_checkpoint_at_each_mark(tmp_path):
    pace = {"start_s": 30.0, "update_s": 20.0}
    clock = race_clock.Clock(tmp_path, [1, 2, 5], pace)
    for _ in range(6):  # minutes 0.8 to 2.5
        clock.check(lambda folder: None)
    kept = [path.name for path in race_clock.checkpoints(tmp_path)]
    assert kept == ["2", "5"]  # minutes 70 / 60 and 130 / 60


def test_between_two_checkpoints_a_system_is_on_the_line_between_their_scores(record):
    _, joey = record["systems"]
    expected = {0: 0, 1: 5, 2: 10, 3.5: 28.75, 4: 35, 60: 35}
    for minute, bleu in expected.items():
        assert page.bleu_at(joey, minute) == bleu


def test_a_system_that_writes_lower_case_does_not_lose_by_it(record):
    fair = page.leads(record)
    for point in record["systems"][1]["points"]:
        point["bleu"] -= 5.0
    assert page.leads(record) == fair


def test_the_page_says_who_leads(record, tmp_path):
    assert page.leads(record) == [
        "ahead of JoeyNMT, RNN by 20.0 BLEU at minute 2, behind it at minute 4"
    ]
    first_minutes = record | {"minutes": [1, 2]}
    assert page.leads(first_minutes) == [
        "ahead of JoeyNMT, RNN by 10.0 to 20.0 BLEU from minute 1 to 2"
    ]
    text = render("race.md.j2", r=record | {"leads": page.leads(record)})
    assert "ahead of JoeyNMT, RNN by 20.0 BLEU" in text
    systems = race_curves(record)["curves"]
    assert [len(curve["points"]) for curve in systems] == [1, 2]
    short = race_curves(record | {"minutes": [2, 3]})["curves"][1]
    assert short["points"][1] == (3, pytest.approx(22.5))  # a curve that goes on is cut at the end
    Picture(tmp_path / "race.png", "title", 4.0, plot_race, race_curves(record)).draw()
    assert (tmp_path / "race.png").exists()
