"""Toy tasks on ids: reverse a sequence. Small enough to learn in a test, impossible to guess."""

import torch

from seq2seq_attn.data.batch import collate

FIRST_ID = 4
DRAWING = ("hard", "monotonic")
"""attention variants that draw random numbers in training; another device, or a CUDA graph, draws others"""


def reverse_pairs(num_pairs, *, num_types, max_length, seed):
    """Sources of 1 to `max_length` random ids; the target is the source reversed."""
    generator = torch.Generator().manual_seed(seed)
    sources = []
    for _ in range(num_pairs):
        length = int(torch.randint(1, max_length + 1, (1,), generator=generator))
        sources.append(torch.randint(FIRST_ID, FIRST_ID + num_types, (length,), generator=generator).tolist())
    return sources, [source[::-1] for source in sources]


def reverse_batch(num_pairs, **options):
    """The same as a `Batch`."""
    sources, targets = reverse_pairs(num_pairs, **options)
    return collate(sources, targets, range(num_pairs))
