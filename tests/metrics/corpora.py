"""Small made-up corpora for the metric tests: references and systems that spoil them."""

import random

_WORDS = (
    'A a man woman dog Dog runs is two in the park , . with red "blue" over an old bench while '
    "children play"
).split()


def make_references(num_pairs, seed=0, max_length=25):
    rng = random.Random(seed)
    return [" ".join(rng.choices(_WORDS, k=rng.randint(1, max_length))) for _ in range(num_pairs)]


def make_hypotheses(references, seed, noise):
    """References with words dropped, swapped and replaced, each with a probability that grows with
    `noise`."""
    rng = random.Random(seed)
    hypotheses = []
    for reference in references:
        words = [word for word in reference.split() if rng.random() > noise / 3]
        words = [rng.choice(_WORDS) if rng.random() < noise / 3 else word for word in words]
        for position in range(len(words) - 1):
            if rng.random() < noise:
                words[position], words[position + 1] = words[position + 1], words[position]
        hypotheses.append(" ".join(words))
    return hypotheses
