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
# # 2. Attention by hand
#
# Chapter 1 ended with a decoder that cannot know what the source sentence said, because everything has to pass through
# one vector. Attention lets the decoder look back at every step. In this chapter you compute a whole translation by
# hand: encoder, attention, decoder, each formula in a few lines of PyTorch, with the weights of a trained model. After
# each step we check that our numbers are the ones the package computes. Then we exchange the formula of attention for
# three others.
#
# About two minutes of two cores, most of it training.

# %%
import itertools
import logging

import course
import matplotlib.pyplot as plt
import numpy as np
import torch

import seq2seq_attn

logging.basicConfig(level=logging.WARNING)
torch.set_grad_enabled(False)
german, english = course.captions()["test"]
runs = course.train(["additive", "dot", "bilinear", "location"])
translators = {
    name.removesuffix("-s1"): seq2seq_attn.load(run, "cpu") for name, run in runs.items()
}
additive = translators["additive"]
weights = additive.model.state_dict()
for name, tensor in weights.items():
    print(f"{name:45}{tuple(tensor.shape)}")

# %% [markdown]
# These are all the numbers that the model has learned. The endings of the names give the axes of a tensor; `A` is the
# size of the scoring layer, `H` that of the decoder's state.
#
# We need a sentence to work with. Take one with a subordinate clause that the model translates as the reference does,
# and in which German and English differ in word order: the source positions that the model looks at jump back by two
# or more.


# %%
def jump_back(translation):
    """How far attention moves to the left at most, from one word to the next."""
    positions = [source for source, _ in translation.links()]
    return max(before - after for before, after in itertools.pairwise(positions))


candidates = [line for line in german if len(course.words(line)) in (10, 11, 12) and ", d" in line]
translation = next(
    each
    for each, line in zip(additive.translate(candidates, beam_size=1), candidates, strict=True)
    if each.text == english[german.index(line)] and jump_back(each) >= 2
)
sentence = german[english.index(translation.text)]
print(sentence, "->", translation.text)
print("the model's source:", translation.source_tokens)
print("the model's target:", [*translation.tokens, "<eos>"])

# %% [markdown]
# ## The encoder
#
# A gated recurrent unit ([Cho et al. 2014](https://arxiv.org/abs/1406.1078), section 2.3) updates a state $h$ with an
# input $x$:
#
# $$r = \sigma(W_r x + b_r + U_r h + d_r) \qquad z = \sigma(W_z x + b_z + U_z h + d_z)$$
#
# $$n = \tanh(W_n x + b_n + r \odot (U_n h + d_n)) \qquad h' = (1 - z) \odot n + z \odot h$$
#
# The reset gate $r$ decides how much of the old state goes into the new proposal $n$; the update gate $z$ decides how
# much of the old state stays. The file holds the rows for $r$, $z$ and $n$ in one matrix, one below the other. (The
# paper applies $r$ before the product with $U_n$; PyTorch and this package apply it after.)


# %%
def gru(x, h, W, b, U, d):
    """The next state. W and U hold the rows of r, z and n, one below the other."""
    x_r, x_z, x_n = (W @ x + b).chunk(3)
    h_r, h_z, h_n = (U @ h + d).chunk(3)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


# %% [markdown]
# One unit reads the sentence from left to right, another from right to left. The **value** of position $j$ is both
# states there, side by side ([Bahdanau et al. 2015](https://arxiv.org/abs/1409.0473), section 3.2):
#
# $$h_j = [h^{\rightarrow}_j ; h^{\leftarrow}_j]$$
#
# So $h_j$ knows the whole sentence, and most about the words around $j$. The last states of both directions, side by
# side, are the summary: the fixed vector of chapter 1. Here it only starts the decoder,
# $s_0 = \tanh(W_b \, h_{last} + b_b)$.


# %%
def encode(weights, ids):
    """The values h_j as the rows of a matrix, and the decoder's first state."""
    embedded = weights["encoder.embedding.weight"][ids]
    directions, last = [], []
    for number, inputs in enumerate((embedded, embedded.flip(0))):
        cell = f"encoder.layers.0.{number}"
        parts = ("input_weights.0", "input_bias_P", "recurrent_weight_PH", "recurrent_bias_P")
        W, b, U, d = (weights[f"{cell}.{part}"] for part in parts)
        h, states = torch.zeros(U.shape[1]), []
        for x in inputs:
            h = gru(x, h, W, b, U, d)
            states.append(h)
        directions.append(torch.stack(states))
        last.append(h)
    values = torch.cat([directions[0], directions[1].flip(0)], dim=1)
    bridge = "decoder.bridge.projection"
    return values, torch.tanh(
        weights[f"{bridge}.weight"] @ torch.cat(last) + weights[f"{bridge}.bias"]
    )


# Ids 0 to 3 of every vocabulary are special: padding, begin, end, unknown. No text has them, so they are added by hand.
BOS, EOS = (additive.target_vocab.tokens.index(name) for name in ("<bos>", "<eos>"))
source_ids = [*additive.source_vocab.ids_of(translation.source_tokens[:-1]), EOS]
values, s_0 = encode(weights, source_ids)
print("values", tuple(values.shape), " first state", tuple(s_0.shape))

# %% [markdown]
# ## The attention
#
# At step $i$ the decoder has a state $s_{i-1}$, the **query**. A small network with one hidden layer gives every
# source position a **score**: how well does position $j$ fit what the decoder needs now (Bahdanau et al. 2015, section
# 3.1 and appendix A.1.2)?
#
# $$e_{ij} = v^\top \tanh(W s_{i-1} + U h_j + b)$$
#
# The softmax makes positive **weights** that sum to 1, and the **context** is the average of the values by these
# weights:
#
# $$\alpha_{ij} = \frac{\exp(e_{ij})}{\sum_k \exp(e_{ik})} \qquad c_i = \sum_j \alpha_{ij} h_j$$
#
# Nothing in it is discrete, so gradients flow through everything, and the weights are learned from pairs of sentences
# alone. Nobody tells the model which word belongs to which.


# %%
def additive_scores(weights, query, values, previous):
    """e_ij for all positions j. (`previous` weights are not used; a later formula needs them.)"""
    attention = "decoder.attention"
    W, U = (
        weights[f"{attention}.query_projection.weight"],
        weights[f"{attention}.key_projection.weight"],
    )
    b, v = weights[f"{attention}.key_projection.bias"], weights[f"{attention}.score_weight_A"]
    return torch.tanh(W @ query + values @ U.T + b) @ v


scores = additive_scores(weights, s_0, values, None)
alpha = scores.exp() / scores.exp().sum()
for token, score, by_hand, theirs in zip(
    translation.source_tokens, scores, alpha, translation.attention[0], strict=True
):
    print(f"{token:12} score {score:7.3f}   weight {by_hand:.6f}   the package's {theirs:.6f}")
assert np.allclose(alpha, translation.attention[0], atol=1e-5)

# %% [markdown]
# The weights of the first step are those of the package, to the last digits of 32-bit arithmetic.
#
# ## The decoder
#
# With the context the decoder updates its state, and predicts a word from state, context and the previous word
# (Bahdanau et al. 2015, appendix A.2.2; where the paper takes a maxout layer, this model takes a $\tanh$):
#
# $$s_i = \mathrm{GRU}([E y_{i-1} ; c_i], s_{i-1}) \qquad t_i = \tanh(W_t [s_i ; c_i ; E y_{i-1}] + b_t)$$
#
# $$p(y_i \mid y_1, \ldots, y_{i-1}, x) = \mathrm{softmax}(W_o t_i + b_o)$$
#
# The function below walks through a given translation, adds up the log-probabilities of its words, and keeps the
# weights of every step. It takes the formula of the scores as an argument, because we want to exchange it. `change` is
# for experiments: it may replace the weights of a step.


# %%
def decode(weights, compute_scores, source_ids, target_ids, change=None):
    """The weights of each step, the log-probabilities of each step, and the log-probability of the target."""
    values, s = encode(weights, source_ids)
    alpha, y, total, maps, steps = torch.zeros(len(values)), BOS, 0.0, [], []
    cell = "decoder.cell"
    W = torch.cat([weights[f"{cell}.input_weights.0"], weights[f"{cell}.input_weights.1"]], dim=1)
    b, U, d = (
        weights[f"{cell}.{part}"]
        for part in ("input_bias_P", "recurrent_weight_PH", "recurrent_bias_P")
    )
    for i, target in enumerate([*target_ids, EOS]):
        alpha = torch.softmax(compute_scores(weights, s, values, alpha), dim=0)
        if change is not None:
            alpha = change(i, alpha)
        c = alpha @ values
        embedded = weights["embedding.weight"][y]
        s = gru(torch.cat([embedded, c]), s, W, b, U, d)
        joined = torch.cat([s, c, embedded])
        t = torch.tanh(
            weights["decoder.readout.projection.weight"] @ joined
            + weights["decoder.readout.projection.bias"]
        )
        log_probs = torch.log_softmax(
            weights["output.projection.weight"] @ t + weights["output.projection.bias"], dim=0
        )
        total, y = total + float(log_probs[target]), target
        maps.append(alpha)
        steps.append(log_probs)
    return torch.stack(maps), torch.stack(steps), total


target_ids = additive.target_vocab.ids_of(translation.tokens)
maps, steps, total = decode(weights, additive_scores, source_ids, target_ids)
print(f"log p(y | x) by hand {total:.5f}, the package's {translation.log_prob:.5f}")
assert np.allclose(maps, translation.attention, atol=1e-4)
assert abs(total - translation.log_prob) < 1e-3
assert steps.argmax(dim=1).tolist() == [
    *target_ids,
    EOS,
]  # each word is the most probable one at its step

# %% [markdown]
# That was the whole model: forty lines, and the same log-probability.
#
# ## Other formulas for the score
#
# [Luong, Pham and Manning (2015)](https://arxiv.org/abs/1508.04025), section 3.1, compare cheaper scores. **Dot** has
# no parameters, so query and values must be of the same size. **General** (here: `bilinear`) puts a matrix in between:
#
# $$e_{ij} = s_{i-1}^\top h_j \qquad\qquad e_{ij} = s_{i-1}^\top W h_j$$
#
# [Chorowski et al. (2015)](https://arxiv.org/abs/1506.07503), section 2.2, let the score see where the decoder looked
# one step before. $K$ filters $F$ run over the previous weights, and their features $f_{ij}$ enter the additive score.
# Such a **location-aware** attention can learn to move on, and not to read a word twice:
#
# $$f_{ij} = \sum_{k=-r}^{r} F_k \, \alpha_{i-1,j+k} \qquad e_{ij} = v^\top \tanh(W s_{i-1} + U h_j + V f_{ij} + b)$$


# %%
def dot_scores(weights, query, values, previous):
    return values @ query


def bilinear_scores(weights, query, values, previous):
    return values @ weights["decoder.attention.key_projection.weight"].T @ query


def location_scores(weights, query, values, previous):
    attention = "decoder.attention"
    W, U, V = (
        weights[f"{attention}.{name}_projection.weight"] for name in ("query", "key", "location")
    )
    b, v = weights[f"{attention}.key_projection.bias"], weights[f"{attention}.score_weight_A"]
    filters = weights[f"{attention}.filters.weight"][:, 0]  # K filters of 2 r + 1 numbers
    radius = filters.shape[1] // 2
    padded = torch.cat([torch.zeros(radius), previous, torch.zeros(radius)])
    f = torch.stack([filters @ padded[j : j + 2 * radius + 1] for j in range(len(values))])
    return torch.tanh(W @ query + values @ U.T + f @ V.T + b) @ v


formulas = {
    "additive": additive_scores,
    "dot": dot_scores,
    "bilinear": bilinear_scores,
    "location": location_scores,
}
by_name = {}
for name, translator in translators.items():
    [package] = translator.score(
        [sentence], [translation.text]
    )  # forced decoding: each model reads the same translation
    maps, _, total = decode(translator.model.state_dict(), formulas[name], source_ids, target_ids)
    print(f"{name:9} log p by hand {total:9.5f}, the package's {package.log_prob:9.5f}")
    assert np.allclose(maps, package.attention, atol=1e-4)
    assert abs(total - package.log_prob) < 1e-3
    by_name[name] = maps

# %%
figure, all_axes = plt.subplots(1, 4, figsize=(12, 3.6), sharey=True)
for axes, (name, maps) in zip(all_axes, by_name.items(), strict=True):
    axes.imshow(maps, cmap="Blues", vmin=0, vmax=1)
    axes.set_title(name)
    axes.set_xticks(range(len(translation.source_tokens)), translation.source_tokens, rotation=90)
    axes.set_yticks(range(len(translation.tokens) + 1), [*translation.tokens, "<eos>"])
plt.tight_layout()
plt.show()

# %% [markdown]
# Rows are the English words in the order in which they are written, columns the German ones. German puts the verb of a
# subordinate clause last, English does not. To write it, the decoder has to look ahead and come back, and so the dark
# cells leave the diagonal.
#
# ## Is it what the model uses?
#
# A map is a picture of weights. Does the decoder really take its words from where the weights are? That can be tested:
# change the weights and see what happens. In sentences with two nouns we wait for the step that writes the first noun,
# put all weight on the *second* noun's position, and look at the word that the model now writes.

# %%
swapped = tried = 0
examples = []
for each in additive.translate(german[:150]):
    rows = each.attention
    looks = [(i, int(row.argmax())) for i, row in enumerate(rows[:-1]) if row.max() > 0.8]
    nouns = [
        (i, j)
        for i, j in looks
        if j > 0 and each.source_tokens[j][0].isupper() and each.tokens[i][0].islower()
    ]
    if len(nouns) < 2 or nouns[0][1] == nouns[1][1]:
        continue
    (first, _), (second, position) = nouns[:2]
    ids = additive.target_vocab.ids_of(each.tokens)

    def look_elsewhere(i, alpha, step=first, position=position):
        return (
            torch.nn.functional.one_hot(torch.tensor(position), len(alpha)).float()
            if i == step
            else alpha
        )

    source = [*additive.source_vocab.ids_of(each.source_tokens[:-1]), EOS]
    _, steps, _ = decode(weights, additive_scores, source, ids, change=look_elsewhere)
    written = additive.target_vocab.tokens_of([int(steps[first].argmax())])[0]
    tried += 1
    swapped += written == each.tokens[second]
    examples.append(f"{each.text}  |  {each.tokens[first]} -> {written}")
print(*examples[:5], sep="\n")
print(f"{swapped} of {tried}: the model writes the second noun where it wrote the first")
assert swapped > 0.5 * tried

# %% [markdown]
# In most cases the other noun appears: the weights decide what is written. This holds for this kind of model, whose
# only way to the source is the context. It is not a law about attention in general. In deep models every state has
# seen the whole sentence many times over, and [Jain and Wallace (2019)](https://arxiv.org/abs/1902.10186) show
# attention weights that can be changed without an effect. Test, do not trust.
#
# ## Exercises
#
# **1. A useless parameter.** Somebody proposes $e_{ij} = v^\top \tanh(W s_{i-1} + U h_j + b) + b'$, with one more
# learned number $b'$. Show that it can change nothing.

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: the softmax does not change if the same number is added to all scores, as exp(b') cancels in the fraction.
assert torch.allclose(torch.softmax(scores + 5.0, dim=0), torch.softmax(scores, dim=0), atol=1e-6)

# %% [markdown]
# **2. Padding.** Sentences of different lengths share a batch, the shorter ones filled with padding. Take `scores -
# 10`, which give the same weights (exercise 1), and append three padded positions with a score of 0. How much weight
# do they take? What must their score be so that the weights of real positions stay the same?

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: a score of 0 is a score like any other, and takes weight from real words. Only minus infinity gives weight 0.
lower, zeros, never = scores - 10, torch.zeros(3), torch.full((3,), -torch.inf)
taken = torch.softmax(torch.cat([lower, zeros]), dim=0)[-3:].sum()
print(f"padding with score 0 takes {taken:.0%} of the weight")
assert taken > 0.1
masked = torch.softmax(torch.cat([lower, never]), dim=0)
assert torch.equal(masked[-3:], torch.zeros(3))
assert torch.allclose(masked[:-3], torch.softmax(scores, dim=0), atol=1e-6)

# %% [markdown]
# **3. Why scale?** Draw two random vectors of size $d$ from a standard normal distribution, many times, for $d$ = 16,
# 64 and 256. How does the standard deviation of their dot product grow with $d$? What does that do to the softmax of
# ten such scores, and why do [Vaswani et al. (2017)](https://arxiv.org/abs/1706.03762), section 3.2.1, divide by
# $\sqrt{d}$?

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: it is the square root of d, as the variances of d independent products add up. Large scores make the softmax
# put nearly all weight on one position, where its gradient is nearly 0; divided by sqrt(d), scores keep a deviation of
# 1.
torch.manual_seed(1)
for d in (16, 64, 256):
    products = (torch.randn(20_000, d) * torch.randn(20_000, d)).sum(dim=1)
    sharp, soft = (
        torch.softmax(x.view(-1, 10), dim=1).max(dim=1).values.mean()
        for x in (products, products / d**0.5)
    )
    print(
        f"d = {d:3}: deviation {products.std():5.2f}, largest weight {sharp:.2f}, with scaling {soft:.2f}"
    )
    assert abs(products.std() / d**0.5 - 1) < 0.05
    assert sharp > soft + 0.2

# %% [markdown]
# **4. Without a choice.** Use `change` to give all positions the same weight at every step. What happens to the
# log-probability of our translation? What does this model then have in common with the fixed vector of chapter 1?

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: it collapses. With equal weights, the context is the same average at every step: one vector for the whole
# sentence.
_, _, uniform = decode(
    weights,
    additive_scores,
    source_ids,
    target_ids,
    change=lambda i, alpha: torch.full_like(alpha, 1 / len(alpha)),
)
print(f"log p with attention {translation.log_prob:.2f}, with equal weights {uniform:.2f}")
assert uniform < translation.log_prob - 5

# %% [markdown]
# **5. Sharp or soft?** The entropy of a distribution over positions, $-\sum_j \alpha_{ij} \log \alpha_{ij}$, is 0 if
# one position has all the weight. Compute the mean entropy of each of the four models on 100 test sentences, and their
# log-probability of the references. Is the sharpest attention the best?

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# Answer: no. `score` reads the references by forced decoding. The two scores without a tanh, dot and bilinear, can
# grow large. They make the sharpest weights, and give the references the lowest probability.
summary = {}
for name, translator in translators.items():
    pairs = translator.score(german[:100], english[:100])
    entropies = [
        -(row * np.log(np.maximum(row, 1e-12))).sum() for pair in pairs for row in pair.attention
    ]
    summary[name] = float(np.mean(entropies)), float(np.mean([pair.log_prob for pair in pairs]))
    print(f"{name:9} entropy {summary[name][0]:.2f}, log p of a reference {summary[name][1]:7.2f}")
for name in ("dot", "bilinear"):
    assert summary[name][0] < summary["additive"][0]
    assert summary[name][1] < summary["additive"][1]

# %% [markdown]
# ## What to remember
#
# - Attention is a score, a softmax and an average. The formulas differ in the score alone.
# - The decoder's memory now grows with the sentence: as many vectors as words.
# - Weights are learned from translations alone, and in this model they decide which word comes next.
#
# [Which mechanism to choose](../mechanisms.md) has the measurements of all attentions; the package computes each
# in one short file, such as [additive.py](../../seq2seq_attn/model/attention/additive.py). Next:
# [search](3-search.py).
