"""Extended ids of pairs that a test writes as ids."""

from seq2seq_attn.text.vocab import SPECIALS, Vocab, extended_ids


def extend(source, target, num_ids):
    """The extended ids of a pair of ids. Those from `num_ids` on are tokens that the target
    vocabulary lacks, and equal tokens have equal ids on both sides."""
    vocab = Vocab([*SPECIALS, *map(str, range(len(SPECIALS), num_ids))])
    return extended_ids([*map(str, source)], [*map(str, target)], vocab)
