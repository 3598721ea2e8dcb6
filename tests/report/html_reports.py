"""Reports with attention to look at: many sentences, two runs, weights as a trained model gives
them."""

import random
from dataclasses import replace

import numpy as np

from seq2seq_attn.evaluation.names import named_arms
from seq2seq_attn.evaluation.scoring import Settings, score_sets
from seq2seq_attn.evaluation.test_sets import EvaluationSet
from seq2seq_attn.evaluation.translations import LineCounts, SetTranslations
from seq2seq_attn.metrics.attention import AttentionStatistics, GoldPair
from seq2seq_attn.report.html import html_report
from seq2seq_attn.report.pages import Report
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.translate.attention_map import AttentionMap, pack_map
from tests.metrics.corpora import make_hypotheses
from tests.toy_requests import QUICK

NO_MAP = "its attention does not look at source positions"
GERMAN = (
    "ein eine der kleine große Hund Mann Frau Mädchen Straße läuft über die grüne Wiese und "
    "springt in das kalte Wasser während Fußballspieler auf einer Bank vor dem Gebäude sitzen"
)
ENGLISH = (
    "a an the little big dog man woman girl street runs across the green meadow and jumps into the "
    "cold water while football players on a bench in front of the building sit"
)


def make_sentences(words, num_sentences, seed):
    """Captions about as long as Multi30k's: 13 words on average, some of 30 and more."""
    draw = random.Random(seed)
    lines = []
    for _ in range(num_sentences):
        length = min(40, max(4, round(draw.lognormvariate(2.5, 0.4))))
        lines.append(" ".join(draw.choices(words.split(), k=length)).capitalize() + ".")
    return lines


def trained_map(source, hypothesis, draw):
    """Mostly diagonal, with the thin tail that a softmax leaves everywhere."""
    source_tokens = [*source.split(), "<eos>"]
    target_tokens = [*hypothesis.split(), "<eos>"]
    centres_T1 = np.linspace(0, len(source_tokens) - 1, len(target_tokens))[:, None]
    noise_TS = draw.normal(0, 1.2, (len(target_tokens), len(source_tokens)))
    distances_TS = np.abs(np.arange(len(source_tokens)) - centres_T1)
    weights_TS = np.exp(np.maximum(5 - 3 * distances_TS + noise_TS, -6))
    weights_TS /= weights_TS.sum(axis=1, keepdims=True)
    return pack_map(AttentionMap(source_tokens, target_tokens, weights_TS))


def made_up_analysis(num_pairs, *, has_attention):
    """Counts that differ from pair to pair, and attention that misses one of three links."""
    overlap_N4 = np.arange(4 * num_pairs).reshape(-1, 4) % 9 + 1
    if not has_attention:
        return AttentionStatistics(overlap_N4, np.zeros((num_pairs, 5)))
    counts_N5 = np.arange(5.0 * num_pairs).reshape(-1, 5) % 9 + 1
    links = [(0, 0), (1, 1), (2, 2)]
    pair = GoldPair(np.eye(3)[[0, 1, 1]], links, links)
    return AttentionStatistics(overlap_N4, counts_N5, [pair] * num_pairs)


def made_up_curve(num_validations, speed):
    """As validation might find it, every 100 updates."""
    curve = []
    for n in range(1, num_validations + 1):
        curve.append((100 * n, 40 * n / (n + 3 / speed), 2 + 300 / (1 + speed * n)))
    return curve


def make_report(
    num_sentences=120,
    names=("additive", "none"),
    *,
    sets=("flickr",),
    hostile="",
    without_maps=(1,),
    arms=(),
    num_validations=(0, 0, 0, 0),
):
    """The page and the report. Of sentence 5, the runs do not know the first and the third word.

    Args:
        hostile: replaces source, reference and hypotheses of the third sentence of the first set.
        without_maps: the runs that have no attention.
        arms: the name of each run's arm.
        num_validations: of each run.
    """
    draw = np.random.default_rng(1)
    test_sets = []
    for seed, name in enumerate(sets):
        source = make_sentences(GERMAN, num_sentences, seed)
        references = make_sentences(ENGLISH, num_sentences, seed)
        test_sets.append(EvaluationSet(name, source, references))
    if hostile:
        test_sets[0].source[2] = hostile
        test_sets[0].references[2] = hostile
    translations = []
    histories = []
    analyses = []
    for run, name in enumerate(names):
        outputs = []
        for test_set in test_sets:
            lines = make_hypotheses(test_set.references, seed=10 + run, noise=0.15 + 0.2 * run)
            if hostile in test_set.source:
                lines[2] = hostile
            pairs = zip(test_set.source, lines, strict=True)
            maps = [trained_map(source, hypothesis, draw) for source, hypothesis in pairs]
            maps[4] = replace(maps[4], unknown=(0, 2))
            unknown = [None] * num_sentences
            unknown[4] = (maps[4].source_tokens, (0, 2))
            kept = () if run in without_maps else maps
            outputs.append(SetTranslations(lines, LineCounts(3 * run, 1), kept, unknown, NO_MAP))
        translations.append(outputs)
        config = {"seed": 1, "model": {"attention": {"name": name}, "hidden_size": 256}}
        histories.append((config, made_up_curve(num_validations[run], speed=1 + run)))
        analysis = made_up_analysis(num_sentences, has_attention=run not in without_maps)
        analyses.append([analysis] * len(sets))
    scored = score_sets(
        test_sets,
        dict(zip(names, translations, strict=True)),
        settings=Settings(by_length="9,12,15,18,21", resampling=QUICK),
        arms=named_arms(arms),
        analyses=analyses,
    )
    descriptions = [{"name": name, "path": f"runs/{name}", "seed": 1} for name in names]
    report = Report(scored, descriptions, describe_environment([], "cpu"))
    return html_report(report, test_sets, translations, histories), report
