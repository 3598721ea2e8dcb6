import pytest
import torch
from torch import nn

from seq2seq_attn.model.build import initialize


def holding(name, *shape):
    module = nn.Module()
    setattr(module, name, nn.Parameter(torch.empty(shape)))
    return module


@pytest.mark.parametrize(
    ("module", "bound"),
    [
        (
            nn.Conv1d(1, 100, 7, bias=False),
            (6 / (7 + 700)) ** 0.5,
        ),  # Glorot, where filters count their width
        (
            holding("heads_KHA", 8, 30, 20),
            (6 / 50) ** 0.5,
        ),  # each matrix of a stack is one of its own
        (
            holding("score_weight_Na", 4, 100),
            0.1,
        ),  # 1 / sqrt(size): the score vector of each head is a vector
    ],
)
def test_the_bounds_of_weights(module, bound):
    torch.manual_seed(0)
    initialize(module)
    [weights] = module.parameters()
    assert 0.9 * bound < weights.abs().max() <= bound


def test_a_scalar_and_the_factors_of_normalizations_keep_their_values():
    torch.manual_seed(0)
    module = nn.Module()
    module.temperature = nn.Parameter(torch.tensor(3.0))
    module.input_norm_P = nn.Parameter(torch.ones(4))
    module.layers = nn.ModuleList([nn.LayerNorm(4), nn.RMSNorm(4)])
    initialize(module)
    assert module.temperature.item() == 3.0
    assert all(
        (factors == 1.0).all()
        for factors in (module.input_norm_P, *(one.weight for one in module.layers))
    )


def test_a_module_whose_name_begins_like_norm_is_initialized():
    torch.manual_seed(0)
    module = nn.Module()
    for name in ("normalized_projection", "normalizer"):
        setattr(module, name, nn.Linear(30, 20))
        nn.init.constant_(getattr(module, name).weight, 7.0)
    initialize(module)
    for layer in (module.normalized_projection, module.normalizer):
        assert 0.0 < layer.weight.abs().max() <= (6 / 50) ** 0.5


def test_a_module_sets_values_of_its_own_after_the_rule_has_set_all_others():
    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 2)
            self.second = nn.Linear(3, 2)

        def init_parameters(self):
            self.first.bias.fill_(2.0)

    plain = nn.ModuleDict({"first": nn.Linear(3, 2), "second": nn.Linear(3, 2)})
    gate = Gate()
    for module in (plain, gate):
        torch.manual_seed(0)
        initialize(module)
    assert gate.first.bias.tolist() == [2.0, 2.0]
    assert torch.equal(gate.first.weight, plain["first"].weight)
    assert torch.equal(gate.second.weight, plain["second"].weight)
    assert torch.equal(gate.second.bias, torch.zeros(2))
