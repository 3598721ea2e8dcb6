"""Exported graphs make the steps of the model, at other sizes than those they were traced with, for every variant."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.export.graphs import export_graphs
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.text.vocab import BOS, EOS

NUM_IDS, NUM_STEPS = 23, 6
REFUSED = {
    ("attention", "hierarchical"): "cannot be exported",
    ("output", "history_pointer"): "earlier target tokens",
}
AXES = ("attention", "cell", "decoder", "encoder", "normalizer", "output")
VARIANTS = [(axis, name) for axis in AXES for name in packaged_variants(axis)]
SAMPLE = [("attention", "self_history"), ("output", "copy")]  # test_interpreter.py exports others


def build(axis: str, name: str) -> Seq2Seq:
    """A small model with that variant. The encoder `embeddings` has no recurrence, so that its export is fast."""
    torch.manual_seed(1)
    settings: dict[str, Any] = {
        "encoder": {"name": "embeddings", "hidden_size": 6, **({"cell": "gru"} if axis == "cell" else {})},
        "decoder": {"name": "bahdanau"},
        "attention": {"name": "additive"},
        "output": {"name": "softmax"},
    }
    if axis in ("attention", "output"):
        settings[axis] = {"name": name}
    elif axis == "decoder":
        settings["decoder"] = {"name": name}
    elif axis == "normalizer":
        settings["attention"]["normalizer"] = name
    elif axis == "encoder":
        settings["encoder"]["name"] = name
    else:
        settings["encoder"] = {"name": "bidirectional", "cell": name, "hidden_size": 6}
        settings["decoder"]["cell"] = name
    config = ModelConfig.model_validate({"embedding_size": 12, "hidden_size": 12, "readout_size": 12, **settings})
    return build_model(config, num_source_ids=NUM_IDS, num_target_ids=NUM_IDS).eval()


def marks(variant: tuple[str, str]) -> Any:
    return pytest.param(*variant, id="-".join(variant), marks=() if variant in SAMPLE else pytest.mark.slow)


@pytest.mark.parametrize(("axis", "name"), [marks(variant) for variant in VARIANTS if variant not in REFUSED])
@torch.no_grad()
def test_graphs_make_the_steps_of_the_model(axis: str, name: str) -> None:
    model = build(axis, name)
    graphs = export_graphs(model)
    prepare, step = graphs.prepare.module(), graphs.step.module()
    ids_BS = torch.randint(4, NUM_IDS, (4, 11))
    ids_BS[:, -1] = EOS
    memory, state = model.prepare(SourceBatch(ids_BS, torch.full((4,), 11), ids_BS))
    memory_tensors, state_tensors = prepare(ids_BS)
    assert [len(memory_tensors), len(state_tensors)] == [len(graphs.memory), len(graphs.state)]
    ids_B = torch.full((4,), BOS)
    for _ in range(NUM_STEPS):
        expected = model.step(ids_B, state, memory)
        log_probs_BV, weights_BS, state_tensors = step(ids_B, memory_tensors, state_tensors)
        torch.testing.assert_close(log_probs_BV, model.output.log_probs(expected, memory), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(weights_BS, expected.weights_BS, rtol=1e-5, atol=1e-5)
        state, ids_B = expected.state, log_probs_BV.argmax(dim=1)


@pytest.mark.parametrize(("variant", "reason"), REFUSED.items(), ids=lambda value: "-".join(value))
def test_a_model_that_cannot_be_exported_says_why(variant: tuple[str, str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        export_graphs(build(*variant))
