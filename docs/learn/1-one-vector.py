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
# # 1. The encoder-decoder, and why one vector breaks
#
# In 2014 two papers translated with nothing but recurrent networks ([Cho et al.](https://arxiv.org/abs/1406.1078),
# [Sutskever et al.](https://arxiv.org/abs/1409.3215)). One network reads the source sentence and ends in a vector; a
# second network writes the translation from that vector. It worked, and it had a flaw that everybody could see in a
# plot of quality by sentence length. In 2015 [Bahdanau, Cho and Bengio](https://arxiv.org/abs/1409.0473) removed the
# flaw. Their fix, attention, is what this course is about. In this chapter you train both models, see the flaw, and
# find out what exactly is lost.
#
# You need this package, a little PyTorch, and about two minutes of two cores. `course.py`, which all chapters import,
# lies beside them in the repository and in `notebooks.zip` of [the lab](../lab.md). Every number below is computed on
# your machine.

# %%
import itertools
import logging
import re

import course
import matplotlib.pyplot as plt
import numpy as np
import torch
from sacrebleu.metrics import BLEU

import seq2seq_attn

logging.basicConfig(level=logging.WARNING)
torch.manual_seed(1)
data = course.captions()
for name, (german, english) in data.items():
    print(f"{name:6}{len(german):6,} pairs    {german[0]}  |  {english[0]}")

# %% [markdown]
# The corpus comes with the project. A grammar wrote its sentences, so they are clean and a small model can learn them;
# `course.py` keeps those of at most 16 words, from 800 frequent words of each language. Word order differs between the
# languages in the ways that make German hard: verbs move to the end, and objects move to the front.
#
# ## What is modelled
#
# A translation model gives every English sentence $y = y_1 \ldots y_T$ a probability, given the German sentence
# $x = x_1 \ldots x_S$. By the chain rule that is a product over words, each given the words before it:
#
# $$p(y \mid x) = \prod_{i=1}^{T} p(y_i \mid y_1, \ldots, y_{i-1}, x)$$
#
# The **encoder** turns the words of $x$ into states, one after the other: $h_j = f(x_j, h_{j-1})$. Here $f$ is a gated
# recurrent unit, and a second one reads from right to left. The **decoder** has a state of its own,
# $s_i = g(y_{i-1}, s_{i-1}, c)$, and a softmax on top of it gives $p(y_i \mid \ldots)$. The two models of this chapter
# differ in $c$ alone, which is what the decoder gets to see of the source:
#
# - **fixed vector** (Cho et al. 2014, section 2.2): $c$ is the last state of each reading direction. It is the same
#   vector at every step.
# - **attention** (Bahdanau et al. 2015, section 3.1): at every step $i$ a new average $c_i = \sum_j \alpha_{ij} h_j$
#   of all states, with weights that the decoder chooses. The next chapter computes them by hand.
#
# Train one of each. They run side by side, and are kept in `runs/learn` for the other chapters.

# %%
runs = course.train(["additive", "fixed"])
attention, fixed = (seq2seq_attn.load(runs[name], "cpu") for name in ("additive-s1", "fixed-s1"))
models = {"attention": attention, "fixed vector": fixed}
for name, translator in models.items():
    print(
        f"{name:13}{sum(parameter.numel() for parameter in translator.model.parameters()):9,} parameters"
    )

# %% [markdown]
# The attention model has a few more parameters: those that compute its weights. (The project's demonstration,
# the configurations `demo` and `demo-fixed`, compares models of equal size, and finds the same.) Now let both translate a short sentence and a
# longer one of the test set, which neither has seen in training.

# %%
german, english = data["test"]
lengths = np.array([len(course.words(line)) for line in german])
short, long = (int(np.flatnonzero(lengths == length)[0]) for length in (5, 16))
for index in (short, long):
    print("German       ", german[index])
    print("reference    ", english[index])
    for name, translator in models.items():
        print(f"{name:14}{translator.translate([german[index]])[0].text}")
    print()

# %% [markdown]
# Read the long translation of the fixed vector again. It is good English. The grammar is right, the sentence has the
# right shape, and the words are wrong. The decoder has learned to write; it does not know what to write about.
#
# ## Quality by length
#
# One example proves nothing, so translate all 1,000 test sentences, and compute BLEU in groups of similar length. BLEU
# counts the sequences of one to four words that a translation shares with the reference (chapter 4 computes it by
# hand); 100 means the same words.

# %%
translations = {name: translator.translate(german) for name, translator in models.items()}
edges = [4, 6, 8, 10, 12, 14, 17]
bins = [*itertools.pairwise(edges)]
groups = [np.flatnonzero((lengths >= low) & (lengths < high)) for low, high in bins]
labels = [f"{low}-{high - 1}" for low, high in bins]


def bleu(hypotheses, group):
    """BLEU of the sentences of a group."""
    return (
        BLEU()
        .corpus_score([hypotheses[i].text for i in group], [[english[i] for i in group]])
        .score
    )


scores = {
    name: [bleu(hypotheses, group) for group in groups] for name, hypotheses in translations.items()
}
print("German words ", *(f"{label:>6}" for label in labels))
print("sentences    ", *(f"{len(group):6}" for group in groups))
for name, values in scores.items():
    print(f"{name:13}", *(f"{value:6.1f}" for value in values))

# %%
figure, axes = plt.subplots(figsize=(6, 3.2))
for name, values in scores.items():
    axes.plot(labels, values, marker="o", label=name)
axes.set(xlabel="words in the German sentence", ylabel="BLEU", ylim=(0, 100))
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %% [markdown]
# This is the plot of 2014. Both models manage the shortest sentences. Then the fixed vector falls, and by 16 words
# little is left of it. The claim of the chapter as three lines of Python:

# %%
kept = {name: values[-1] / values[0] for name, values in scores.items()}
print(
    {
        name: f"{share:.0%} of its BLEU on the shortest sentences is left on the longest"
        for name, share in kept.items()
    }
)
assert kept["attention"] > 0.5
assert kept["fixed vector"] < 0.35

# %% [markdown]
# ## Does it write badly, or does it not know?
#
# There are two explanations for a bad translation. Either the decoder cannot write long English sentences, or it does
# not know what the German sentence said. They can be told apart. Sort the words of each reference into two kinds:
# **function words** (articles, pronouns, auxiliaries, punctuation), which grammar often decides, and **content
# words**, which only the source decides. Then count how many of each kind a translation has.

# %%
FUNCTION = set(
    ". , a an the is are was were has have who which that in on to of and but because while very rather it".split()
)


def recall(hypotheses, group, is_kind):
    """The share of the references' words of a kind that the translations have too."""
    matches = total = 0
    for i in group:
        written = [word.lower() for word in course.words(hypotheses[i].text)]
        for word in (word.lower() for word in course.words(english[i])):
            if is_kind(word):
                total += 1
                if word in written:
                    matches += 1
                    written.remove(word)
    return matches / total


kinds = {
    "function words": lambda word: word in FUNCTION,
    "content words": lambda word: word not in FUNCTION,
}
recalls = {
    (name, kind): [recall(hypotheses, group, is_kind) for group in groups]
    for name, hypotheses in translations.items()
    for kind, is_kind in kinds.items()
}
print("share of the reference's words   ", *(f"{label:>6}" for label in labels))
for (name, kind), values in recalls.items():
    print(f"{name:15}{kind:18}", *(f"{value:6.0%}" for value in values))
assert (
    recalls["fixed vector", "function words"][-1] > 2 * recalls["fixed vector", "content words"][-1]
)
assert recalls["attention", "content words"][-1] > 2 * recalls["fixed vector", "content words"][-1]

# %% [markdown]
# The fixed vector keeps the function words of long sentences and loses the content words. So it can write; it does not
# know.
#
# ## Is the content in the vector at all?
#
# Perhaps the vector holds the words, and the decoder fails to read them. Test that with a **probe**: a linear
# classifier that is given the encoder's vector of a sentence, and predicts which German nouns the sentence has. Train
# it on the training sentences. If it predicts a noun, the noun is easy to read from the vector. A forward hook, plain
# PyTorch, brings the vectors out of the model; `final_BM` is what the encoder hands to the decoder.


# %%
def vectors(translator, lines):
    """The encoder's vector of each line, as the rows of a matrix."""
    kept = []
    hook = translator.model.encoder.register_forward_hook(
        lambda module, inputs, encoded: kept.append(encoded.final_BM)
    )
    for line in lines:
        translator.score([line], [line])
    hook.remove()
    return torch.cat(kept)


def nouns(line):
    """German writes nouns and names with a capital letter, and the first word of every sentence."""
    return [word for word in course.words(line)[1:] if word[0].isupper()]


def presence(lines):
    """1 where a sentence (row) has a noun (column)."""
    rows = torch.zeros(len(lines), len(vocabulary))
    for row, line in enumerate(lines):
        for noun in nouns(line):
            if noun in column:
                rows[row, column[noun]] = 1.0
    return rows


train_lines = data["train"][0][:4000]
vocabulary = sorted({noun for line in train_lines for noun in nouns(line)})
column = {noun: number for number, noun in enumerate(vocabulary)}
inputs, wanted = vectors(fixed, train_lines).clone(), presence(train_lines)
probe = torch.nn.Linear(inputs.shape[1], len(vocabulary))
optimizer = torch.optim.Adam(probe.parameters(), lr=0.05)
for _ in range(400):
    loss = torch.nn.functional.binary_cross_entropy_with_logits(probe(inputs), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %% [markdown]
# Ask the probe for as many nouns as a test sentence has, and count how many of them are right.

# %%
with torch.no_grad():
    logits, present = probe(vectors(fixed, german)), presence(german).bool()
probed = []
for group in groups:
    counts = [int(present[i].sum()) for i in group]
    right = [
        int(present[i, logits[i].topk(count).indices].sum())
        for i, count in zip(group, counts, strict=True)
    ]
    probed.append(sum(right) / sum(counts))
print("German words         ", *(f"{label:>6}" for label in labels))
print("nouns the probe finds", *(f"{value:6.0%}" for value in probed))
assert probed[0] > 1.3 * probed[-1]

# %% [markdown]
# It falls with the length, as the translations do. The vector has 128 numbers, whether the sentence has 4 words or 16,
# and the encoder has learned to spend them on the few things that help most. (A probe proves less than it seems to:
# something may be in the vector in a form that a *linear* classifier cannot read.)
#
# Attention removes the bottleneck by a change of one line: instead of one vector, hand the decoder all states, $S$
# vectors for $S$ words, and let it choose. That is the next chapter.
#
# ## Exercises
#
# Try each before you open its answer. Answers are cells of Python that check themselves.
#
# **1. The chain rule.** `translator.score([source], [target])` gives $\log p(y \mid x)$, the sum over all words and
# the end of the sentence. Compute for each model the *perplexity* of the references per word,
# $\exp(-\frac{1}{N} \sum \log p)$, where $N$ counts words and ends, for the shortest and the longest group. How many
# equally probable words does each model waver between?

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: the attention model wavers between one word and two, whatever the length; the fixed vector between several.
perplexity = {}
for name, translator in models.items():
    for kind, group in (("short", groups[0]), ("long", groups[-1])):
        pairs = translator.score([german[i] for i in group], [english[i] for i in group])
        num_words = sum(len(pair.tokens) + 1 for pair in pairs)
        perplexity[name, kind] = float(np.exp(-sum(pair.log_prob for pair in pairs) / num_words))
        print(f"{name:13}{kind:6}{perplexity[name, kind]:6.2f}")
assert perplexity["fixed vector", "long"] > 2 * perplexity["attention", "long"]
assert perplexity["fixed vector", "long"] > perplexity["fixed vector", "short"]

# %% [markdown]
# **2. Which word was where?** Exchange two nouns of a German sentence, and its translation should have the same words
# as before, in another order. Take the longest group, exchange the first and the last noun (not counting the first
# word of the sentence), and count for each model how often the translation keeps its words.

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: with the fixed vector hardly ever: the exchange changes the vector, and other words come out. With attention
# more often, although the exchange may make bad German.
exchanged = {}
for i in groups[-1]:
    names = nouns(german[i])
    if len(names) > 1 and names[0] != names[-1]:
        other = {names[0]: names[-1], names[-1]: names[0]}
        exchanged[i] = re.sub(
            r"\w+", lambda match, other=other: other.get(match[0], match[0]), german[i]
        )
same = {}
for name, translator in models.items():
    after = translator.translate(list(exchanged.values()))
    pairs = [
        (translations[name][i].tokens, each.tokens)
        for i, each in zip(exchanged, after, strict=True)
    ]
    same[name] = np.mean([sorted(a) == sorted(b) for a, b in pairs])
    print(f"{name:13} the same words for {same[name]:.0%} of {len(exchanged)} changed sentences")
assert same["attention"] > same["fixed vector"] + 0.1

# %% [markdown]
# **3. Where does it stop?** Up to which length does the fixed vector keep half of the attention model's BLEU? Compute
# it from `scores`.

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: only for a few words.
ratios = [b / a for a, b in zip(scores["attention"], scores["fixed vector"], strict=True)]
halves = [label for label, ratio in zip(labels, ratios, strict=True) if ratio >= 0.5]
print("at least half:", halves)
assert 0 < len(halves) < len(labels)

# %% [markdown]
# ## What to remember
#
# - An encoder-decoder is a language model that also reads a source; the chain rule makes it one word at a time.
# - A vector of fixed size loses the content of long sentences. The translation stays fluent, so you may not notice.
# - Look at quality by length. One number for a whole test set hides this.
#
# [The bottleneck, measured](../bottleneck/README.md) repeats this with larger models, several seeds and real captions.
# Next: [attention by hand](2-attention.py).
