"""A variant from `--import` that breaks the contract of its axis is refused before data is prepared."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from seq2seq_attn.config import load_config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.variants import import_variants
from seq2seq_attn.train.check import check_config

HEAD = """
from typing import NamedTuple
import torch
from torch import Tensor, nn
from seq2seq_attn.model.attention.additive import Additive
from seq2seq_attn.model.attention.base import Attended, Stateless
from seq2seq_attn.model.encoder.bidirectional import Bidirectional
from seq2seq_attn.model.normalizer import softmax
from seq2seq_attn.model.output.softmax import Softmax
from seq2seq_attn.train.objectives.base import Objective

class Mine(Additive):
    def __init__(self, *, query_size: int, memory_size: int) -> None:
        super().__init__(query_size=query_size, memory_size=memory_size, normalizer=softmax.weights)
"""
ATTENTION = "model.attention.name=wrong:Mine"
BROKEN = {
    "weights that sum to 2": (
        ATTENTION,
        "def step(self, query, memory, state):\n"
        "    context, weights, state, _ = super().step(query, memory, state)\n"
        "    return Attended(context, 2 * weights, state)",
        r"weights sum to 1; seen: 2, ",
    ),
    "a negative weight": (
        ATTENTION,
        "def step(self, query, memory, state):\n"
        "    context, weights, state, _ = super().step(query, memory, state)\n"
        "    return Attended(context, weights - weights.roll(1, 1) + weights, state)",
        "never negative; seen: -",
    ),
    "weight on padding": (
        ATTENTION,
        "def step(self, query, memory, state):\n"
        "    return super().step(query, memory._replace(mask_BS=torch.ones_like(memory.mask_BS)), state)",
        "0 on padding; seen: 0[.]",
    ),
    "a dict as state": (
        ATTENTION,
        "def prepare(self, encoded, source):\n    return super().prepare(encoded, source)[0], {'total': None}",
        "state is a named tuple of tensors; seen: dict",
    ),
    "a plain tuple as memory": (
        ATTENTION,
        "def prepare(self, encoded, source):\n"
        "    memory, state = super().prepare(encoded, source)\n    return tuple(memory), state",
        "memory is a named tuple of tensors; seen: tuple",
    ),
    "positions before rows": (
        ATTENTION,
        "def prepare(self, encoded, source):\n"
        "    memory, state = super().prepare(encoded, source)\n"
        "    return memory._replace(keys_BSA=memory.keys_BSA.transpose(0, 1)), state",
        "memory.keys_BSA is batch-first",
    ),
    "a context that counts padding": (
        ATTENTION,
        "def step(self, query, memory, state):\n"
        "    context, weights, state, _ = super().step(query, memory, state)\n"
        "    return Attended(context + memory.mask_BS.shape[1], weights, state)",
        "padding does not change results; seen: context_BM",
    ),
    "a state that cannot be reordered": (
        ATTENTION,
        "def step(self, query, memory, state):\n"
        "    self.rows = max(getattr(self, 'rows', 0), len(query) // 2)\n"
        "    assert self.training or len(query) != 6, 'rows of a beam'\n"
        "    return super().step(query, memory, state)",
        r"a search step works; seen: .*wrong.py:\d+: AssertionError: rows of a beam",
    ),
    "an encoder that reads padding": (
        "model.encoder.name=wrong:Mine",
        "def forward(self, source):\n"
        "    encoded = super().forward(source)\n"
        "    return encoded._replace(values_BSM=encoded.values_BSM + source.ids_BS.shape[1])",
        "padding does not change results; seen: (context|features)",
    ),
    "probabilities that sum to 2": (
        "model.output.name=wrong:Mine",
        "def log_probs(self, step, memory):\n    return super().log_probs(step, memory) + 0.6931",
        "probabilities sum to 1; seen: 2, ",
    ),
    "a loss of its own": (
        "model.output.name=wrong:Mine",
        "def score(self, step, memory, targets_N):\n"
        "    log_probs, means = super().score(step, memory, targets_N)\n    return 2 * log_probs, means\n"
        "def target_log_probs(self, outputs, batch):\n"
        "    return super().target_log_probs(outputs, batch) / 4",
        "the loss is that of the probabilities",
    ),
    "a mean in place of a sum": (
        "train.objectives={'wrong:Mine': {}}",
        "def term(self, outputs, batch):\n    return outputs.weights_TBS.square().mean()",
        "padding does not change results; seen: the sum over pairs",
    ),
    "a term that is not finite": (
        "train.objectives={'wrong:Mine': {}}",
        "def term(self, outputs, batch):\n    return outputs.weights_TBS.log().sum()",
        "a term is finite; seen: -?(inf|nan)",
    ),
}
CLASSES = {
    "model.encoder.name": "class Mine(Bidirectional):\n"
    "    def __init__(self, *, embedding, build_cell, hidden_size: int):\n"
    "        super().__init__(embedding=embedding, build_cell=build_cell, hidden_size=hidden_size,\n"
    "                         num_layers=1, dropout=0.0)",
    "model.output.name": "class Mine(Softmax):\n    def __init__(self, *, feature_size: int, num_ids: int):\n"
    "        super().__init__(feature_size, num_ids)",
    "train.objectives": "class Mine(Objective):",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder; nothing that a test imports from it is known to the next one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("seq2seq_attn.model.variants._imported", {})
    yield tmp_path
    sys.modules.pop("wrong", None)


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_rule_names_the_variant_the_rule_and_what_was_seen(folder: Path, case: str) -> None:
    setting, methods, message = BROKEN[case]
    key = setting.partition("=")[0]
    own = f"\n{CLASSES[key]}\n" if key in CLASSES else ""
    body = "\n".join(f"    {line}" for line in methods.splitlines())
    (folder / "wrong.py").write_text(f"{HEAD}{own}{body}\n", encoding="utf-8")
    import_variants("wrong")
    with pytest.raises(UsageError, match=rf"^{re.escape(key)}.*wrong:Mine.*{message}"):
        check_config(load_config(["quickstart"], [setting, "model.tie_embeddings=none"]))


def test_a_normalizer_with_weight_on_padding(folder: Path) -> None:
    code = "def weights(scores, mask):\n    return scores.softmax(dim=-1)\n"
    (folder / "wrong.py").write_text(code, encoding="utf-8")
    import_variants("wrong")
    with pytest.raises(UsageError, match=r"model\.attention\.normalizer='wrong'.*0 on padding"):
        check_config(load_config(["quickstart"], ["model.attention.normalizer=wrong"]))


FILES = ["data.corpus=files", "data.train=a", "data.valid=b", "data.target_language=en", "data.extra=[]"]


@pytest.mark.parametrize(
    "settings",
    [
        [],
        [*FILES, "data.source_languages=[de, fr]"],
        [*FILES, "data.source_language=vectors"],
        ["model.output.name=copy", "model.tie_embeddings=none"],
    ],
)
def test_a_right_one_passes_and_draws_nothing(folder: Path, settings: list[str]) -> None:
    (folder / "wrong.py").write_text(HEAD, encoding="utf-8")
    import_variants("wrong")
    before = torch.get_rng_state()
    check_config(load_config(["quickstart"], [ATTENTION, *settings]))
    assert torch.equal(torch.get_rng_state(), before)
