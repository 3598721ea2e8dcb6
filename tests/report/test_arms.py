"""Arms: which runs count as one, under what name, and what tables, plots and values show of them."""

from __future__ import annotations

import json

import pytest

from seq2seq_attn.config import Config, load_config
from seq2seq_attn.evaluation.arms import Arm, find_arms, named_arms
from seq2seq_attn.evaluation.scores import SetScores, score_set
from seq2seq_attn.metrics.by_length import make_buckets
from seq2seq_attn.report.pages import markdown_page, terminal_page, terminal_summary
from seq2seq_attn.report.plots import plot_by_length, plot_retention
from seq2seq_attn.report.tables import comparison_table, length_table, score_table, seeds_table
from tests.metrics.corpora import make_hypotheses
from tests.metrics.pairs import arm_bootstrap, arm_retention
from tests.metrics.test_significance import statistics_of
from tests.report.conftest import LENGTHS, QUICK, REFERENCES
from tests.report.test_plots import figures, size_of  # noqa: F401
from tests.report.test_tables import make_page

NOISES = {"additive-s1": 0.3, "additive-s2": 0.35, "none-s1": 0.6, "none-s2": 0.65, "none-s3": 0.7, "initial-s1": 0.9}
ARMS = ["additive", "additive", "none", "none", "none", "initial"]
SYSTEMS = {
    name: make_hypotheses(REFERENCES, seed=number, noise=noise)
    for number, (name, noise) in enumerate(NOISES.items(), start=40)
}


@pytest.fixture(scope="module")
def grouped() -> SetScores:
    buckets = make_buckets(LENGTHS, (6, 12, 19))
    arms = named_arms(ARMS)
    return score_set("made-up", SYSTEMS, REFERENCES, buckets, measures=("bleu", "chrf"), resampling=QUICK, arms=arms)


def config(*settings: str, name: str = "base") -> Config:
    return load_config(overrides=[f"name={name}", *settings])


def test_runs_that_differ_in_their_seed_or_machine_alone_are_one_arm():
    configs = [
        config("seed=1"),
        config("seed=2", "train.device=cpu", "train.num_threads=1", "data.data_dir=elsewhere", name="again"),
        config("seed=1", "model.attention.name=fixed"),
        config("seed=3", "model.attention.name=fixed", "train.log_every_updates=7"),
        config("seed=1", "model.dropout.readout=0.1"),
    ]
    arms = find_arms(["a-s1", "a-s2", "b_seed1", "b_seed3", "c"], configs)
    assert arms == [Arm("a", (0, 1), (1, 2)), Arm("b", (2, 3), (1, 3)), Arm("c", (4,), (1,))]
    assert find_arms(["x", "y"], configs[1:3]) == [Arm("x", (0,), (2,)), Arm("y", (1,), (1,))]
    assert arms[0].to_dict(["x", "y", "z"]) == {"name": "a", "runs": ["x", "y"], "seeds": [1, 2]}


def test_how_a_run_was_computed_makes_no_arm():
    machine = ("data.num_processes=4", "search.batch_size=7", "train.cuda_graphs=true")
    [arm] = find_arms(["a-s1", "a-s2"], [config("seed=1"), config("seed=2", *machine)])
    assert arm.seeds == (1, 2)


def test_runs_of_different_training_text_are_no_arm():
    configs = [config(f"seed={seed}") for seed in (1, 2, 3)]
    arms = find_arms(["a-s1", "a-s2", "a-s3"], configs, ["one", "other", "one"])
    assert arms == [Arm("a-s1", (0, 2), (1, 3)), Arm("a-s2", (1,), (2,))]


def test_the_same_seed_twice_is_no_spread():
    configs = [config("seed=1"), config("seed=1"), config("seed=2")]
    assert find_arms(["a-s1", "b-s1"], configs[:2]) == [Arm("a-s1", (0,), (1,)), Arm("b-s1", (1,), (1,))]
    arms = find_arms(["a-s1", "b-s1", "a-s2"], configs)
    assert [(arm.runs, arm.seeds) for arm in arms] == [((0, 2), (1, 2)), ((1,), (1,))]
    assert [arm.name for arm in arms] == ["a", "b"]


@pytest.mark.parametrize(
    ("names", "configs", "expected"),
    [
        (["a-s1", "a-s11", "b-s1"], ["x", "x", "y"], ["a", "b"]),
        (["bias1", "bias11", "b-s1"], ["x", "x", "y"], ["bias", "b"]),
        (["bias-s1", "bias-s11", "b_seed1"], ["x", "x", "y"], ["bias", "b"]),
        (["runs/a/s1", "runs/a/s11", "runs/b/s1"], ["x", "x", "y"], ["a", "b"]),
        (["monday", "tuesday", "friday"], ["x", "x", "y"], ["attention=additive", "attention=fixed"]),
        (["monday", "a-s11", "a-s1"], ["z", "x", "x"], ["attention=additive", "attention=fixed"]),
        (
            ["2026-11-22-x-s1", "2026-11-22-x-s11", "2026-11-23-x+none-s1"],
            ["x", "x", "x+none"],
            ["attention=additive", "attention=fixed"],
        ),
    ],
)
def test_an_arm_is_named_by_what_its_runs_share(names, configs, expected):
    attentions = ["additive", "additive", "fixed"]
    settings = [
        config(f"seed={seed}", f"model.attention.name={attention}", name=name)
        for seed, attention, name in zip((1, 11, 1), attentions, configs, strict=True)
    ]
    assert [arm.name for arm in find_arms(names, settings)] == expected


def test_arms_that_no_short_name_tells_apart_have_their_first_runs_names():
    sizes = [f"model.{key}=8" for key in ("embedding_size", "hidden_size", "readout_size", "encoder.hidden_size")]
    settings = [config("seed=1"), config("seed=2"), config("seed=1", *sizes)]
    assert [arm.name for arm in find_arms(["monday", "tuesday", "friday"], settings)] == ["monday", "friday"]


def test_arms_can_be_named_by_hand():
    assert [(arm.name, arm.runs, arm.seeds) for arm in named_arms(["a", "b", "a"])] == [
        ("a", (0, 2), (1, 2)),
        ("b", (1,), (1,)),
    ]
    assert named_arms(["a", "b"]) == [Arm("a", (0,), (1,)), Arm("b", (1,), (1,))]


def test_arm_scores_are_the_means_overall_and_in_each_bucket(grouped):
    every = statistics_of("bleu", *SYSTEMS.values(), references=REFERENCES)
    cells = [(range(150), grouped), *((row.bucket.indices, row) for row in grouped.buckets)]
    for indices, cell in cells:
        runs = [one.subset(indices) for one in every]
        baseline, none, initial = cell.scores["bleu"]
        assert none.spread.mean == pytest.approx(sum(run.score().score for run in runs[2:5]) / 3, abs=1e-9)
        assert none.spread.min == min(run.score().score for run in runs[2:5])
        assert none.interval.value == none.spread.mean
        draws = {"num_resamples": QUICK.num_resamples}
        assert none.retention == arm_retention(runs[:2], runs[2:5], **draws)
        assert none.bootstrap == arm_bootstrap(runs[:2], runs[2:5], **draws)
        assert baseline.bootstrap is baseline.retention is None
        assert none.randomization is None  # of several runs, which sentences would be swapped?
        assert [one.interval.value for one in cell.run_scores["bleu"]] == [run.score().score for run in runs]
        assert (initial.spread.num_seeds, initial.spread.standard_deviation) == (1, None)


def test_json_has_the_groups_only_where_there_are_any(grouped, two_systems):
    values = json.loads(json.dumps(grouped.to_dict()))
    for measures in (values["measures"], values["buckets"][1]["measures"]):
        assert [group["arm"] for group in measures[0]["groups"]] == ["additive", "none", "initial"]
        group = measures[0]["groups"][1]
        assert group["seeds"] == [1, 2, 3]
        assert {"mean", "standard_deviation", "min", "max", "num_seeds", "low", "high"} < group.keys()
        assert {"retention", "paired_bootstrap"} < group.keys()
    assert "groups" not in two_systems.to_dict()["measures"][0]


def test_tables_of_arms(grouped):
    table = seeds_table(grouped)
    none = grouped.scores["bleu"][1]
    assert [row[:3] for row in table.rows[:3]] == [["BLEU", "additive", "2"], ["", "none", "3"], ["", "initial", "1"]]
    extremes = f"{none.spread.min:.1f} to {none.spread.max:.1f}"
    assert table.rows[1][3:] == [f"{none.spread.mean:.1f}", f"{none.spread.standard_deviation:.2f}", extremes]
    assert table.rows[2][4] == "-"
    table = length_table(grouped, unit="words")
    assert list(table.header) == ["words", "n", "additive", "none", "initial"]
    assert table.rows[-1][3].startswith(f"{none.spread.mean:.1f} ± {none.spread.standard_deviation:.1f} [")
    assert "±" not in table.rows[-1][4]
    assert score_table(grouped).rows[0][1:] == table.rows[-1][2:]
    table = comparison_table(grouped)
    assert table.rows[-1][1].endswith(
        f"{none.retention.value:.2f} [{none.retention.low:.2f}, {none.retention.high:.2f}]"
    )


def test_pages_show_arms_in_place_of_runs_and_the_file_both(grouped):
    text, markdown = terminal_page(make_page(grouped)), markdown_page(make_page(grouped))
    assert "BLEU by length, means over seeds" in text
    assert "none-s2" not in text
    assert "difference, p, kept: against additive, by" in text
    assert "arms: runs that differ in their seed alone" in text
    assert "none-s2" in markdown
    assert "### chrF2 by length, against additive, means over seeds" in markdown


def test_two_arms_are_compared_side_by_side(grouped):
    systems = dict(list(SYSTEMS.items())[:5])
    two = score_set("made-up", systems, REFERENCES, [], measures=("bleu",), resampling=QUICK, arms=named_arms(ARMS[:5]))
    assert list(length_table(two).header)[-3:] == ["difference", "p", "kept"]
    summary = terminal_summary(make_page(two))
    assert "difference, p, kept: against additive; kept = share of its score" in summary
    assert "± and sd: standard deviation over seeds" in summary
    assert "(about 0.05 in a two-sided test) and the scores of the seeds do not overlap" in summary


def test_runs_by_themselves_are_arms_of_one_seed(grouped):
    runs = grouped.ungrouped()
    assert [arm.name for arm in runs.arms] == list(SYSTEMS)
    assert runs.scores["bleu"] == grouped.run_scores["bleu"]
    assert runs.buckets[1].scores == grouped.buckets[1].run_scores
    for text in (length_table(runs).to_text(), terminal_page(make_page(runs))):
        assert "±" not in text
        assert "seeds" not in text


def test_plots_draw_a_line_an_arm_with_the_seeds_extremes(tmp_path, grouped, figures):  # noqa: F811
    plot_by_length(tmp_path / "p.png", grouped)
    plot_retention(tmp_path / "q.png", grouped)
    assert min(map(size_of, (tmp_path / "p.png", tmp_path / "q.png"))) > (800, 500)
    scores, kept = (figure.axes[0] for figure in figures)
    assert [line.get_label() for line in scores.get_lines()] == ["additive", "none", "initial"]
    of_none = [row.scores["bleu"][1] for row in grouped.buckets]
    assert scores.get_lines()[1].get_ydata() == pytest.approx([score.spread.mean for score in of_none])
    bars = scores.collections[3].get_segments()  # two per arm: band and bars
    assert [tuple(bar[:, 1]) for bar in bars] == [(score.spread.min, score.spread.max) for score in of_none]
    assert len(scores.collections) == 5  # one seed: no bars
    assert kept.get_lines()[0].get_ydata() == pytest.approx([score.retention.value for score in of_none])
    assert "bars: seeds" in kept.get_ylabel()
