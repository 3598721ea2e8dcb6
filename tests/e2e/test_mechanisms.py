"""The bench of mechanisms: every variant has a row, a row is its config, records grow, pages say what records say."""

import numpy as np
import pytest

from scripts.mechanism_bench.guide import render_guide
from scripts.mechanism_bench.measure import seed_scores, with_entry
from scripts.mechanism_bench.moves import errors_by_move, measure_moves
from scripts.mechanism_bench.pages import render_page
from scripts.mechanism_bench.plan import (
    AXES,
    BASELINE_ROW,
    CAPTIONS,
    CHOICES,
    FORMER_NAMES,
    MULTI30K,
    NOT_IN_BENCH,
    PICTURES,
    QUESTIONS,
    REASONS,
    WITH_OPTIONS,
    Row,
    all_rows,
    every_mechanism,
    explanation,
    introduction,
    parts_of_baseline,
    question,
)
from scripts.mechanism_bench.runs import Training, find_trained
from scripts.mechanism_bench.summary import summaries
from seq2seq_attn.commands.evaluate import evaluate
from seq2seq_attn.commands.train_runs import different_settings
from seq2seq_attn.config import load_config, packaged_config_names
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.evaluation.attention_scores import GoldAttention
from seq2seq_attn.model.build import build_model
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.text.links import parse_pharaoh
from tests.evaluation_requests import make_request
from tests.toy_run import make_toy_run, toy_config

EVERY = every_mechanism()
SPEED = {
    "ratio": 0.5,
    "low": 0.4,
    "high": 0.6,
    "precision": "bf16",
    "turns": 9,
    "environment": {"device_name": "a CPU"},
}


def entry(seed, bleu, **changes):
    return {
        "seed": seed,
        "bleu": bleu,
        "low": bleu - 1,
        "high": bleu + 1,
        "num_pairs": 9,
        "signature": "tok:13a",
        "by_length": [{"label": "up to 7", "num_pairs": 4, "bleu": bleu + 1}],
        "error_rates": {"-1": 0.9, "0": 0.4, "1": 0.3},
        "moves": {"next": {"num_words": 60, "error_rate": 0.1}, "jump": {"num_words": 40, "error_rate": 0.7}},
        "entropy": 0.5,
        "dropped": 0.1,
        "repeated": 0.2,
        "search": {"beam_size": 5},
        "validation_bleu": 80.0,
        "validation_perplexity": 2.5,
        "parameters": 1234,
        "precision": "fp32",
        "updates": 10,
        "minutes": 1.5,
        "commit": "abc",
        "hardware": "a processor",
        "torch": "2",
        "trained_at": f"day {seed}",
        **changes,
    }


def record(row, *captions, **more):
    return {"command": row.command, "captions": list(captions), "multi30k": [], **more}


def page(**records):
    rows = {row.stem: row for row in all_rows()}
    return summaries({stem.replace("__", "-"): make(rows[stem.replace("__", "-")]) for stem, make in records.items()})


def test_every_config_of_every_axis_is_in_the_bench():
    overlays = {name for name in packaged_config_names() if name.startswith(tuple(f"{axis}/" for axis in AXES))}
    assert {row.overlay for row in EVERY} == overlays - set(FORMER_NAMES)
    assert len({row.stem for row in EVERY}) == len(EVERY)
    assert {*QUESTIONS, *REASONS, *(name for _, names, _ in CHOICES for name in names)} <= {row.name for row in EVERY}


@pytest.mark.parametrize("row", EVERY, ids=lambda row: row.name)
def test_a_row_has_a_file_that_introduces_it(row):
    assert row.source_path.is_file()
    assert introduction(row)
    assert question(row).endswith((".", "?"))
    assert "  " not in introduction(row)


def test_the_explanation_is_the_docstring_after_its_first_paragraph():
    formula, defined = explanation(BASELINE_ROW)
    assert formula == "```text\ne_ij = v_a . tanh(W_a s_{i-1} + U_a h_j + b)\n```"
    assert defined.startswith("s_{i-1} is the query, h_j the encoder's value")


def test_formulas_that_follow_each_other_are_one_block():
    formula, defined = explanation(Row("attention/coverage"))
    assert "\n\nneural (3.1.2)" in formula
    assert defined.startswith("C is 0 at first")


def test_the_explanation_says_what_differs_from_the_paper():
    assert any("The paper also divides L_2 by its norm" in text for text in explanation(Row("attention/convolutional")))


def test_formulas_between_paragraphs_stay_in_place():
    texts = list(explanation(Row("attention/hard")))
    drawn = next(index for index, text in enumerate(texts) if text.startswith("argmax_j (e_ij"))
    assert texts[drawn - 1].startswith("```text\ny_i = ")


@pytest.mark.parametrize("row", EVERY, ids=lambda row: row.name)
def test_the_explanation_leaves_out_shapes_and_measurements(row):
    assert not any(text.startswith(("Shapes", "In our measurements")) for text in explanation(row))


def test_what_cannot_translate_is_explained_but_not_trained():
    assert "output/pointer" not in {row.name for row in all_rows()}
    assert f"{NOT_IN_BENCH['output/pointer']} File: [`pointer.py`]" in render_guide({})


def test_the_baseline_is_the_config_itself():
    assert not different_settings(Training(BASELINE_ROW, 1).config, load_config([CAPTIONS]))


@pytest.mark.parametrize("row", parts_of_baseline(), ids=lambda row: row.name)
def test_the_parts_of_the_baseline_change_nothing(row):
    sizes = {"num_source_ids": 50, "num_target_ids": 40}
    own, base = (
        build_model(load_config(names).model, **sizes).state_dict() for names in ([CAPTIONS, row.overlay], [CAPTIONS])
    )
    assert {name: tensor.shape for name, tensor in own.items()} == {name: tensor.shape for name, tensor in base.items()}


@pytest.mark.parametrize("base", [CAPTIONS, MULTI30K])
def test_a_run_is_trained_as_its_row_says(base):
    for row in (Row("attention/dot"), *WITH_OPTIONS):
        training = Training(row, 2, base)
        given = training.planned.arguments
        sources, settings = (
            [value for option, value in zip(given[::2], given[1::2], strict=True) if option == one]
            for one in ("-c", "--set")
        )
        assert load_config(sources, settings) == training.config
        assert training.config.seed == 2


def finished_run(path, sources, settings=()):
    run = RunDir.create(path)
    run.save_config(load_config(sources, ["train.num_threads=1", *settings]))
    run.model_path.write_bytes(b"")
    run.mark_finished()
    return run


def test_a_run_trained_by_hand_is_known_by_its_settings(tmp_path):
    finished_run(tmp_path / "a", [CAPTIONS, "attention/dot"], ["seed=3", "search.max_length_ratio=1.5"])
    finished_run(tmp_path / "b", [CAPTIONS, "attention/local"], ["model.attention.options.window=monotonic"])
    finished_run(tmp_path / "c", [MULTI30K], ["train.precision=bf16"])
    finished_run(tmp_path / "other", [CAPTIONS], ["model.hidden_size=99"])
    finished_run(tmp_path / "unfinished", [CAPTIONS]).mark_unfinished()
    (tmp_path / "no-run").mkdir()
    rows = (BASELINE_ROW, Row("attention/dot"), *WITH_OPTIONS)
    found = [(one.row.name, one.seed, one.base, one.run.path.name) for one in find_trained(tmp_path, rows)]
    assert found == [
        ("attention/dot", 3, CAPTIONS, "a"),
        ("attention/local-monotonic", 1, CAPTIONS, "b"),
        ("attention/additive", 1, MULTI30K, "c"),
    ]


def test_a_record_grows_by_seeds_and_replaces_those_trained_again():
    entries = with_entry(with_entry([], entry(2, 90.0)), entry(1, 91.0))
    assert [one["seed"] for one in entries] == [1, 2]
    assert [one["bleu"] for one in with_entry(entries, entry(2, 95.0))] == [91.0, 95.0]


def test_the_scores_of_a_run_are_those_of_its_report(tmp_path):
    sizes = {"train": 30, "valid": 5, "test": 12}
    config = toy_config(tokenizer="spacy", corpus="captions", data_dir=str(tmp_path), limit=sizes)
    make_toy_run(tmp_path / "run", config)
    prepare_corpus(config)
    report = evaluate(make_request([tmp_path / "run"], measures=("bleu",), json=tmp_path / "report.json"))
    scores = seed_scores(report.data)
    [test] = report.sets
    assert scores["bleu"] == round(test.scores["bleu"][0].interval.value, 2)
    assert scores["num_pairs"] == sum(bucket["num_pairs"] for bucket in scores["by_length"]) == 12
    [attention] = test.attention.overall
    assert scores["error_rates"]["1"] == round(attention.gold[1].error_rate, 4)
    assert scores["entropy"] == round(attention.attention.entropy, 4)
    moves = measure_moves(RunDir(tmp_path / "run"))
    assert set(moves) == {"next", "jump"}
    lines = prepare_corpus(config).links("test")
    num_linked = sum(len({target for _, target in parse_pharaoh(line)}) - 1 for line in lines)
    assert sum(one["num_words"] for one in moves.values()) == num_linked


def test_errors_are_counted_by_the_move_to_each_word():
    weights = np.eye(4)[[0, 1, 3, 2]]  # the largest weights of four target words: source words 0, 1, 3 and 2
    links = [(0, 0), (1, 1), (3, 2), (1, 3), (3, 3)]
    unlinked = [(2, 0), (3, 2)]
    found = errors_by_move(GoldAttention([weights, weights], [links, unlinked]))
    # first pair: 0 to 1 (right), 1 to 3 (right), 3 to 1 (wrong); second pair, past a word: 2 to 3 (right)
    assert found == {"next": {"num_words": 2, "error_rate": 0.0}, "jump": {"num_words": 2, "error_rate": 0.5}}


def test_the_table_has_means_and_spreads_over_seeds():
    text = render_page(
        page(
            attention__additive=lambda row: record(row, entry(1, 90.0), entry(2, 92.0)),
            attention__dot=lambda row: record(row, entry(1, 89.5), speed=SPEED),
        )
    )
    assert (
        "| `attention/additive` | 1,234 | 1 | 91.0 ±1.4 | 2 | 40.0 % | 30.0 % (+1) | 10.0 % | 70.0 % | 0.50 |" in text
    )
    assert "It was measured in 9 turns on a CPU, in bf16, though" in text
    assert "| `attention/dot` | 1,234 | 0.50 [0.40, 0.60] | 89.5 [88.5, 90.5] | 1 |" in text
    assert "| `attention/additive` | 92.0 |" in text
    assert "\nNo row.\n" in text
    assert "Not trained yet: `attention/additive-160`" in text


def test_the_pages_show_bleu_on_multi30k():
    found = page(
        attention__additive=lambda row: record(row, entry(1, 90.0), multi30k=[entry(1, 0.0, validation_bleu=34.25)]),
        attention__dot=lambda row: record(row, entry(1, 89.5)),
    )
    text = render_page(found)
    assert "| 10.0 % | 20.0 % | 34.2 |\n" in text
    assert "| `attention/additive` | 1 | 1.5 | 34.25 | 2.5 | 1234 | 10 | fp32 | abc | a processor |" in text
    guide = render_guide(found)
    assert "| 90.0 (1 seed) | 34.2 |\n" in guide
    assert "Measured: 90.0 BLEU, 1 seed; 34.2 on Multi30k; alignment error rate" in guide


def test_a_row_far_below_the_baseline_has_a_reason():
    text = render_page(
        page(
            attention__additive=lambda row: record(row, entry(1, 90.0)),
            attention__monotonic=lambda row: record(row, entry(1, 80.0)),
            attention__multi_head=lambda row: record(row, entry(1, 85.0)),
            attention__hard=lambda row: record(row, entry(1, 88.1)),
        )
    )
    assert f"- `attention/monotonic`, 10.0 below: {REASONS['attention/monotonic']}.\n" in text
    assert "- `attention/multi_head`, 5.0 below: the cause is not known.\n" in text
    assert "`attention/hard`, " not in text


def test_a_record_of_other_settings_is_not_shown():
    assert page(attention__dot=lambda row: {**record(row, entry(1, 90.0)), "command": "another"}) == {}


def test_attention_without_source_words_has_empty_cells():
    nothing = entry(1, 20.0, error_rates={}, moves=None, entropy=None, dropped=None, repeated=None)
    text = render_page(page(attention__fixed=lambda row: record(row, nothing)))
    assert "| `attention/fixed` | 1,234 |  | 20.0 [19.0, 21.0] | 1 |  |  |  |  |  |  |  |  |" in text


def test_the_guide_says_what_was_measured():
    text = render_guide(
        page(
            attention__additive=lambda row: record(row, entry(1, 90.0)),
            attention__dot=lambda row: record(row, entry(1, 89.0), speed=SPEED),
        )
    )
    assert (
        "Measured: 89.0 BLEU (`attention/additive`: 90.0), 1 seed; alignment error rate 40.0 %; "
        "entropy 0.50 nats; training speed 0.50 of `attention/additive`'s." in text
    )
    assert "Not measured yet; `scripts/mechanisms --rows attention/hard` trains it." in text
    assert "score(h_t, h_s) = h_t . h_s" in text


def test_figures_stay_beside_their_row_where_another_has_none():
    _, names, reason = CHOICES[1]
    last = {names[-1].replace("/", "__"): lambda row: record(row, entry(1, 90.0))}
    gap = "<br>" * (len(names) - 1)
    assert f" | {gap}90.0 (1 seed) | {gap} | {gap}40.0 % | {reason} |" in render_guide(page(**last))


def test_pictures_are_small_and_belong_to_a_row():
    for path in PICTURES.glob("*"):
        assert path.stem in {row.stem for row in all_rows()}
        assert path.stat().st_size <= 40_000
