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
# # 3. Search and its errors
#
# A model gives every possible sentence a probability. Somebody still has to choose one, and there are more sentences
# than can be listed: with 700 words, $700^{10}$ of ten words. This chapter searches in five ways, finds out when a
# search fails, and ends with a surprise: the most probable translation is not what you want.
#
# It uses the models of chapter 1, and takes about a minute once they have been trained.

# %%
import heapq
import itertools
import logging
import math
from collections import Counter

import course
import matplotlib.pyplot as plt
import numpy as np
import torch
from sacrebleu.metrics import BLEU, CHRF

import seq2seq_attn

logging.basicConfig(level=logging.WARNING)
torch.set_grad_enabled(False)
german, english = course.captions()["test"]
runs = course.train(["additive", "fixed"])
attention, fixed = (seq2seq_attn.load(runs[name], "cpu") for name in ("additive-s1", "fixed-s1"))

# %% [markdown]
# ## A trap
#
# **Greedy** search takes the most probable word at each step. A language of two words is enough to see it fail. The
# table says what may follow a prefix; `.` ends the sentence.

# %%
TABLE = {
    "": {"a": 0.6, "b": 0.4},
    "a": {"a": 0.4, "b": 0.3, ".": 0.3},
    "b": {"a": 0.05, "b": 0.05, ".": 0.9},
}


def follows(prefix):
    """The distribution of the next word; after two words the sentence ends."""
    return TABLE[prefix] if len(prefix) < 2 else {".": 1.0}


def probability(sentence):
    return math.prod(follows(sentence[:i])[word] for i, word in enumerate(sentence))


def greedy_in_table():
    sentence = ""
    while not sentence.endswith("."):
        options = follows(sentence)
        sentence += max(options, key=options.get)
    return sentence


complete = [
    "".join(letters) + "."
    for length in (1, 2)
    for letters in itertools.product(
        "ab", repeat=length
    )  # exhaustive search: all sentences there are
]
for sentence in sorted(complete, key=probability, reverse=True):
    print(f"{sentence:4} {probability(sentence):.3f}")
best = max(complete, key=probability)
print("greedy finds", greedy_in_table(), "and the best sentence is", best)
assert math.isclose(sum(map(probability, complete)), 1.0)
assert greedy_in_table() != best

# %% [markdown]
# After `a` the model wavers between three continuations, so no sentence that begins with `a` is probable, although `a`
# itself is. Greedy cannot know that when it chooses `a`. This is a **search error**: the search returns a sentence
# that the model likes less than another one.
#
# ## Beam search
#
# **Beam search** keeps the $K$ best prefixes instead of one. Each step continues all of them with all words and keeps
# the $K$ best results. A sentence that ends stays on its place, so that the beam becomes narrower. The search is over
# when no open prefix can beat the best finished sentence: log-probabilities only fall.
#
# `course.Steps` is the decoder that you wrote in chapter 2, for several prefixes at once. With it, beam search is
# short.


# %%
def beam_search(steps, size, max_length=40):
    """The best sentence found, as ids, its log-probability, and the prefixes that were kept at each step."""
    prefixes, totals, states = [[]], torch.zeros(1), steps.start
    finished, kept = [], []
    while prefixes and len(kept) < max_length:
        log_probs, states = steps(
            [prefix[-1] if prefix else steps.bos for prefix in prefixes], states
        )
        candidates = totals[:, None] + log_probs
        best = candidates.flatten().topk(size - len(finished))
        rows, ids = best.indices // log_probs.shape[1], best.indices % log_probs.shape[1]
        kept.append(
            [
                (prefixes[row], int(id), float(total))
                for row, id, total in zip(rows, ids, best.values, strict=True)
            ]
        )
        finished += [(total, prefix) for prefix, id, total in kept[-1] if id == steps.eos]
        is_open = ids != steps.eos
        prefixes = [[*prefix, id] for prefix, id, _ in kept[-1] if id != steps.eos]
        totals, states = best.values[is_open], states[rows[is_open]]
        if finished and prefixes and max(finished)[0] >= totals.max():
            break
    total, ids = max(finished) if finished else (float(totals[0]), prefixes[0])
    return ids, total, kept


def text(translator, ids):
    return translator.target_tokenizer.detokenize(translator.target_vocab.tokens_of(ids))


for size in (1, 5):
    for line, package in zip(
        german[:40], attention.translate(german[:40], beam_size=size), strict=True
    ):
        ids, total, _ = beam_search(course.Steps(attention, line), size)
        assert text(attention, ids) == package.text
        assert abs(total - package.log_prob) < 1e-3
print("the package finds the same 80 translations, with the same log-probabilities")

# %% [markdown]
# With $K = 1$ it is greedy search. Here is the beam as a tree, for a sentence over which the model with the fixed
# vector wavers. A row is a prefix that was kept; the line leads to the prefix that it continues.

# %%
line = german[next(i for i, each in enumerate(german) if len(course.words(each)) == 6)]
steps = course.Steps(fixed, line)
ids, total, kept = beam_search(steps, 5)
figure, axes = plt.subplots(figsize=(11, 3.2))
places = {(): (0, 2.0)}
for step, level in enumerate(kept, start=1):
    for row, (prefix, id, _) in enumerate(level):
        x, y = places[tuple(prefix)]
        is_best = [*prefix, id] == [*ids, steps.eos][:step]
        axes.plot(
            [x + 0.35, step - 0.35],
            [y, row],
            color="tab:blue" if is_best else "lightgray",
            zorder=0,
        )
        axes.text(step, row, steps.vocab.tokens_of([id])[0], ha="center", va="center", fontsize=9)
        places[(*prefix, id)] = (step, row)
axes.set(xlim=(-0.2, len(kept) + 0.6), ylim=(4.6, -0.6), title=f"{line}   →   {text(fixed, ids)}")
axes.axis("off")
plt.show()

# %% [markdown]
# ## The best sentence of all
#
# How often does beam search fail? To know, we need the most probable sentence, out of $700^{10}$. It can be found. A
# prefix is at least as probable as every sentence that begins with it, so prefixes below a finished sentence can be
# forgotten. Always continue the most probable open prefix; the first finished sentence that is taken from the queue is
# the best of all. That is Dijkstra's algorithm, with $-\log p$ as the length of a step ([Stahlberg and Byrne
# 2019](https://arxiv.org/abs/1908.10090) search neural translations exactly, depth first).


# %%
def exact_search(steps, at_least):
    """The most probable sentence as ids, its log-probability, and the prefixes that were continued. `at_least` is the
    log-probability of some sentence: nothing below it is kept."""
    queue, expanded, number = [(0.0, 0, [], steps.start[0])], [], 0
    while True:
        cost, _, prefix, state = heapq.heappop(queue)
        if prefix and prefix[-1] == steps.eos:
            return prefix[:-1], -cost, expanded
        expanded.append(prefix)
        log_probs, states = steps([prefix[-1] if prefix else steps.bos], state[None])
        totals = log_probs[0] - cost
        for id in (totals >= at_least - 1e-4).nonzero().flatten().tolist():
            number += 1  # the queue compares numbers where costs are equal
            heapq.heappush(queue, (-float(totals[id]), number, [*prefix, id], states[0]))


# %% [markdown]
# Search every way for the first test sentences. If the best sentence has the probability $p^{*}$, exact search may
# continue $1 / p^{*}$ prefixes of each length (exercise 2 asks you why), so we leave out sentences of which a model is
# very unsure.

# %%
MIN_LOG_PROB = -6.0
results = {}
for name, translator in {"attention": attention, "fixed vector": fixed}.items():
    for line in german[:120]:
        steps = course.Steps(translator, line)
        by_size = {size: beam_search(steps, size)[:2] for size in (1, 2, 5)}
        bound = max(total for _, total in by_size.values())
        if bound >= MIN_LOG_PROB:
            exact, total, expanded = exact_search(steps, at_least=bound)
            results[name, line] = {**by_size, "exact": (exact, total), "expanded": expanded}

methods = {1: "greedy", 2: "beam 2", 5: "beam 5", "exact": "exact"}
print(f"{'':13}{'':9} search errors    log p   length / reference   BLEU")
table = {}
for name, translator in {"attention": attention, "fixed vector": fixed}.items():
    lines = [line for model, line in results if model == name]
    references = [english[german.index(line)] for line in lines]
    for key, method in methods.items():
        chosen = [results[name, line][key] for line in lines]
        errors = [
            results[name, line]["exact"][1] - total > 1e-3
            for line, (_, total) in zip(lines, chosen, strict=True)
        ]
        texts = [text(translator, ids) for ids, _ in chosen]
        ratio = sum(len(course.words(each)) for each in texts) / sum(
            len(course.words(each)) for each in references
        )
        score = BLEU().corpus_score(texts, [references]).score
        table[name, method] = np.mean(errors), np.mean([total for _, total in chosen]), ratio, score
        print(
            f"{name:13}{method:9}{np.mean(errors):13.0%} {table[name, method][1]:9.2f} {ratio:15.2f} {score:12.1f}"
        )
    print(f"{'':13}for {len(lines)} sentences")

# %% [markdown]
# Greedy search fails in one of five sentences, a beam of five hardly ever. When does greedy search fail? Sort the
# sentences by the probability of the best translation, which says how sure the model is:

# %%
errors_by_sureness = []
for low, high in ((0.3, 1.0), (0.05, 0.3), (0.0, 0.05)):
    group = [each for each in results.values() if low < math.exp(each["exact"][1]) <= high]
    errors_by_sureness.append(np.mean([each["exact"][1] - each[1][1] > 1e-3 for each in group]))
    print(
        f"p* from {low:4.0%} to {high:4.0%}: greedy fails in {errors_by_sureness[-1]:4.0%} of {len(group)} searches"
    )
assert errors_by_sureness[0] < errors_by_sureness[-1]

# %% [markdown]
# A sure model is easy to search, an unsure one is not. So the better the model, the less search matters.
#
# Now compare the rows of the table. From greedy search to a beam of five, BLEU rises. From the beam to the exact
# search, the attention model gains nothing: its translations are now the ones it likes best, and what is still wrong
# with them are **model errors**. Look at the lengths, too. The better the search, the shorter the translations.

# %%
for name in ("attention", "fixed vector"):
    assert table[name, "greedy"][1] < table[name, "beam 5"][1] <= table[name, "exact"][1] + 1e-6
    assert table[name, "exact"][2] < table[name, "greedy"][2]
assert table["attention", "exact"][3] < table["attention", "beam 5"][3] + 2

# %% [markdown]
# In large systems it is worse: Stahlberg and Byrne found that for half of their sentences the most probable
# translation was the empty one. Beam search is good in part *because* it makes errors.
#
# ## Length bias
#
# One model error is systematic. Each word multiplies the probability by a number below 1, so among sentences of which
# a model is unsure, short ones win. The cure is as old as beam search: divide by a power of the length,
#
# $$\mathrm{score}(y \mid x) = \frac{\log p(y \mid x)}{|y|^{\alpha}}$$
#
# with $|y|$ counting the end of the sentence too ([Wu et al. 2016](https://arxiv.org/abs/1609.08144), section 7, have
# a similar formula). The option is `length_penalty`.

# %%
print("length penalty   words per translation, fixed vector (references:", end=" ")
print(f"{np.mean([len(course.words(line)) for line in english]):.2f})")
mean_lengths = {}
for penalty in (0.0, 0.5, 1.0, 2.0):
    found = fixed.translate(german, beam_size=5, length_penalty=penalty)
    mean_lengths[penalty] = np.mean([len(course.words(each.text)) for each in found])
    score = BLEU().corpus_score([each.text for each in found], [english]).score
    print(f"{penalty:14}{mean_lengths[penalty]:24.2f}     BLEU {score:.1f}")
    one = found[0]
    assert math.isclose(one.score, one.log_prob / (len(one.tokens) + 1) ** penalty, rel_tol=1e-4)
assert mean_lengths[0.0] < mean_lengths[1.0]

# %% [markdown]
# ## Sampling
#
# The opposite of search is to draw: each next word at random, as probable as the model says. Samples show what a model
# believes. If they are drawn correctly, a translation appears as often as its probability says:

# %%
line = german[next(i for i, each in enumerate(german) if len(course.words(each)) == 6)]
number = 1000
for name, translator in {"attention": attention, "fixed vector": fixed}.items():
    [samples] = translator.translate_n_best([line], n_best=number, method="sample", seed=1)
    counts = Counter(each.text for each in samples)
    log_probs = {each.text: each.log_prob for each in samples}
    print(f"{name}: {len(counts)} different translations of {line}")
    for written, count in counts.most_common(4):
        p = math.exp(log_probs[written])
        print(f"   drawn {count / number:6.1%}   probability {p:6.1%}   {written}")
        assert abs(count / number - p) < 4 * math.sqrt(p * (1 - p) / number) + 0.005

# %% [markdown]
# ## Minimum Bayes risk
#
# If the most probable sentence is not the best choice, what is? Ask which translation would be *least wrong* if the
# model's samples were the truth: take the one that resembles the other samples most ([Kumar and Byrne
# 2004](https://aclanthology.org/N04-1022); with samples, [Eikema and Aziz 2020](https://arxiv.org/abs/2005.10283)).
#
# $$y^{*} = \mathrm{argmax}_y \; \frac{1}{N} \sum_{n=1}^{N} \mathrm{similarity}(y, y_n)$$
#
# By hand, with chrF (the share of common sequences of characters) as the similarity, and then the package's `mbr`:


# %%
def least_risk(samples):
    """The text with the highest mean similarity to all samples; the first such."""
    chrf = CHRF()
    texts = [each.text for each in samples]
    means = [
        np.mean([100.0 if a == b else chrf.sentence_score(a, [b]).score for b in texts])
        for a in texts
    ]
    return texts[int(np.argmax(means))]


for line in german[:10]:
    [samples] = fixed.translate_n_best([line], n_best=16, method="sample", seed=1)
    [package] = fixed.translate([line], method="mbr", num_samples=16, seed=1)
    assert least_risk(samples) == package.text

chrf, compared = CHRF(), {}
for method in (
    {"method": "beam", "beam_size": 5},
    {"method": "mbr", "num_samples": 32},
    {"method": "sample"},
):
    found = [each.text for each in fixed.translate(german[:200], **method)]
    compared[method["method"]] = chrf.corpus_score(found, [english[:200]]).score
    print(f"fixed vector, {method['method']:7} chrF {compared[method['method']]:.1f}")
assert compared["mbr"] > compared["sample"]

# %% [markdown]
# Choosing among samples is far better than a single sample, though all that it knows are other samples. It does not
# beat the beam here: a model as unsure as this one writes poor samples, and 32 of them are few. Eikema and Aziz find
# that it does with better models and more samples. It costs as many translations as there are samples.
#
# ## Exercises
#
# **1. A deeper trap.** Beam search with $K = 2$ finds the best sentence of `TABLE`. Change the probabilities, with a
# third word `c` if you like, so that $K = 2$ fails and $K = 3$ does not.

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: the best sentence must begin with the third best word.
TABLE = {
    "": {"a": 0.4, "b": 0.35, "c": 0.25},
    "a": {"a": 0.4, "b": 0.3, "c": 0.1, ".": 0.2},
    "b": {"a": 0.4, "b": 0.3, "c": 0.1, ".": 0.2},
    "c": {".": 1.0},
}


def beam_in_table(size):
    prefixes, finished = [""], []
    while prefixes:
        longer = [prefix + word for prefix in prefixes for word in follows(prefix)]
        longer = sorted(longer, key=probability, reverse=True)[: size - len(finished)]
        finished += [prefix for prefix in longer if prefix.endswith(".")]
        prefixes = [prefix for prefix in longer if not prefix.endswith(".")]
    return max(finished, key=probability)


print({size: beam_in_table(size) for size in (1, 2, 3)})
assert beam_in_table(2) != "c."
assert beam_in_table(3) == "c."

# %% [markdown]
# **2. Why exact search is feasible.** Show that at every length, exact search continues at most $1 / p^{*}$ prefixes,
# where $p^{*}$ is the probability of the best sentence. Check it with the prefixes of `results`.

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: only prefixes with a probability of at least p* are continued. Different prefixes of one length exclude each
# other, so their probabilities add up to at most 1, and at most 1 / p* of them can be that probable.
for result in results.values():
    by_length = Counter(len(prefix) for prefix in result["expanded"])
    assert max(by_length.values()) <= math.exp(-result["exact"][1]) * 1.001
print(
    "true for",
    len(results),
    "searches; the most prefixes:",
    max(len(result["expanded"]) for result in results.values()),
)

# %% [markdown]
# **3. Temperature.** Sampling from $q(w) \propto p(w)^{1/\tau}$ with a temperature $\tau < 1$ is sharper. Which search
# does it become as $\tau \to 0$? Check with `temperature=0.01`.

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: greedy search, as the most probable word gets nearly all the probability.
cold = fixed.translate(german[:50], method="sample", temperature=0.01)
greedy = fixed.translate(german[:50], beam_size=1)
equal = np.mean([a.text == b.text for a, b in zip(cold, greedy, strict=True)])
print(f"{equal:.0%} are the translations of greedy search")
assert equal > 0.9

# %% [markdown]
# **4. How much is believed?** For the first 50 test sentences, compare the probability of the beam's translation under
# both models. What share of the model's belief does the single translation that you show to a reader stand for?

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: the attention model puts much of its probability on one translation, the fixed vector very little.
shares = {}
for name, translator in {"attention": attention, "fixed vector": fixed}.items():
    shares[name] = np.median(
        [math.exp(each.log_prob) for each in translator.translate(german[:50])]
    )
    print(f"{name}: half of the translations have a probability of at most {shares[name]:.2%}")
assert shares["attention"] > 5 * shares["fixed vector"]

# %% [markdown]
# ## What to remember
#
# - A search error is the search's fault, a model error the model's. Exact search on small cases tells them apart.
# - The better the model, the less search matters.
# - The most probable translation is not the best one. It tends to be too short, which a length penalty mends.
#
# [All about translating](../translate.md) has the options of these methods. Next: [measuring
# honestly](4-measuring.py).
