"""Reports as self-contained HTML files, without network access.

Texts and numbers travel as JSON inside the page and reach the screen as text nodes only, so that a
sentence that looks like markup stays a sentence. The page's own style and script (`web/`) are
allowed by their hashes; the browser refuses everything else.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seq2seq_attn.evaluation.scoring import flatten
from seq2seq_attn.evaluation.systems import Validation
from seq2seq_attn.evaluation.test_sets import EvaluationSet
from seq2seq_attn.evaluation.translations import SetTranslations
from seq2seq_attn.files import finite
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.report.pages import Report
from seq2seq_attn.report.tables import ATTENTION_NOTE, GOLD_NOTE
from seq2seq_attn.text.normalize import visible
from seq2seq_attn.translate.attention_map import LEVELS, MAP_NOTE, PackedMap

MAP_CHARACTERS = 1_000
"""average budget of an attention map; 1,000 sentences of two runs then stay under 3 MB with their
texts"""
FLOORS = (1, 3, 8, 20, 50)
"""smallest weights that are kept, in 255ths: the first of these with which the maps fit is taken"""
MAX_VALIDATIONS = 200
"""of a learning curve; longer ones are thinned evenly"""
MIN_TOKENS, MAX_TOKENS = 8, 16
"""of source and translation of the example, without <eos>: long enough to show something, short
enough to be read at a glance"""
_EXACT, _NEAR = 100.0, 5.0
"""chrF: where no translation is exact, those this close to the best one are as good"""
_DISTANCE = 3
"""a target word is reordered if an earlier one attends to a source position at least this far to
the right of its own"""

WEB = Path(__file__).parent / "web"
_STYLES = ("page.css", "tables.css", "sentences.css", "maps.css")
SCRIPTS = (
    "dom.js",
    "tables.js",
    "words.js",
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
"""declarations, and at the end what draws the page"""


def html_report(
    report: Report,
    sets: Sequence[EvaluationSet],
    translations: Sequence[Sequence[SetTranslations]],
    histories: Sequence[tuple[Mapping[str, Any], Sequence[Validation]]],
) -> str:
    """The report as a page: the finding, a map, scores, curves, sentences with their attention,
    configurations.

    Args:
        sets: the sets that were scored, without the pooled one.
        translations: of each set, by each of the report's runs.
        histories: the configuration of each run and its validations, by update; empty: not shown.
    """
    tokens: dict[tuple[str, ...], int] = {}
    maps, floor = _fit(
        [
            flatten(made.maps or [None] * len(made.lines) for made in run_sets)
            for run_sets in translations
        ]
    )
    chrf = _sentence_chrf(sets, translations)
    example = choose_example(maps, chrf)
    runs = []
    for name, run_sets, (config, validations) in zip(
        report.sets[0].runs, translations, histories, strict=True
    ):
        no_map = ", or ".join(dict.fromkeys(made.no_map for made in run_sets))
        runs.append(
            {"name": name, "config": config, "no_map": no_map, "validations": _thinned(validations)}
        )
    payload = {
        "kind": "evaluation",
        "report": report.data,
        "titles": {name: metric.title for name, metric in METRICS.items()},
        "unit": report.unit,
        "legend": report.legend,
        "map_note": MAP_NOTE,
        "attention_notes": [ATTENTION_NOTE, GOLD_NOTE],
        "runs": runs,
        "floor": floor,
        "example": example and {"run": example[0], "row": example[1]},
        "sentences": {
            "sets": [
                {
                    "name": visible(one.name),
                    "num_pairs": len(one.references),
                    "num_concatenated": one.num_concatenated,
                }
                for one in sets
            ],
            "source": flatten(test_set.source for test_set in sets),
            "reference": flatten(test_set.references for test_set in sets),
            "length": flatten(lengths.tolist() for lengths in report.scored.lengths[: len(sets)]),
            "hypotheses": [flatten(made.lines for made in run_sets) for run_sets in translations],
            "chrf": chrf,
            "unknown": [_unknown_tokens(run_sets, tokens) for run_sets in translations],
            "maps": [[_map_values(packed, tokens) for packed in run_maps] for run_maps in maps],
        },
        "tokens": list(tokens),
    }
    return fill_page(
        WEB, "Evaluation: " + ", ".join(report.sets[0].runs), _STYLES, SCRIPTS, payload
    )


def html_maps(lines: Sequence[tuple[int, str, PackedMap]]) -> str:
    """Translated lines with their attention as a page: of each its number in the input, from 1, its
    text and map."""
    tokens: dict[tuple[str, ...], int] = {}
    [maps], floor = _fit([[packed for _, _, packed in lines]])
    payload = {
        "kind": "maps",
        "title": "Attention",
        "map_note": MAP_NOTE,
        "floor": floor,
        "lines": [
            {"number": number, "hypothesis": hypothesis, "map": _map_values(packed, tokens)}
            for (number, hypothesis, _), packed in zip(lines, maps, strict=True)
        ],
        "tokens": list(tokens),
    }
    return fill_page(WEB, "Attention", _STYLES, SCRIPTS, payload)


def choose_example(
    maps: Sequence[Sequence[PackedMap | None]], chrf: Sequence[Sequence[float]]
) -> tuple[int, int] | None:
    """A run and the row of a sentence among those of all sets: among the sentences of middle length
    that the first run with attention translates best, without unknown words, the one with the most
    reordered words; one that every other run gets wrong, if there is any. None if every sentence
    with a map has unknown words.

    Args:
        maps: of each run, of each sentence.
        chrf: the same; 100 is an exact translation.
    """
    for run, (run_maps, scores) in enumerate(zip(maps, chrf, strict=True)):
        known = {
            row: packed
            for row, packed in enumerate(run_maps)
            if packed is not None and not packed.unknown
        }
        rows = [
            row
            for row, packed in known.items()
            if all(
                MIN_TOKENS < len(side) <= MAX_TOKENS + 1
                for side in (packed.source_tokens, packed.target_tokens)
            )
        ] or list(known)
        if rows:
            best = max(scores[row] for row in rows)
            good = [
                row for row in rows if scores[row] >= (best if best >= _EXACT else best - _NEAR)
            ]
            others = [other for number, other in enumerate(chrf) if number != run]
            alone = [
                row
                for row in good
                if all(other[row] < min(_EXACT, scores[row]) for other in others)
            ]
            return run, max(alone or good, key=lambda row: (*_shape(known[row]), -row))
    return None


def _shape(packed: PackedMap) -> tuple[int, float]:
    """The number of reordered target words, and the mean of the largest weights of all rows."""
    levels_TS = packed.levels_TS()
    largest_T = levels_TS.max(axis=1)
    looked_at = levels_TS.argmax(axis=1)[largest_T > LEVELS / 2]
    furthest = np.maximum.accumulate(looked_at)
    return int(np.sum(furthest - looked_at >= _DISTANCE)), float(largest_T.mean())


def _map_values(packed: PackedMap | None, tokens: dict[tuple[str, ...], int]) -> list[Any] | None:
    """A map as the page wants it: numbers of its source and target tokens, its weights, and the
    positions of unknown source tokens. `tokens`: the lists of tokens with their numbers; runs that
    share a tokenizer share source tokens."""
    if packed is None:
        return None
    source, target = (
        tokens.setdefault(own, len(tokens)) for own in (packed.source_tokens, packed.target_tokens)
    )
    return [source, target, base64.b64encode(packed.packed).decode("ascii"), list(packed.unknown)]


def _fit(maps: list[list[PackedMap | None]]) -> tuple[list[list[PackedMap | None]], int]:
    """Apply the lowest of `FLOORS` with which the maps fit. Returns the maps, with smaller weights
    set to 0, and the floor. If even the highest does not suffice, the last sentences get no map."""
    budget = MAP_CHARACTERS * max(50, sum(map(len, maps)))
    for floor in FLOORS:
        if floor > 1:
            maps = [
                [packed and packed.without_below(floor) for packed in run_maps] for run_maps in maps
            ]
        if sum(map(_size, flatten(maps))) <= budget:
            return maps, floor
    fitting: list[list[PackedMap | None]] = []
    for run_maps in maps:
        sizes = np.cumsum([*map(_size, run_maps)])
        fits = sizes <= budget // len(maps)
        fitting.append(
            [packed if is_in else None for packed, is_in in zip(run_maps, fits, strict=True)]
        )
    return fitting, FLOORS[-1]


def _size(packed: PackedMap | None) -> int:
    """The characters of a map in base 64."""
    return 0 if packed is None else len(packed.packed) * 4 // 3


def _unknown_tokens(
    translations: Sequence[SetTranslations], tokens: dict[tuple[str, ...], int]
) -> dict[int, list[Any]]:
    """For each sentence with tokens that the run does not know: the number of its tokens, and their
    positions."""
    unknown = enumerate(flatten(made.unknown or [None] * len(made.lines) for made in translations))
    return {
        row: [tokens.setdefault(line[0], len(tokens)), list(line[1])]
        for row, line in unknown
        if line is not None
    }


def _thinned(validations: Sequence[Validation]) -> list[list[int | float | None]]:
    """Update, BLEU and perplexity of each, the first and the last always among them."""
    chosen = (
        np.linspace(0, len(validations) - 1, min(MAX_VALIDATIONS, len(validations)))
        .round()
        .astype(int)
    )
    rows: list[list[int | float | None]] = []
    for update, *scores in (validations[index] for index in chosen):
        rows.append(
            [update, *(None if score is None else float(f"{score:.4g}") for score in scores)]
        )
    return rows


def _sentence_chrf(
    sets: Sequence[EvaluationSet], translations: Sequence[Sequence[SetTranslations]]
) -> list[list[float]]:
    """The chrF of each sentence under each run, equal to sacreBLEU's `sentence_chrf`."""
    measures = [
        Measure("chrf", test_set.references, *test_set.other_references) for test_set in sets
    ]
    scores: list[list[float]] = []
    for run_sets in translations:
        scores.append([])
        for measure, made in zip(measures, run_sets, strict=True):
            statistics = measure.statistics(made.lines)
            scores[-1] += [
                round(chrf, 2) for chrf in statistics.score_sums(statistics.rows_ND).tolist()
            ]
    return scores


def fill_page(
    folder: Path,
    title: str,
    styles: Sequence[str],
    scripts: Sequence[str],
    payload: Mapping[str, Any],
) -> str:
    """A folder's `page.html` with these of its files, which its content security policy allows
    alone. The scripts share one scope, out of reach of anything else."""
    style, script = (
        "\n".join((folder / name).read_text(encoding="utf-8") for name in each)
        for each in (styles, scripts)
    )
    script = f"'use strict';\n(() => {{\n{script}}})();\n"
    parts = {
        "@STYLE_HASH@": _hash(style),
        "@SCRIPT_HASH@": _hash(script),
        "@TITLE@": html.escape(title.encode("utf-8", errors="replace").decode("utf-8")),
        "@STYLE@": style,
        "@SCRIPT@": script,
        "@DATA@": embedded_json(payload),
    }
    template = (folder / "page.html").read_text(encoding="utf-8")
    return re.sub("@[A-Z_]+@", lambda mark: parts[mark[0]], template)


def embedded_json(value: Any) -> str:
    """JSON that can stand inside a <script> element whatever its strings hold; infinite and missing
    numbers as null."""
    text = json.dumps(finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _hash(text: str) -> str:
    """As a content security policy names an inline element."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode(
        "ascii"
    )
