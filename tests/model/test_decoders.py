"""Each decoder, of one layer and of several, against its paper's formulas, written out once
more."""

import pytest
import torch

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.model.cell.base import Stack
from seq2seq_attn.model.cell.gru import GRU as build_gru
from seq2seq_attn.model.cell.lstm import LSTM as build_lstm
from seq2seq_attn.model.decoder.base import DecoderSettings

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


SIZE, INPUT_SIZES, BATCH = 5, [3, 7], 2


def stack(build_cell=build_gru, *, num_layers=3, dropout=0.0, is_residual=False):
    torch.manual_seed(1)
    settings = DecoderSettings(build_cell, None, 0, SIZE, 0, None, num_layers, dropout)
    cell = settings.build_stack(INPUT_SIZES, is_residual=is_residual)
    for parameter in cell.parameters():
        torch.nn.init.uniform_(parameter, -1.0, 1.0)
    return cell.double().eval()


def inputs():
    generator = torch.Generator().manual_seed(2)
    return [
        torch.randn(BATCH, size, dtype=torch.float64, generator=generator) for size in INPUT_SIZES
    ]


def start():
    return torch.randn(BATCH, SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("build_cell", [build_gru, build_lstm])
@pytest.mark.parametrize("is_residual", [False, True])
def test_each_layer_reads_the_output_of_the_one_below(build_cell, is_residual):
    cell = stack(build_cell, is_residual=is_residual)
    state = cell.start(start())
    layer_states = [layer.start(start()) for layer in cell.layers]
    for _ in range(3):
        state = cell.step(cell.project_inputs(*inputs()), state)
        below = inputs()
        for number, layer in enumerate(cell.layers):
            layer_states[number] = layer.step(layer.project_inputs(*below), layer_states[number])
            output = layer.hidden(layer_states[number])
            below = [output + below[0] if is_residual and number else output]
        torch.testing.assert_close(cell.hidden(state), below[0])


def test_dropout_falls_between_layers_only():
    dropped = stack(dropout=0.5).train()
    assert not torch.equal(
        *(dropped.step(dropped.project_inputs(*inputs()), dropped.start(start()))[1] for _ in "ab")
    )
    one = stack(num_layers=1, dropout=0.5).train()
    assert torch.equal(
        *(one.step(one.project_inputs(*inputs()), one.start(start()))[0] for _ in "ab")
    )


@pytest.fixture
def model_of(make_model):
    def build(name, num_layers, **options):
        return make_model(
            decoder={"name": name, "num_layers": num_layers, "options": options}
        ).eval()

    return build


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "conditional"])
def test_one_layer_is_the_cell_itself(model_of, decoder):
    model = model_of(decoder, 1, residual=True)
    assert not any(isinstance(module, Stack) for module in model.modules())
    assert not any("layers" in name for name in model.decoder.state_dict())


@pytest.mark.parametrize(("decoder", "asks"), [("bahdanau", "previous"), ("luong", "current")])
def test_the_top_layer_asks_the_attention_and_is_predicted_from(model_of, decoder, asks):
    model = model_of(decoder, 3)
    memory, state = model.prepare(SOURCE)
    first = model.step(torch.tensor([4, 5, 6]), state, memory)
    second = model.step(torch.tensor([7, 8, 9]), first.state, memory)
    top = {"previous": first, "current": second}[asks].state.cell
    asked = model.decoder.attention.step(
        top.layers[-1].hidden_BH, memory.attention, first.state.attention
    )
    torch.testing.assert_close(second.weights_BS, asked.weights_BS)
    torch.testing.assert_close(second.hidden_BH, second.state.cell.layers[-1].hidden_BH)


def test_the_pair_of_the_conditional_decoder_is_its_first_layer(model_of):
    model = model_of("conditional", 3)
    decoder = model.decoder
    memory, state = model.prepare(SOURCE)
    first = model.step(torch.tensor([4, 5, 6]), state, memory)
    second = model.step(torch.tensor([7, 8, 9]), first.state, memory)
    pair = decoder.first_cell
    layers = list(decoder.second_cell.layers)
    embedded = model.embedding(torch.tensor([7, 8, 9]))
    between = pair.step(pair.project_inputs(embedded), first.state.cell.layers[0])
    asked = decoder.attention.step(between.hidden_BH, memory.attention, first.state.attention)
    below = layers[0].step(layers[0].project_inputs(asked.context_BM), between)
    for layer, before in zip(layers[1:], first.state.cell.layers[1:], strict=True):
        below = layer.step(layer.project_inputs(below.hidden_BH), before)
    torch.testing.assert_close(second.hidden_BH, below.hidden_BH)
