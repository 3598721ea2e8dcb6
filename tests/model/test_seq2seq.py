"""The model as training and search see it; what each step reads with scheduled sampling."""

import pytest
import torch
from torch.testing import assert_close

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import collate, collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import build_model, count_parameters
from seq2seq_attn.text.vocab import PAD


@pytest.mark.parametrize(
    ("cell", "reference"),
    [
        ("gru", torch.nn.GRU),
        ("lstm", torch.nn.LSTM),
    ],
)
def test_the_encoder_is_pytorchs(make_model, cell, reference):
    model = make_model(
        encoder={
            "name": "bidirectional",
            "cell": cell,
            "hidden_size": 7,
            "num_layers": 1,
        }
    ).eval()
    theirs = reference(11, 7, bidirectional=True, batch_first=True).double()
    with torch.no_grad():
        for ours, suffix in zip(model.encoder.layers[0], ("", "_reverse"), strict=True):
            getattr(theirs, f"weight_ih_l0{suffix}").copy_(ours.input_weights[0])
            getattr(theirs, f"bias_ih_l0{suffix}").copy_(ours.input_bias_P.fill_(0.2))
            getattr(theirs, f"weight_hh_l0{suffix}").copy_(ours.recurrent_weight_PH)
            getattr(theirs, f"bias_hh_l0{suffix}").copy_(ours.recurrent_bias_P.fill_(0.3))
    source = collate_source([[5, 6, 7, 8], [9], [4, 5, 6]])
    encoded = model.encoder(source)
    for row, length in enumerate(source.lengths_B.tolist()):
        embedded = model.encoder.embedding(source.ids_BS[row : row + 1, :length])
        values, final = theirs(embedded)
        final_DBH = final[0] if cell == "lstm" else final
        assert_close(encoded.values_BSM[row, :length], values[0])
        assert_close(encoded.final_BM[row], final_DBH.flatten())


def build(num_source_ids=30, **settings):
    sizes = {
        "embedding_size": 11,
        "hidden_size": 14,
        "encoder": {"hidden_size": 7},
    }
    config = ModelConfig(**sizes | {"readout_size": 11} | settings)
    return build_model(config, num_source_ids=num_source_ids, num_target_ids=30)


def test_tied_embeddings_are_one_matrix():
    tied = build(tie_embeddings="all")
    assert count_parameters(build()) - count_parameters(tied) == 2 * 30 * 11
    assert tied.encoder.embedding.weight is tied.output.projection.weight


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tie_embeddings": "target", "readout_size": 12}, "readout_size=11"),
        ({"tie_embeddings": "all", "num_source_ids": 29}, r"data\.vocab\.joint=true"),
    ],
)
def test_tied_embeddings_of_different_sizes_are_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        build(**settings)


@torch.no_grad()
def test_without_teacher_forcing_each_step_reads_the_most_probable_token(make_model, batch):
    """The states at the positions of target tokens are those of a free-running loop."""
    model = make_model().eval()
    model.output.projection.bias.normal_(std=0.2)
    outputs = model(batch, teacher_forcing_ratio=0.0)
    memory, state = model.prepare(batch.source)
    ids_B = batch.tgt_in_BT[:, 0]
    chosen = set()
    for t, is_real_B in enumerate(batch.tgt_in_BT.t() != PAD):
        step = model.step(ids_B, state, memory)
        assert_close(outputs.hidden_TBH[t][is_real_B], step.hidden_BH[is_real_B])
        state = step.state
        ids_B = model.output.log_probs(step, memory).argmax(dim=1)
        chosen |= set(ids_B.tolist())
    assert len(chosen) > 2


@pytest.mark.parametrize("ratio", [0.3, 0.8])
@torch.no_grad()
def test_every_token_is_drawn_independently(make_model, ratio):
    """Of the tokens after BOS a share of 1 - ratio is the model's own choice, whatever is read
    before it or beside it."""
    own_id = 30
    num_pairs = 60
    model = make_model().eval()
    model.output.projection.bias[own_id] = 100.0
    torch.manual_seed(3)
    batch = collate([[5]] * num_pairs, [[7] * 40] * num_pairs, range(num_pairs))
    embedded_TBE = model(batch, ratio).embedded_TBE
    is_own_TB = (embedded_TBE == model.embedding.weight[own_id]).all(dim=2)[1:].double()
    share = 1.0 - ratio
    assert is_own_TB.mean().item() == pytest.approx(share, abs=0.04)
    for both in (is_own_TB[1:] * is_own_TB[:-1], is_own_TB[:, 1:] * is_own_TB[:, :-1]):
        assert both.mean().item() == pytest.approx(share**2, abs=0.04)
