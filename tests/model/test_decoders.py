"""Each decoder, of one layer and of several, against its paper's formulas, written out once
more."""

import pytest
import torch
from torch.testing import assert_close

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.model.cell.base import Stack
from seq2seq_attn.model.cell.gru import GRU as build_gru
from seq2seq_attn.model.cell.lstm import LSTM as build_lstm
from seq2seq_attn.model.decoder.base import DecoderSettings
from tests.modules import randomize

SOURCE = collate_source([[5, 9, 4, 11], [7], [8, 8, 6]])


@pytest.fixture
def embedded():
    return torch.randn(2, 3, 11, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def steps(embedded):
    def steps(model):
        """The memory and the first two steps."""
        memory, state = model.prepare(SOURCE)
        first = model.decoder.step(embedded[0], state, memory)
        return memory, first, model.decoder.step(embedded[1], first.state, memory)

    return steps


def advance(cell, state, *inputs):
    return cell.step(cell.project_inputs(*inputs), state)


@pytest.mark.parametrize("num_layers", [1, 3])
def test_bahdanau_asks_with_the_previous_state(make_model, embedded, steps, num_layers):
    model = make_model(decoder={"num_layers": num_layers}).eval()
    decoder = model.decoder
    memory, first, second = steps(model)
    asked = decoder.attention.step(first.hidden_BH, memory.attention, first.state.attention)
    assert_close(second.context_BM, asked.context_BM)
    state = advance(decoder.cell, first.state.cell, embedded[1], asked.context_BM)
    hidden_BH = decoder.cell.hidden(state)
    assert_close(second.hidden_BH, hidden_BH)
    joined = torch.cat([hidden_BH, asked.context_BM, embedded[1]], dim=1)
    assert_close(second.features_BF, torch.tanh(decoder.readout.projection(joined)))


@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("feeds", [True, False])
def test_luong_asks_with_the_current_state(make_model, embedded, steps, feeds, num_layers):
    options = {"input_feeding": feeds}
    settings = {
        "name": "luong",
        "num_layers": num_layers,
        "options": options,
    }
    model = make_model(decoder=settings).eval()
    decoder = model.decoder
    memory, first, second = steps(model)
    fed = first.features_BF if feeds else torch.empty(3, 0, dtype=torch.float64)
    state = advance(decoder.cell, first.state.cell, embedded[1], fed)
    hidden_BH = decoder.cell.hidden(state)
    asked = decoder.attention.step(hidden_BH, memory.attention, first.state.attention)
    assert_close(second.weights_BS, asked.weights_BS)
    assert_close(second.hidden_BH, hidden_BH)
    joined = torch.cat([asked.context_BM, hidden_BH], dim=1)
    assert_close(second.features_BF, torch.tanh(decoder.attentional(joined)))


@pytest.mark.parametrize("num_layers", [1, 3])
def test_conditional_attends_between_the_cells_of_its_first_layer(
    make_model, embedded, steps, num_layers
):
    model = make_model(decoder={"name": "conditional", "num_layers": num_layers}).eval()
    decoder = model.decoder
    memory, first, second = steps(model)
    layers = [decoder.second_cell]
    states = [first.state.cell]
    if num_layers > 1:
        layers = decoder.second_cell.layers
        states = first.state.cell.layers
    between = advance(decoder.first_cell, states[0], embedded[1])
    asked = decoder.attention.step(between.hidden_BH, memory.attention, first.state.attention)
    assert_close(second.context_BM, asked.context_BM)
    output = advance(layers[0], between, asked.context_BM)
    for layer, state in zip(layers[1:], states[1:], strict=True):
        output = advance(layer, state, output.hidden_BH)
    assert_close(second.hidden_BH, output.hidden_BH)


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "conditional"])
def test_one_layer_is_the_cell_itself(make_model, decoder):
    model = make_model(decoder={"name": decoder, "options": {"residual": True}})
    assert not any(isinstance(module, Stack) for module in model.modules())


# ---- stacks of cells ----

INPUT_SIZES = [3, 7]


def build_stack(build_cell=build_gru, *, num_layers=3, dropout=0.0, is_residual=False):
    torch.manual_seed(1)
    settings = DecoderSettings(build_cell, None, 0, 5, 0, None, num_layers, dropout)
    cell = settings.build_stack(INPUT_SIZES, is_residual=is_residual)
    return randomize(cell, 1.0).double()


@pytest.fixture
def inputs():
    return [torch.randn(2, size, dtype=torch.float64) for size in INPUT_SIZES]


@pytest.fixture
def hidden():
    return torch.randn(2, 5, dtype=torch.float64)


@pytest.mark.parametrize("build_cell", [build_gru, build_lstm])
@pytest.mark.parametrize("is_residual", [False, True])
def test_each_layer_reads_the_output_of_the_one_below(build_cell, is_residual, inputs, hidden):
    cell = build_stack(build_cell, is_residual=is_residual)
    state = cell.start(hidden)
    layer_states = [layer.start(hidden) for layer in cell.layers]
    for _ in range(3):
        state = advance(cell, state, *inputs)
        below = inputs
        for number, layer in enumerate(cell.layers):
            layer_states[number] = advance(layer, layer_states[number], *below)
            output = layer.hidden(layer_states[number])
            if is_residual and number > 0:
                output = output + below[0]
            below = [output]
        assert_close(cell.hidden(state), below[0])


@pytest.mark.parametrize(
    ("num_layers", "is_dropped"),
    [
        (1, False),
        (3, True),
    ],
)
def test_dropout_falls_between_layers_only(num_layers, is_dropped, inputs, hidden):
    cell = build_stack(num_layers=num_layers, dropout=0.5)
    state = cell.start(hidden)
    first = cell.hidden(advance(cell, state, *inputs))
    second = cell.hidden(advance(cell, state, *inputs))
    assert torch.equal(first, second) != is_dropped
