"""The files that a run's log writes: `metrics.jsonl`, `train.log`, TensorBoard
events."""

import json
import logging
import math

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from seq2seq_attn.train.checkpoint import TrainState
from tests.train.conftest import open_log

log = logging.getLogger("seq2seq_attn.some.module")


def lines(directory):
    return [
        json.loads(line) for line in (directory / "metrics.jsonl").read_text("utf-8").splitlines()
    ]


def test_events_are_strict_json_lines(tmp_path):
    with open_log(tmp_path) as run_log:
        run_log.event(
            "train", update=3, epoch=0, loss=math.nan, parts=[{"x": math.inf}, 1.5], text="Straße\n"
        )
    [line] = lines(tmp_path)
    assert (line["event"], line["update"], line["epoch"]) == ("train", 3, 0)
    assert (line["loss"], line["parts"]) == (None, [{"x": None}, 1.5])
    assert line["text"] == "Straße\n"
    assert "NaN" not in (tmp_path / "metrics.jsonl").read_text("utf-8")


def test_a_resume_drops_what_came_after_its_state_and_a_new_run_all(tmp_path):
    with open_log(tmp_path) as run_log:
        run_log.event("train", update=1, epoch=0)
        position = run_log.position()
        run_log.event("train", update=2, epoch=0)
        log.info("first session")
    with open_log(tmp_path, position=position, update=1) as run_log:
        assert run_log.position() == position
        run_log.event("train", update=2, epoch=0, again=True)
        log.info("second session")
    assert [(line["update"], line.get("again")) for line in lines(tmp_path)] == [
        (1, None),
        (2, True),
    ]
    text = (tmp_path / "train.log").read_text("utf-8")
    assert "first session" in text
    assert "second session" in text
    with open_log(tmp_path) as run_log:
        run_log.event("new", update=1, epoch=0)
    assert [line["event"] for line in lines(tmp_path)] == ["new"]
    assert (tmp_path / "train.log").read_text("utf-8") == ""


@pytest.mark.parametrize("kept", ["", '{"event": "train"}\n'])
@pytest.mark.parametrize("cut", ["", '{"event": "validation", "bl', "\x1b[31m" * 99])
def test_a_resume_without_its_former_lines_goes_on_with_whole_ones(tmp_path, caplog, kept, cut):
    (tmp_path / "metrics.jsonl").write_text(kept + cut)
    with open_log(tmp_path, position=100, update=1) as run_log:
        run_log.event("train", update=2, epoch=0)
        assert run_log.position() == (tmp_path / "metrics.jsonl").stat().st_size
    assert [line.get("update") for line in lines(tmp_path)] == [*([None] if kept else []), 2]
    assert "metrics.jsonl: cut or changed" in caplog.text


def tensorboard(directory):
    events = EventAccumulator(str(directory))
    events.Reload()
    return events


@pytest.mark.parametrize(
    ("reason", "score", "is_advised"),
    [
        ("train.max_minutes=1 reached", 50.0, True),
        ("train.max_minutes=1 reached", 0.0, True),
        ("train.max_minutes=1 reached", 100.0, False),
        ("train.validation.patience=3 reached", 50.0, False),
    ],
)
def test_a_schedule_that_is_cut_matters_if_time_ran_out(
    tmp_path, caplog, reason, score, is_advised
):
    with open_log(tmp_path) as run_log:
        run_log.ended(TrainState(end_reason=reason, best_score=score))
    assert ("train.schedule.name" in caplog.text) == is_advised


def test_curves_go_to_tensorboard(tmp_path):
    with open_log(tmp_path) as run_log:
        run_log.event(
            "train", update=5, epoch=0, loss=2.5, elapsed_s=3.0, num_bad=0, text="no number"
        )
        run_log.event("validation", update=5, epoch=0, bleu=1.5, chrf=9.5, is_best=True, num_cut=2)
        run_log.event("end", update=5, epoch=0, best_score=1.5)
    events = tensorboard(tmp_path)
    assert events.Tags()["scalars"] == [
        "train/loss",
        "validation/bleu",
        "validation/chrf",
        "validation/num_cut",
    ]
    assert [(point.step, point.value) for point in events.Scalars("train/loss")] == [(5, 2.5)]


def test_samples_go_to_tensorboard(tmp_path):
    sample = {"source": "Ein Hund *rennt*", "reference": "A dog runs", "hypothesis": "A dog"}
    with open_log(tmp_path) as run_log:
        run_log.samples([sample], update=7)
    events = tensorboard(tmp_path)
    text = events.Tensors("sample 1/text_summary")[0].tensor_proto.string_val[0].decode()
    assert text.splitlines() == [
        "    source      Ein Hund *rennt*",
        "    reference   A dog runs",
        "    hypothesis  A dog",
    ]


def test_updates_that_are_made_again_stand_once_in_tensorboard(tmp_path):
    # killed after the state of update 0 was saved, and resumed
    for session, position in enumerate((None, 0)):
        with open_log(tmp_path, position=position, update=0) as run_log:
            for update in (1, 2):
                run_log.event("train", update=update, epoch=0, loss=1.0)
        (written,) = tmp_path.glob("events.out.tfevents.*.*")
        written.rename(tmp_path / f"events.out.tfevents.{session}")  # read in order of the names
    assert [point.step for point in tensorboard(tmp_path).Scalars("train/loss")] == [1, 2]


def test_the_error_that_ends_training_is_in_its_log_alone_and_the_level_is_put_back(
    tmp_path, caplog
):
    package = logging.getLogger("seq2seq_attn")
    before = (package.level, list(package.handlers))
    with pytest.raises(ValueError, match="the reason"), open_log(tmp_path):
        raise ValueError("the reason" if package.isEnabledFor(logging.INFO) else "the level")
    assert "ERROR the reason" in (tmp_path / "train.log").read_text("utf-8")
    assert "the reason" not in caplog.text
    assert (package.level, list(package.handlers)) == before
