"""Reports with attention to look at: many sentences, two runs, weights as a trained model gives them."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from seq2seq_attn.evaluation.names import named_arms
from seq2seq_attn.evaluation.scores import Resampling
from seq2seq_attn.evaluation.scoring import Settings, score_sets
from seq2seq_attn.evaluation.systems import Validation
from seq2seq_attn.evaluation.test_sets import EvaluationSet
from seq2seq_attn.evaluation.translations import LineCounts, SetTranslations, SystemTexts, UnknownTokens
from seq2seq_attn.metrics.alignment import GoldAttention
from seq2seq_attn.metrics.attention_stats import AttentionStatistics, overlap_counts
from seq2seq_attn.report.html import html_report
from seq2seq_attn.report.pages import Report
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.translate.attention_map import AttentionMap
from seq2seq_attn.translate.packed_map import PackedMap, pack_map
from tests.metrics.corpora import make_hypotheses

QUICK = Resampling(num_resamples=50, num_trials=50)
GERMAN = (
    "ein eine der kleine große Hund Mann Frau Mädchen Straße läuft über die grüne Wiese und springt in das kalte "
    "Wasser während Fußballspieler auf einer Bank vor dem Gebäude sitzen"
).split()
ENGLISH = (
    "a an the little big dog man woman girl street runs across the green meadow and jumps into the cold water while "
    "football players on a bench in front of the building sit"
).split()


def sentences(words: list[str], num_sentences: int, seed: int) -> list[str]:
    """Captions about as long as Multi30k's: 13 words on average, some of 30 and more."""
    draw = random.Random(seed)
    lengths = [min(40, max(4, round(draw.lognormvariate(2.5, 0.4)))) for _ in range(num_sentences)]
    return [" ".join(draw.choices(words, k=length)).capitalize() + "." for length in lengths]


def trained_map(source: str, hypothesis: str, draw: np.random.Generator) -> PackedMap:
    """Mostly diagonal, with the thin tail that a softmax leaves everywhere."""
    source_tokens, target_tokens = [*source.split(), "<eos>"], [*hypothesis.split(), "<eos>"]
    num_target, num_source = len(target_tokens), len(source_tokens)
    centres_T1 = np.linspace(0, num_source - 1, num_target)[:, None] + draw.normal(0, 0.6, (num_target, 1))
    scores_TS = 5 - np.abs(np.arange(num_source) - centres_T1) * 3 + draw.normal(0, 1.2, (num_target, num_source))
    weights_TS = np.exp(np.maximum(scores_TS, -6))
    return pack_map(AttentionMap(source_tokens, target_tokens, weights_TS / weights_TS.sum(axis=1, keepdims=True)))


def made_up_analysis(one: EvaluationSet, lines: list[str], draw: np.random.Generator | None) -> AttentionStatistics:
    """Attention that is mostly right, against links along the diagonal; no draw: a run without attention."""
    overlap_N4 = np.array([overlap_counts(*map(str.split, pair)) for pair in zip(lines, one.references, strict=True)])
    if draw is None:
        return AttentionStatistics(overlap_N4)
    shapes = [
        (len(target.split()), len(source.split())) for source, target in zip(one.source, one.references, strict=True)
    ]
    weights = [draw.dirichlet(np.ones(num_source), num_target) for num_target, num_source in shapes]
    links = []
    for weights_TS in weights:
        diagonal = np.arange(len(weights_TS)) * weights_TS.shape[1] // len(weights_TS)
        weights_TS[np.arange(len(weights_TS)), diagonal] += draw.choice([0.0, 2.0], len(weights_TS), p=[0.3, 0.7])
        weights_TS /= weights_TS.sum(axis=1, keepdims=True)
        links.append([(int(source), target) for target, source in enumerate(diagonal)])
    counts_N5 = draw.uniform(size=(len(weights), 5)) * [20.0, 0.0, 2.0, 1.0, 0.0] + [0.0, 13.0, 0.0, 0.0, 12.0]
    return AttentionStatistics(overlap_N4, counts_N5, GoldAttention(weights, links))


def made_up_curve(count: int = 0, *, speed: float = 1.0) -> list[Validation]:
    """As validation might find it, every 100 updates."""
    return [Validation(100 * n, 40 * n / (n + 3 / speed), 2 + 300 / (1 + speed * n)) for n in range(1, count + 1)]


def make_report(
    num_sentences: int = 120,
    names: tuple[str, ...] = ("additive", "none"),
    *,
    sets: tuple[str, ...] = ("flickr",),
    texts: dict[int, str] | None = None,
    without_maps: tuple[int, ...] = (1,),
    arms: tuple[str, ...] = (),
    analyzed: bool = False,
    unknown: dict[int, tuple[int, ...]] | None = None,
    validations: tuple[int, ...] = (),
) -> tuple[str, Report]:
    """The page and the report. `texts` replaces source, reference and hypotheses of some sentences of the first set;
    `without_maps` are the places of runs that have no attention; `arms` names the arm of each run; `analyzed`: with
    attention held against gold links; `unknown`: positions of source tokens that no run knows, in sentences of the
    first set; `validations`: how many each run had."""
    of_sets, hypotheses = [], {name: [] for name in names}
    for place, name in enumerate(sets):
        source = sentences(GERMAN, num_sentences, seed=place)
        references = sentences(ENGLISH, num_sentences, seed=place)
        outputs = [make_hypotheses(references, seed=10 + i, noise=0.15 + 0.2 * i) for i in range(len(names))]
        for number, text in (texts or {}).items() if place == 0 else ():
            for lines in (source, references, *outputs):
                lines[number] = text
        of_sets.append(EvaluationSet(name, source, references))
        for run, lines in zip(names, outputs, strict=True):
            hypotheses[run].append(lines)
    descriptions = [{"name": name, "path": f"runs/{name}", "seed": 1, "config": name} for name in names]
    settings = Settings(by_length="9,12,15,18,21", resampling=QUICK)
    draw = np.random.default_rng(1)
    analyses = [
        [
            made_up_analysis(one, lines, None if number in without_maps else draw)
            for one, lines in zip(of_sets, made, strict=True)
        ]
        for number, made in enumerate(hypotheses.values())
    ]
    systems = []
    for number, name in enumerate(names):
        maps = [
            [trained_map(*pair, draw) for pair in zip(one.source, lines, strict=True)]
            for one, lines in zip(of_sets, hypotheses[name], strict=True)
        ]
        config = {"seed": 1, "name": name, "model": {"attention": {"name": name}, "hidden_size": 256}}
        no_map = "its attention does not look at source positions"
        counts = LineCounts(3 * number, len(unknown or {}))
        unknown_tokens = [[None] * num_sentences for _ in of_sets]
        for row, positions in (unknown or {}).items():
            tokens = maps[0][row].source_tokens
            unknown_tokens[0][row] = UnknownTokens(tokens, positions)
            maps[0][row] = replace(maps[0][row], unknown=positions)
        curve = made_up_curve(*validations[number : number + 1], speed=1 + number)
        made = [
            SetTranslations(
                lines,
                counts,
                () if number in without_maps else maps[index],
                unknown_tokens[index],
                no_map,
            )
            for index, (one, lines) in enumerate(zip(of_sets, hypotheses[name], strict=True))
        ]
        systems.append(SystemTexts(made, config, curve))
    scored = score_sets(
        of_sets,
        {name: system.translations for name, system in zip(names, systems, strict=True)},
        settings=settings,
        arms=named_arms(arms),
        analyses=analyses if analyzed else (),
    )
    report = Report(scored, descriptions, describe_environment([], "cpu"))
    return html_report(report, of_sets, systems), report
