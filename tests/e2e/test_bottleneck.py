"""The bottleneck experiment: equal arms, honest arithmetic, pages that say what the records say."""

import json

import pytest

from scripts.bottleneck_experiment.__main__ import keep_other_number
from scripts.bottleneck_experiment.findings import half_quality_length, half_retention_length
from scripts.bottleneck_experiment.pages import FOLDER, load_records
from scripts.bottleneck_experiment.plan import (
    CAPTIONS_ARMS,
    MULTI30K_ARMS,
    Training,
    captions_trainings,
    multi30k_trainings,
    multi30k_tuning,
)
from scripts.harness.pages import replace_block
from scripts.harness.records import ROOT
from seq2seq_attn.config import load_config
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_json
from seq2seq_attn.model.build import build_model, count_parameters


def test_the_packaged_fixed_vector_has_as_many_parameters():
    counts = [
        count_parameters(build_model(load_config([one]).model, num_source_ids=2_200, num_target_ids=1_900))
        for one in ("quickstart", "quickstart-fixed")
    ]
    assert abs(counts[1] / counts[0] - 1) < 0.03


@pytest.mark.parametrize(
    ("inputs", "arms", "sizes"),
    [("joined", CAPTIONS_ARMS, (1_000, 1_000)), ("multi30k", MULTI30K_ARMS, (5_000, 4_000))],
)
def test_arms_have_the_same_number_of_parameters(inputs, arms, sizes):
    counts = {}
    for arm in arms:
        config = Training(inputs, arm, seed=1).config
        model = build_model(config.model, num_source_ids=sizes[0], num_target_ids=sizes[1])
        counts[arm.name] = count_parameters(model)
    for arm in arms:
        if arm.is_equal:
            assert abs(counts[arm.name] / counts["additive"] - 1) < 0.03, arm.name


def test_arms_differ_in_nothing_but_what_they_are():
    for training in captions_trainings(CAPTIONS_ARMS, seeds=1):
        own = training.config.model_dump()
        first = Training(training.inputs, CAPTIONS_ARMS[0], seed=1).config.model_dump()
        for values in (own, first):
            del values["name"]
            for key in ("attention", "encoder", "hidden_size"):
                del values["model"][key]
            if not training.arm.is_equal:
                del values["train"]["optimizer"]["learning_rate"]
        assert own == first


@pytest.fixture
def validated(monkeypatch):
    """Sets what the trainings finished so far validated at, by their rate of dropout."""
    scores = {}

    class FakeRun:
        def __init__(self, rate):
            self.rate = rate

        def is_finished(self):
            return self.rate in scores

        def best_metadata(self):
            return {"bleu": str(scores[self.rate])}

    monkeypatch.setattr(Training, "run", property(lambda training: FakeRun(training.dropout)))
    return scores


def asked():
    tried = [{one.dropout for one in multi30k_tuning(arm)} for arm in MULTI30K_ARMS]
    assert tried[0] == tried[1]  # as long as they score alike, all arms are tuned alike
    return tried[0]


@pytest.mark.parametrize(
    "training",
    [
        *(Training("joined", arm, 1) for arm in CAPTIONS_ARMS if arm.name.startswith("fixed")),
        *(Training("multi30k", arm, 1, 0.3) for arm in MULTI30K_ARMS if arm.name.startswith("fixed")),
    ],
    ids=lambda training: f"{training.inputs}-{training.arm.name}",
)
def test_a_fixed_summary_has_the_dropout_of_the_encoder(training):
    model = training.config.model
    assert model.attention.options["dropout"] == model.dropout.encoder


def test_the_search_for_dropout_goes_on_beside_the_best_rate(validated):
    assert asked() == {0.2, 0.3}
    validated[0.2] = 30.0
    assert asked() == {0.2, 0.3}
    validated[0.3] = 31.0
    assert asked() == {0.2, 0.3, 0.4}
    validated[0.4] = 30.5
    assert asked() == {0.2, 0.3, 0.4}
    assert {one.dropout for one in multi30k_trainings(MULTI30K_ARMS, seeds=2)} == {0.3}


def test_the_search_for_dropout_ends_at_none(validated):
    validated.update({0.3: 30.0, 0.2: 31.0, 0.1: 32.0, 0.0: 33.0})
    assert asked() == {0.0, 0.1, 0.2, 0.3}
    assert [one.dropout for one in multi30k_trainings(MULTI30K_ARMS[:1], seeds=2)] == [0.0, 0.0]


def record(scores, lengths=(10.0, 20.0, 40.0)):
    points = [
        {"mean_length": length, "scores": {"arm": {"bleu": {"mean": score}}, "additive": {"bleu": {"mean": 80.0}}}}
        for length, score in zip(lengths, scores, strict=True)
    ]
    return {"points": points}


def test_half_quality_lies_on_the_line_between_two_points():
    assert half_quality_length(record((80.0, 60.0, 20.0)), "arm") == pytest.approx(30.0)
    assert half_quality_length(record((80.0, 30.0, 20.0)), "arm") == pytest.approx(18.0)


def test_half_quality_may_never_be_lost():
    assert half_quality_length(record((80.0, 60.0, 50.0)), "arm") is None
    assert half_quality_length(record((80.0, 60.0, 40.0)), "arm") is None


def test_half_of_attentions_quality_may_be_lost_from_the_start():
    assert half_retention_length(record((60.0, 50.0, 30.0)), "arm") == pytest.approx(30.0)
    assert half_retention_length(record((39.0, 30.0, 20.0)), "arm") == 0.0
    assert half_retention_length(record((60.0, 50.0, 40.0)), "arm") is None


def test_only_the_block_is_replaced():
    page = "before\n<begin>\nold\n<end>\nafter\n"
    assert replace_block(page, "<begin>", "<end>", "new") == "before\n<begin>\nnew\n<end>\nafter\n"
    with pytest.raises(UserError, match=r"no lines '<begin>' \.\.\. '<end>'; put them back"):
        replace_block("no marks\n", "<begin>", "<end>", "new")


def test_the_record_of_another_number_of_updates_is_kept(tmp_path):
    path = tmp_path / "multi30k.json"
    for updates, seed in ((2270, 1), (4540, 1), (4540, 2)):
        found = {"arms": [{"updates": updates, "seeds": [seed]}]}
        keep_other_number(path, found)
        write_json(path, found)
    assert {one.name for one in tmp_path.iterdir()} == {"multi30k.json", "multi30k-2270updates.json"}
    assert json.loads(path.read_text()) == found


def test_every_record_has_its_plot():
    records = load_records()
    assert records
    for name in records:
        assert (FOLDER / f"{name}.png").is_file()
