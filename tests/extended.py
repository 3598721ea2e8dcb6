"""Extended ids of pairs that a test writes as ids."""

from collections.abc import Sequence

from seq2seq_attn.text.vocab import SPECIALS, ExtendedIds, Vocab, extended_ids


def extend(source: Sequence[int], target: Sequence[int], num_ids: int) -> ExtendedIds:
    """The extended ids of a pair of ids. Those from `num_ids` on are tokens that the target
    vocabulary lacks, and equal tokens have equal ids on both sides."""
    vocab = Vocab([*SPECIALS, *map(str, range(len(SPECIALS), num_ids))])
    return extended_ids([*map(str, source)], [*map(str, target)], vocab)
