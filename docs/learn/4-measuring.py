# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 4. Measuring honestly
#
# "Our model is 0.8 BLEU better." Is that much? Is it true? In this chapter you compute BLEU by hand, find out why two
# numbers that are both called BLEU may not be comparable, and then ask the question that papers ask too seldom: how
# large a difference comes from chance alone? For that you train the *same* model eight times.
#
# Less than three minutes of two cores, most of it training.

# %%
import itertools
import logging
import math
import re
from collections import Counter

import course
import matplotlib.pyplot as plt
import numpy as np
from sacrebleu.metrics import BLEU

import seq2seq_attn

logging.basicConfig(level=logging.WARNING)
german, english = course.captions()["test"]
runs = course.train(["additive", "dot"], num_updates=600, seeds=(1, 2, 3, 4))
texts = {}
for name, run in runs.items():
    texts[name] = [
        each.text for each in seq2seq_attn.load(run, "cpu").translate(german, beam_size=1)
    ]
hypotheses = texts["additive-s1"]
print(hypotheses[0], "|", english[0])

# %% [markdown]
# (These models are trained for 600 updates only, so that eight of them fit into the time of a lesson. Their scores are
# lower than those of chapter 1; the questions are the same.)
#
# ## BLEU by hand
#
# [Papineni et al. (2002)](https://aclanthology.org/P02-1040) count **n-grams**, sequences of $n$ words. The precision
# $p_n$ is the share of a translation's n-grams that the reference has too, each counted at most as often as the
# reference has it:
#
# $$p_n = \frac{\sum_{\mathrm{sentences}} \sum_g \min(\mathrm{count}_{hyp}(g), \mathrm{count}_{ref}(g))}{
# \sum_{\mathrm{sentences}} \sum_g \mathrm{count}_{hyp}(g)}$$
#
# BLEU is the geometric mean of $p_1$ to $p_4$, times a penalty if the translations are too short; $c$ and $r$ are the
# lengths of all translations and of all references:
#
# $$\mathrm{BLEU} = 100 \cdot \min(1, e^{1 - r/c}) \cdot (p_1 \, p_2 \, p_3 \, p_4)^{1/4}$$
#
# Note where the sums are. BLEU adds up counts over the whole test set and then divides; it is not a mean over
# sentences. So first a row of ten numbers for each sentence: four counts of matches, four of n-grams, two lengths.


# %%
def tokens(text):
    """Words and punctuation marks, cut as sacreBLEU's tokenizer `13a` does it for text like ours."""
    return re.findall(r"[\w'-]+|[^\w\s]", text)


def ngrams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def count_row(hypothesis, reference):
    """Matches of n = 1 to 4, n-grams of n = 1 to 4, the length of the hypothesis and of the reference."""
    hyp, ref = tokens(hypothesis), tokens(reference)
    grams = [(ngrams(hyp, n), ngrams(ref, n)) for n in (1, 2, 3, 4)]
    matches = [(hyp_n & ref_n).total() for hyp_n, ref_n in grams]
    return [*matches, *(hyp_n.total() for hyp_n, _ in grams), len(hyp), len(ref)]


def bleu(sums):
    """BLEU of summed rows."""
    matches, totals, (hyp_length, ref_length) = sums[:4], sums[4:8], sums[8:]
    if min(matches) == 0:
        return 0.0
    brevity = min(1.0, math.exp(1 - ref_length / hyp_length))
    return 100 * brevity * math.prod(m / t for m, t in zip(matches, totals, strict=True)) ** 0.25


rows = np.array([count_row(*pair) for pair in zip(hypotheses, english, strict=True)])
by_hand = bleu(rows.sum(axis=0))
test = {"source": course.TEXT / "test.de", "reference": course.TEXT / "test.en"}
report = seq2seq_attn.evaluate(
    runs["additive-s1"], **test, beam_size=1, json=course.RUNS / "report.json"
)
[measured] = [
    measure for measure in report.data["sets"][0]["measures"] if measure["name"] == "bleu"
]
package = measured["runs"][0]
print(
    f"by hand {by_hand:.4f}, sacreBLEU {BLEU().corpus_score(hypotheses, [english]).score:.4f}",
    end=", ",
)
print(f"seq2seq evaluate {package['score']:.4f}")
assert math.isclose(by_hand, package["score"], abs_tol=1e-6)

# %% [markdown]
# ## What is in a number
#
# "BLEU" is a family of numbers. How is text cut into words? Are capital letters different from small ones? What
# happens where a precision is 0? The same translations:

# %%
variants = {
    "as published": {},
    "lower-cased": {"lowercase": True},
    "cut into characters": {"tokenize": "char"},
    "cut at spaces only": {"tokenize": "none"},
    "up to bigrams": {"max_ngram_order": 2},
}
numbers = {}
for name, options in variants.items():
    metric = BLEU(**options)
    numbers[name] = metric.corpus_score(hypotheses, [english]).score
    print(f"{numbers[name]:6.1f}  {name:20} {metric.get_signature()}")
spread = max(numbers.values()) - min(numbers.values())
print(f"the same translations differ by {spread:.1f} BLEU")
assert spread > 5

# %% [markdown]
# The **signature** at the end of each line names the choices ([Post 2018](https://arxiv.org/abs/1804.08771)). Two
# scores with different signatures, test sets or references cannot be compared. A score without a signature cannot be
# compared with anything.
#
# Means over sentences are something else again. The mean of the sentences' BLEU is not the BLEU of the test set; but
# the sums of groups, such as short and long sentences, add up to the sums of the whole:

# %%
lengths = np.array([len(course.words(line)) for line in german])
is_short = lengths < 9
print(
    f"short {bleu(rows[is_short].sum(axis=0)):.1f}, long {bleu(rows[~is_short].sum(axis=0)):.1f}, all {by_hand:.1f}"
)
mean = np.mean([bleu(row) for row in rows])
print(f"mean of the sentences' BLEU {mean:.1f}")
assert bleu(rows[is_short].sum(axis=0) + rows[~is_short].sum(axis=0)) == by_hand
assert abs(mean - by_hand) > 1

# %% [markdown]
# ## Another test set
#
# These 1,000 sentences are a sample. Another thousand would give another score. How different? The **bootstrap**
# ([Koehn 2004](https://aclanthology.org/W04-3250)) answers without more sentences: draw 1,000 sentences from the
# 1,000, with replacement, and compute BLEU; do it a thousand times. The middle 95 % of these scores are the confidence
# interval. As BLEU needs sums only, it is a few lines:

# %%
random = np.random.default_rng(1)
draws = random.integers(len(english), size=(1000, len(english)))


def resampled(rows):
    """BLEU of each draw."""
    return np.array([bleu(rows[draw].sum(axis=0)) for draw in draws])


low, high = np.percentile(resampled(rows), [2.5, 97.5])
print(
    f"by hand [{low:.1f}, {high:.1f}], seq2seq evaluate [{package['low']:.1f}, {package['high']:.1f}]"
)
assert abs(low - package["low"]) < 0.6
assert abs(high - package["high"]) < 0.6

# %% [markdown]
# The interval is three to four points wide. Can a difference of one point be seen at all? Yes, if two systems
# translate *the same* sentences: a sentence that is hard for one is hard for the other, and that part of the noise
# cancels. The **paired** bootstrap draws the sentences once for both systems and looks at the difference:

# %%
all_rows = {
    name: np.array([count_row(*pair) for pair in zip(lines, english, strict=True)])
    for name, lines in texts.items()
}
all_draws = {name: resampled(rows) for name, rows in all_rows.items()}
scores = {name: bleu(rows.sum(axis=0)) for name, rows in all_rows.items()}


def compare(a, b):
    """The difference b - a, its 95 % interval, and a two-sided p: how often a difference at least as large comes out
    where the systems are equal."""
    difference = scores[b] - scores[a]
    differences = all_draws[b] - all_draws[a]
    p = (np.sum(np.abs(differences - differences.mean()) >= abs(difference)) + 1) / (
        len(differences) + 1
    )
    return difference, np.percentile(differences, [2.5, 97.5]), p


a, b = "additive-s1", "dot-s1"
difference, (low, high), p = compare(a, b)
print(f"{b} - {a}: {difference:+.1f} [{low:+.1f}, {high:+.1f}], p = {p:.3f}")
unpaired = np.std(random.permutation(all_draws[b]) - all_draws[a])
paired = np.std(all_draws[b] - all_draws[a])
print(
    f"standard deviation of the difference: paired {paired:.2f}, with a test set for each {unpaired:.2f}"
)
assert paired < unpaired

# %% [markdown]
# ## Another seed
#
# The bootstrap asks what another *test set* would have said about these two models. But you do not want to know about
# two models. You want to know which *attention* is better, and each attention was trained once, from random first
# weights, with batches in random order. Here are four models of each kind. They differ in nothing but the seed.

# %%
names = {kind: [name for name in runs if name.startswith(kind)] for kind in ("additive", "dot")}
values = {kind: np.array([scores[name] for name in names[kind]]) for kind in names}
for kind, numbers_of_kind in values.items():
    listed = " ".join(f"{value:5.1f}" for value in numbers_of_kind)
    print(
        f"{kind:9} {listed}   mean {numbers_of_kind.mean():.1f}, deviation {numbers_of_kind.std(ddof=1):.1f}"
    )
print()
clear = 0
pairs = [pair for kind in names for pair in itertools.combinations(names[kind], 2)]
for a, b in pairs:
    difference, (low, high), p = compare(a, b)
    clear += p < 0.05
    print(
        f"{a} and {b}: {difference:+.1f} [{low:+.1f}, {high:+.1f}], p = {p:.3f}{' *' if p < 0.05 else ''}"
    )
print(f"{clear} of {len(pairs)} pairs of one and the same model differ 'significantly', p < 0.05")
assert clear > 0.05 * len(pairs)

# %% [markdown]
# Read that again. These are pairs of the *same* model. A test with p < 0.05 should be wrong in one of twenty. It is
# wrong far more often, because it answers another question: these two *files of weights* do differ, as another test
# set would confirm. It says nothing about the method, whose other seeds it has never seen. (Half-trained models differ
# more than finished ones: among the project's finished models of real captions, seeds have a deviation of 0.1 to 0.4
# BLEU. But a difference of 0.5 is what papers are about.) The plot shows both kinds of noise: bars are the bootstrap's
# interval of a run, dots are runs.

# %%
figure, axes = plt.subplots(figsize=(6, 2.6))
for place, name in enumerate([*names["additive"], *names["dot"]]):
    low, high = np.percentile(all_draws[name], [2.5, 97.5])
    color = "tab:blue" if name.startswith("additive") else "tab:orange"
    axes.plot([place, place], [low, high], color=color, alpha=0.4, linewidth=4)
    axes.plot(place, scores[name], "o", color=color)
axes.set_xticks(range(len(runs)), [*names["additive"], *names["dot"]], rotation=40, ha="right")
axes.set(ylabel="BLEU")
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %% [markdown]
# ## What a difference is worth
#
# So compare *means over seeds*, and take the seeds as the sample. With four and four runs an exact test is possible:
# if both attentions were equal, the eight scores could have been dealt to them in any way. There are 70 ways to deal
# them; how many give a difference of the means at least as large as ours?


# %%
def permutation_p(x, y):
    """The share of all ways to deal the scores that differ at least as much as x and y do."""
    pool, observed = np.array([*x, *y]), abs(np.mean(x) - np.mean(y))
    others = 0
    ways = list(itertools.combinations(range(len(pool)), len(x)))
    for way in ways:
        rest = [i for i in range(len(pool)) if i not in way]
        others += abs(pool[list(way)].mean() - pool[rest].mean()) >= observed - 1e-9
    return others / len(ways)


gain = values["dot"].mean() - values["additive"].mean()
error = math.sqrt(sum(kind.var(ddof=1) / len(kind) for kind in values.values()))
p = permutation_p(values["dot"], values["additive"])
print(
    f"dot - additive: {gain:+.1f} BLEU, standard error over seeds {error:.1f}, permutation test p = {p:.3f}"
)
print("verdict:", "a difference" if p < 0.05 else "not shown; train more seeds, or let it be")
smallest = permutation_p([1, 2, 3, 4], [5, 6, 7, 8])
print(f"the smallest p that four and four runs can give: {smallest:.3f}")
assert math.isclose(smallest, 2 / 70)

# %% [markdown]
# Compare this with what the paired bootstrap said of the first pair above.
#
# How wrong could you have been with one seed? Sixteen pairs of single runs, one of each kind, could have ended up in a
# paper:

# %%
single = [scores[b] - scores[a] for a, b in itertools.product(names["additive"], names["dot"])]
print("differences of single runs:", " ".join(f"{value:+.1f}" for value in sorted(single)))
print(
    f"from {min(single):+.1f} to {max(single):+.1f} BLEU; the difference of the means is {gain:+.1f}"
)
assert math.isclose(np.mean(single), gain, abs_tol=1e-9)
assert max(single) - min(single) > 1

# %% [markdown]
# ## Exercises
#
# **1. Cheating with short sentences.** A system writes only the words that it is sure of, so its precisions are
# perfect. Take the first half of every reference as its translation, and compute the four precisions and BLEU. What
# saves BLEU from being 100?

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: the brevity penalty, exp(1 - r / c).
halves = [" ".join(tokens(line)[: len(tokens(line)) // 2]) for line in english]
sums = np.array([count_row(*pair) for pair in zip(halves, english, strict=True)]).sum(axis=0)
print(
    "precisions",
    sums[:4] / sums[4:8],
    f"BLEU {bleu(sums):.1f}, penalty {math.exp(1 - sums[9] / sums[8]):.2f}",
)
assert (sums[:4] == sums[4:8]).all()
assert math.isclose(bleu(sums), 100 * math.exp(1 - sums[9] / sums[8]))

# %% [markdown]
# **2. How many sentences?** The width of the bootstrap's interval depends on the size of the test set. Compute it for
# the first 60, 250 and 1,000 sentences. What must you do to halve it?

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: about four times as many sentences, as the width falls with the square root of their number.
widths = {}
for size in (60, 250, 1000):
    drawn = [bleu(rows[random.integers(size, size=size)].sum(axis=0)) for _ in range(1000)]
    widths[size] = np.subtract(*np.percentile(drawn, [97.5, 2.5]))
    print(f"{size:5} sentences: {widths[size]:.1f} BLEU wide")
assert 1.5 < widths[250] / widths[1000] < 2.7

# %% [markdown]
# **3. The best of four.** A paper trains four seeds and reports the best, compared with the single run of an older
# paper. How many BLEU does that gain on average, if both papers used the *same* model? Compute it for both kinds.

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: the maximum less the mean, for nothing.
for kind, numbers_of_kind in values.items():
    print(f"{kind}: {numbers_of_kind.max() - numbers_of_kind.mean():.1f} BLEU for nothing")
    assert numbers_of_kind.max() > numbers_of_kind.mean()

# %% [markdown]
# **4. A better question.** Pool the noise of seeds and of sentences: draw four of the additive runs and four of the
# dot runs with replacement, draw the sentences once, and take the difference of the mean scores. Compare the
# interval with the one of the first pair, `additive-s1` and `dot-s1`.

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: this interval is about both methods on sentences of this kind, and can be wider or narrower than that of one
# pair, which is about two files of weights.
differences = []
for draw in range(1000):
    means = [
        np.mean([all_draws[name][draw] for name in random.choice(names[kind], 4)]) for kind in names
    ]
    differences.append(means[1] - means[0])
low, high = np.percentile(differences, [2.5, 97.5])
print(f"methods: {gain:+.1f} [{low:+.1f}, {high:+.1f}]")
print(
    "one pair: {:+.1f} [{:+.1f}, {:+.1f}]".format(single[0], *compare("additive-s1", "dot-s1")[1])
)
assert low < gain < high

# %% [markdown]
# ## What to remember
#
# - BLEU is a sum over a test set. Give its signature, or it means nothing.
# - A bootstrap interval is about sentences. A standard deviation over seeds is about training. A claim about a method
#   needs the second.
# - Train at least three seeds of both sides, choose settings on the validation set, and report all of them, not the
#   best.
#
# `seq2seq compare` does all of this: it trains arms with several seeds and reports means, intervals and tests
# ([evaluate and compare](../evaluate.md)). [Quality](../quality.md) lists what each setting of this project is worth,
# measured this way.
