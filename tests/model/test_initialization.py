import torch
from torch import nn

from seq2seq_attn.model.build import initialize


def test_filters_count_their_width():
    """Glorot's bound for K filters of width 7 over one channel is sqrt(6 / (7 + 7 K))."""
    torch.manual_seed(0)
    convolution = nn.Conv1d(1, 100, 7, bias=False)
    initialize(convolution)
    bound = (6 / (7 + 700)) ** 0.5
    assert 0.9 * bound < convolution.weight.abs().max() <= bound


def test_each_matrix_of_a_stack_is_one_of_its_own():
    torch.manual_seed(0)
    module = nn.Module()
    module.heads_KHA = nn.Parameter(torch.empty(8, 30, 20))
    initialize(module)
    bound = (6 / 50) ** 0.5
    assert 0.9 * bound < module.heads_KHA.abs().max() <= bound
