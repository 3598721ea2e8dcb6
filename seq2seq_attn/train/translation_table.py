"""Give a new model's output the translation table that it asks for (`Output.needs_table`). It is estimated only when
training starts, so a resumed or moved run needs no training data for it."""

from __future__ import annotations

from seq2seq_attn.data.store import PairStore
from seq2seq_attn.model.output.base import Output
from seq2seq_attn.text.ibm1 import estimate_table


def set_table(output: Output, pairs: PairStore) -> list[str]:
    """Estimate t(target | source) by IBM model 1 from the training pairs; lines for the log."""
    if not output.needs_table:
        return []
    return [output.set_table(estimate_table(pairs.source, pairs.target, len(pairs)))]
