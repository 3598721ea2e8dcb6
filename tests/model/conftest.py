import pytest
import torch

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import collate
from seq2seq_attn.model.build import build_model

NUM_SOURCE_IDS = 29
NUM_TARGET_IDS = 31
SOURCE_LENGTHS = (7, 3, 0, 5, 2)
TARGET_LENGTHS = (4, 6, 1, 0, 3)


@pytest.fixture
def make_model():
    def make(name="additive", *, dtype=torch.float64, seed=0, **overrides):
        torch.manual_seed(seed)
        values = {
            "embedding_size": 11,
            "hidden_size": 14,
            "readout_size": 11,
            "tie_embeddings": "target",
            "attention": {"name": name},
            "encoder": {"hidden_size": 7, "num_layers": 2},
            "dropout": {
                "embedding": 0.2,
                "encoder": 0.2,
                "readout": 0.2,
            },
        } | overrides
        model = build_model(
            ModelConfig(**values), num_source_ids=NUM_SOURCE_IDS, num_target_ids=NUM_TARGET_IDS
        )
        return model if dtype == torch.float32 else model.to(dtype)  # fake tensors cannot be moved

    return make


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(1)

    def sentences(lengths, num_ids):
        return [torch.randint(4, num_ids, (n,), generator=generator).tolist() for n in lengths]

    source = sentences(SOURCE_LENGTHS, NUM_SOURCE_IDS)
    target = sentences(TARGET_LENGTHS, NUM_TARGET_IDS)
    return collate(source, target, range(len(source)))
