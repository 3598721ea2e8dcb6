"""The vocabulary: tokens to ids and back. torchtext's `Vocab` counts and cuts here, and only here."""

from __future__ import annotations

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")
