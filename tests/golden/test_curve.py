"""The stored loss curves (`scripts/lab golden` regenerates them and prints the difference)."""

from pathlib import Path

import pytest
import torch

from scripts.laboratory.golden import loss_curve, repeatable_attentions
from seq2seq_attn.files import read_json
from seq2seq_attn.model.variants import packaged_variants

STORED = read_json(Path(__file__).parent / "curves.json")


@pytest.mark.parametrize("variant", packaged_variants("attention"))
def test_the_curve_is_the_stored_one(variant):
    # 1e-4: other processors sum in another order
    assert loss_curve(variant) == pytest.approx(STORED[variant], rel=1e-4)


def test_the_same_seed_gives_the_same_curve():
    assert loss_curve("additive", 10) == loss_curve("additive", 10)


@pytest.mark.device
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("variant", repeatable_attentions())
def test_the_curve_on_a_gpu(variant):
    assert loss_curve(variant, device="cuda") == pytest.approx(STORED[variant], rel=1e-3)
