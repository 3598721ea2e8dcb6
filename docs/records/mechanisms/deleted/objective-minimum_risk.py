"""Minimum risk training: minimize the expected cost of translations sampled from the model (Shen et al. 2016, "Minimum
risk training for neural machine translation", section 3).

    R = sum_{y in S(x)} Q(y | x) Delta(y, y*)        Q(y | x) = P(y | x)^alpha / sum_{y' in S(x)} P(y' | x)^alpha

S(x) holds the reference y* and `num_samples` translations drawn from the model, without duplicates. Delta is 1 - GLEU
(`metrics/gleu.py`) of the model's own tokens; the paper's is 1 - sentence BLEU of words. alpha is `sharpness`. The mean
is over sentence pairs.

The paper trains a finished model on R alone. Here R is added to the cross-entropy, as in Wu et al. 2016. Use it for a
second stage (`train.start_from`), as it learns from the model's own translations. It is slow: each update draws
`num_samples` translations of each source, and makes a pass over all of them.
"""
