"""Write evaluations and attention maps as self-contained HTML pages; `template.py` fills them."""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seq2seq_attn.evaluation.scoring import flatten
from seq2seq_attn.evaluation.test_sets import EvaluationSet
from seq2seq_attn.evaluation.translations import SetTranslations
from seq2seq_attn.files import JsonObject
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.report.example import choose_example
from seq2seq_attn.report.pages import Report
from seq2seq_attn.report.tables import ATTENTION_NOTE, GOLD_NOTE
from seq2seq_attn.report.template import fill_page
from seq2seq_attn.run.history import Validation
from seq2seq_attn.text.normalize import visible
from seq2seq_attn.translate.attention_map import MAP_NOTE, PackedMap

Maps = Sequence[PackedMap | None]
"""the attention map of each sentence, None for a sentence without a map"""
TokenLists = dict[tuple[str, ...], int]
"""The index of each distinct list of tokens in the page. Runs with equal tokenizers have equal
lists of source tokens, and the page holds each list once."""
MAP_CHARACTERS = 1_000
"""The average number of characters of an attention map, with which a page with 1,000 sentences and
two runs stays under 3 MB, texts included."""
FLOORS = (1, 3, 8, 20, 50)
"""Candidates for the smallest weight that is kept, in 255ths. The first candidate with which the
maps fit into the page is chosen."""
MAX_VALIDATIONS = 200
"""The most points of a learning curve. A curve with more validations is thinned evenly."""

WEB = Path(__file__).parent / "web"
_STYLES = ("colors.css", "page.css", "tables.css", "sentences.css", "heat.css", "maps.css")
SCRIPTS = (
    "elements.js",
    "dom.js",
    "tables.js",
    "compare.js",
    "words.js",
    "heat.js",
    "map.js",
    "texts.js",
    "dialog.js",
    "example.js",
    "chart.js",
    "scores.js",
    "curves.js",
    "attention.js",
    "sentences.js",
    "setup.js",
    "main.js",
)
"""The scripts in order. All but the last only declare; `main.js` draws the page."""


def html_report(
    report: Report,
    sets: Sequence[EvaluationSet],
    translations: Sequence[Sequence[SetTranslations]],
    histories: Sequence[tuple[Mapping[str, Any], Sequence[Validation]]],
) -> str:
    """Return an HTML page of the report.

    The page shows the conclusion, an example's attention map, scores, learning curves, sentences
    with their attention, and configurations.

    Args:
        sets: The sets that were scored, without the pooled set of all test sets.
        translations: For each run of the report, its translations of each set.
        histories: For each run, the configuration and the validations in the order of updates. Both
            are empty for a system that the page shows without a configuration, such as an ensemble.
    """
    names = report.sets[0].runs
    all_maps = []
    for outputs in translations:
        all_maps.append(flatten(output.maps or [None] * len(output.lines) for output in outputs))
    maps, floor = _fit(all_maps)
    chrf = _sentence_chrf(sets, translations)
    token_lists: TokenLists = {}
    lengths = report.scored.lengths[: len(sets)]
    payload = {
        "kind": "evaluation",
        "report": report.data,
        "titles": {name: metric.title for name, metric in METRICS.items()},
        "about": {name: metric.about for name, metric in METRICS.items()},
        "unit": report.sets[0].unit,
        "legend": report.legend,
        "map_note": MAP_NOTE,
        "attention_notes": [ATTENTION_NOTE, GOLD_NOTE],
        "runs": _describe_runs(names, translations, histories),
        "floor": floor,
        "example": choose_example(maps, chrf),
        "sentences": {
            "sets": [_describe_set(test_set) for test_set in sets],
            "source": flatten(test_set.source for test_set in sets),
            "reference": flatten(test_set.references for test_set in sets),
            "length": flatten(set_lengths.tolist() for set_lengths in lengths),
            "hypotheses": [flatten(output.lines for output in outputs) for outputs in translations],
            "chrf": chrf,
            "unknown": [_unknown_tokens(outputs, token_lists) for outputs in translations],
            "maps": [_map_values(run_maps, token_lists) for run_maps in maps],
        },
        "tokens": list(token_lists),
    }
    return fill_page(WEB, f"Evaluation: {', '.join(names)}", _STYLES, SCRIPTS, payload)


def _describe_runs(
    names: Sequence[str],
    translations: Sequence[Sequence[SetTranslations]],
    histories: Sequence[tuple[Mapping[str, Any], Sequence[Validation]]],
) -> list[JsonObject]:
    """Return the name, the configuration and the validations of each run as JSON values, with the
    reason why lines have no attention maps."""
    runs = []
    for name, outputs, (config, validations) in zip(names, translations, histories, strict=True):
        run = {
            "name": name,
            "config": config,
            "no_map": ", or ".join(dict.fromkeys(output.no_map for output in outputs)),
            "validations": _thin(validations),
        }
        runs.append(run)
    return runs


def html_maps(lines: Sequence[tuple[int, str, PackedMap]]) -> str:
    """Return an HTML page of translated lines with their attention.

    Args:
        lines: For each line, its number in the input (from 1), its translation and its map.
    """
    [maps], floor = _fit([[packed for _, _, packed in lines]])
    token_lists: TokenLists = {}
    rows = []
    for (number, text, _), values in zip(lines, _map_values(maps, token_lists), strict=True):
        rows.append({"number": number, "hypothesis": text, "map": values})
    payload = {
        "kind": "maps",
        "title": "Attention",
        "map_note": MAP_NOTE,
        "floor": floor,
        "lines": rows,
        "tokens": list(token_lists),
    }
    return fill_page(WEB, "Attention", _STYLES, SCRIPTS, payload)


def _describe_set(test_set: EvaluationSet) -> JsonObject:
    """Return the name and the size of a set as plain values for the page."""
    return {
        "name": visible(test_set.name),
        "num_pairs": len(test_set.references),
        "num_concatenated": test_set.num_concatenated,
    }


def _map_values(maps: Maps, token_lists: TokenLists) -> list[list[Any] | None]:
    """Return attention maps as plain values for the page.

    The values of a map are the indices of its source tokens and its target tokens in `token_lists`,
    its weights in base 64, the positions of unknown source tokens, and the scale of the weights if
    this is not 1. New lists of tokens are added to `token_lists`.
    """
    values: list[list[Any] | None] = []
    for packed in maps:
        if packed is None:
            values.append(None)
            continue
        source = token_lists.setdefault(packed.source_tokens, len(token_lists))
        target = token_lists.setdefault(packed.target_tokens, len(token_lists))
        weights = base64.b64encode(packed.packed).decode("ascii")
        value: list[Any] = [source, target, weights, list(packed.unknown)]
        if packed.scale > 1.0:
            value.append(packed.scale)
        values.append(value)
    return values


def _unknown_tokens(
    outputs: Sequence[SetTranslations], token_lists: TokenLists
) -> dict[int, list[Any]]:
    """Return the unknown source tokens of a run by the index of the sentence, for sentences with
    unknown tokens.

    A value has the index of the sentence's source tokens in `token_lists`, and the positions of the
    unknown tokens.
    """
    lines = flatten(output.unknown or [None] * len(output.lines) for output in outputs)
    values = {}
    for row, line in enumerate(lines):
        if line is not None:
            tokens, positions = line
            values[row] = [token_lists.setdefault(tokens, len(token_lists)), list(positions)]
    return values


def _fit(maps: Sequence[Maps]) -> tuple[Sequence[Maps], int]:
    """Set weights below a floor to 0, so that the maps of all runs fit into the page. Return the
    maps and the floor.

    The floor is the lowest value in `FLOORS` with which the maps fit. If the maps do not fit with
    the highest floor, the last sentences lose their maps.
    """
    budget = MAP_CHARACTERS * max(50, sum(len(run_maps) for run_maps in maps))
    for floor in FLOORS:
        if floor > 1:
            maps = [_without_below(run_maps, floor) for run_maps in maps]
        if sum(_size(packed) for packed in flatten(maps)) <= budget:
            return maps, floor
    fitting = []
    for run_maps in maps:
        sizes = np.cumsum([_size(packed) for packed in run_maps])
        num_fitting = int(np.sum(sizes <= budget // len(maps)))
        fitting.append([*run_maps[:num_fitting], *[None] * (len(run_maps) - num_fitting)])
    return fitting, FLOORS[-1]


def _without_below(maps: Maps, floor: int) -> Maps:
    """Set the weights of all maps that are below the floor to 0."""
    return [None if packed is None else packed.without_below(floor) for packed in maps]


def _size(packed: PackedMap | None) -> int:
    """Return the number of characters of a map in base 64."""
    return 0 if packed is None else len(packed.packed) * 4 // 3


def _thin(validations: Sequence[Validation]) -> list[list[int | float | None]]:
    """Return update, BLEU and perplexity of each validation. If there are more than
    `MAX_VALIDATIONS`, return this number of evenly spaced validations, from the first to the
    last."""
    num_kept = min(MAX_VALIDATIONS, len(validations))
    positions = np.linspace(0, len(validations) - 1, num_kept).round().astype(int)
    rows: list[list[int | float | None]] = []
    for position in positions:
        update, *scores = validations[position]
        rounded = [None if score is None else float(f"{score:.4g}") for score in scores]
        rows.append([update, *rounded])
    return rows


def _sentence_chrf(
    sets: Sequence[EvaluationSet], translations: Sequence[Sequence[SetTranslations]]
) -> list[list[float]]:
    """Return the chrF of each run's translation of each sentence, which equals sacreBLEU's
    `sentence_chrf`."""
    measures = [
        Measure("chrf", test_set.references, *test_set.other_references) for test_set in sets
    ]
    scores = []
    for outputs in translations:
        run_scores: list[float] = []
        for measure, output in zip(measures, outputs, strict=True):
            statistics = measure.statistics(output.lines)
            sentence_scores = statistics.score_sums(statistics.rows_ND)
            run_scores += [round(score, 2) for score in sentence_scores.tolist()]
        scores.append(run_scores)
    return scores
