"""Each decoder against its paper's formulas, written out once more."""

import pytest
import torch

from seq2seq_attn.data.batch import collate_source

SOURCE = collate_source([[5, 9, 4, 11], [7], [8, 8, 6]])


@pytest.fixture
def embedded():
    return torch.randn(2, 3, 11, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def run(model, embedded):
    memory, state = model.prepare(SOURCE)
    steps = []
    for embedded_BE in embedded:
        steps.append(model.decoder.step(embedded_BE, state, memory))
        state = steps[-1].state
    return memory, steps


def hidden_of(cell, state, *inputs):
    return cell.step(cell.project_inputs(*inputs), state)


def test_bahdanau_asks_with_the_previous_state(make_model, embedded):
    model = make_model().eval()
    decoder = model.decoder
    memory, steps = run(model, embedded)
    asked = decoder.attention.step(steps[0].hidden_BH, memory.attention, steps[0].state.attention)
    torch.testing.assert_close(steps[1].context_BM, asked.context_BM)
    state = hidden_of(decoder.cell, steps[0].state.cell, embedded[1], asked.context_BM)
    torch.testing.assert_close(steps[1].hidden_BH, state.hidden_BH)
    joined = torch.cat([state.hidden_BH, asked.context_BM, embedded[1]], dim=1)
    torch.testing.assert_close(steps[1].features_BF, torch.tanh(decoder.readout.projection(joined)))


@pytest.mark.parametrize("feeds", [True, False])
def test_luong_asks_with_the_current_state(make_model, embedded, feeds):
    model = make_model(decoder={"name": "luong", "options": {"input_feeding": feeds}}).eval()
    decoder = model.decoder
    memory, steps = run(model, embedded)
    fed = steps[0].features_BF if feeds else steps[0].features_BF[:, :0]
    state = hidden_of(decoder.cell, steps[0].state.cell, embedded[1], fed)
    asked = decoder.attention.step(state.hidden_BH, memory.attention, steps[0].state.attention)
    torch.testing.assert_close(steps[1].weights_BS, asked.weights_BS)
    joined = torch.cat([asked.context_BM, state.hidden_BH], dim=1)
    torch.testing.assert_close(steps[1].features_BF, torch.tanh(decoder.attentional(joined)))


def test_conditional_attends_between_its_cells(make_model, embedded):
    model = make_model(decoder={"name": "conditional"}).eval()
    decoder = model.decoder
    memory, steps = run(model, embedded)
    between = hidden_of(decoder.first_cell, steps[0].state.cell, embedded[1])
    asked = decoder.attention.step(between.hidden_BH, memory.attention, steps[0].state.attention)
    after = hidden_of(decoder.second_cell, between, asked.context_BM)
    torch.testing.assert_close(steps[1].context_BM, asked.context_BM)
    torch.testing.assert_close(steps[1].hidden_BH, after.hidden_BH)
