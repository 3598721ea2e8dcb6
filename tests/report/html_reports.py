"""Reports with attention to look at: many sentences, two runs, weights as a trained model gives
them."""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from seq2seq_attn.evaluation.names import named_arms
from seq2seq_attn.evaluation.scoring import Settings, score_sets
from seq2seq_attn.evaluation.test_sets import EvaluationSet
from seq2seq_attn.evaluation.translations import LineCounts, SetTranslations
from seq2seq_attn.metrics.attention import AttentionStatistics, overlap_counts
from seq2seq_attn.metrics.significance import Resampling
from seq2seq_attn.report.html import html_report
from seq2seq_attn.report.pages import Report
from seq2seq_attn.run.history import Validation
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.translate.attention_map import AttentionMap, PackedMap, pack_map
from tests.metrics.corpora import make_hypotheses

QUICK = Resampling(num_resamples=50, num_trials=50)
NO_MAP = "its attention does not look at source positions"
GERMAN = (
    "ein eine der kleine große Hund Mann Frau Mädchen Straße läuft über die grüne Wiese und "
    "springt in das kalte Wasser während Fußballspieler auf einer Bank vor dem Gebäude sitzen"
).split()
ENGLISH = (
    "a an the little big dog man woman girl street runs across the green meadow and jumps into the "
    "cold water while football players on a bench in front of the building sit"
).split()


def make_sentences(words: list[str], num_sentences: int, seed: int) -> list[str]:
    """Captions about as long as Multi30k's: 13 words on average, some of 30 and more."""
    draw = random.Random(seed)
    lengths = [min(40, max(4, round(draw.lognormvariate(2.5, 0.4)))) for _ in range(num_sentences)]
    return [" ".join(draw.choices(words, k=length)).capitalize() + "." for length in lengths]


def trained_map(source: str, hypothesis: str, draw: np.random.Generator) -> PackedMap:
    """Mostly diagonal, with the thin tail that a softmax leaves everywhere."""
    source_tokens, target_tokens = [*source.split(), "<eos>"], [*hypothesis.split(), "<eos>"]
    num_target, num_source = len(target_tokens), len(source_tokens)
    centres_T1 = np.linspace(0, num_source - 1, num_target)[:, None] + draw.normal(
        0, 0.6, (num_target, 1)
    )
    scores_TS = (
        5
        - np.abs(np.arange(num_source) - centres_T1) * 3
        + draw.normal(0, 1.2, (num_target, num_source))
    )
    weights_TS = np.exp(np.maximum(scores_TS, -6))
    return pack_map(
        AttentionMap(
            source_tokens, target_tokens, weights_TS / weights_TS.sum(axis=1, keepdims=True)
        )
    )


def made_up_analysis(
    one: EvaluationSet, lines: Sequence[str], draw: np.random.Generator | None
) -> AttentionStatistics:
    """Attention that is mostly right, against links along the diagonal; no draw: a run without
    attention."""
    overlap_N4 = np.array(
        [overlap_counts(*map(str.split, pair)) for pair in zip(lines, one.references, strict=True)]
    )
    if draw is None:
        return AttentionStatistics(overlap_N4, np.zeros((len(lines), 5)))
    shapes = [
        (len(target.split()), len(source.split()))
        for source, target in zip(one.source, one.references, strict=True)
    ]
    weights = [draw.dirichlet(np.ones(num_source), num_target) for num_target, num_source in shapes]
    links = []
    for weights_TS in weights:
        diagonal = np.arange(len(weights_TS)) * weights_TS.shape[1] // len(weights_TS)
        weights_TS[np.arange(len(weights_TS)), diagonal] += draw.choice(
            [0.0, 2.0], len(weights_TS), p=[0.3, 0.7]
        )
        weights_TS /= weights_TS.sum(axis=1, keepdims=True)
        links.append([(int(source), target) for target, source in enumerate(diagonal)])
    counts_N5 = draw.uniform(size=(len(weights), 5)) * [20.0, 0.0, 2.0, 1.0, 0.0] + [
        0.0,
        13.0,
        0.0,
        0.0,
        12.0,
    ]
    return AttentionStatistics(overlap_N4, counts_N5, [*zip(weights, links, strict=True)])


def made_up_curve(count: int = 0, *, speed: float = 1.0) -> list[Validation]:
    """As validation might find it, every 100 updates."""
    return [
        (100 * n, 40 * n / (n + 3 / speed), 2 + 300 / (1 + speed * n)) for n in range(1, count + 1)
    ]


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
    """The page and the report.

    Args:
        texts: replaces source, reference and hypotheses of some sentences of the first set.
        without_maps: the runs that have no attention.
        arms: the name of each run's arm.
        analyzed: with attention held against gold links.
        unknown: positions of source tokens that no run knows, in sentences of the first set.
        validations: how many each run had.
    """
    texts, unknown, draw = texts or {}, unknown or {}, np.random.default_rng(1)
    test_sets = []
    for seed, name in enumerate(sets):
        sides = [make_sentences(words, num_sentences, seed=seed) for words in (GERMAN, ENGLISH)]
        test_sets.append(
            EvaluationSet(name, *(_replaced(lines, {} if seed else texts) for lines in sides))
        )
    translations, histories, analyses = [], [], []
    for run, name in enumerate(names):
        made = []
        for index, one in enumerate(test_sets):
            lines = make_hypotheses(one.references, seed=10 + run, noise=0.15 + 0.2 * run)
            lines = _replaced(lines, {} if index else texts)
            maps = [trained_map(*pair, draw) for pair in zip(one.source, lines, strict=True)]
            unknown_tokens: list[tuple[tuple[str, ...], tuple[int, ...]] | None] = [
                None
            ] * num_sentences
            for row, positions in () if index else unknown.items():
                unknown_tokens[row] = (maps[row].source_tokens, positions)
                maps[row] = replace(maps[row], unknown=positions)
            counts, kept = LineCounts(3 * run, len(unknown)), () if run in without_maps else maps
            made.append(SetTranslations(lines, counts, kept, unknown_tokens, NO_MAP))
        config = {
            "seed": 1,
            "name": name,
            "model": {"attention": {"name": name}, "hidden_size": 256},
        }
        histories.append((config, made_up_curve(*validations[run : run + 1], speed=1 + run)))
        translations.append(made)
        run_draw = None if run in without_maps else draw
        analyses.append(
            [
                made_up_analysis(one, part.lines, run_draw)
                for one, part in zip(test_sets, made, strict=True)
            ]
        )
    scored = score_sets(
        test_sets,
        dict(zip(names, translations, strict=True)),
        settings=Settings(by_length="9,12,15,18,21", resampling=QUICK),
        arms=named_arms(arms),
        analyses=analyses if analyzed else (),
    )
    descriptions = [
        {"name": name, "path": f"runs/{name}", "seed": 1, "config": name} for name in names
    ]
    report = Report(scored, descriptions, describe_environment([], "cpu"))
    return html_report(report, test_sets, translations, histories), report


def _replaced(lines: list[str], texts: dict[int, str]) -> list[str]:
    return [texts.get(row, line) for row, line in enumerate(lines)]
