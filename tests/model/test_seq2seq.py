"""The model as training and search see it; what each step reads with scheduled sampling."""

import pytest
import torch

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import collate, collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import build_model, count_parameters
from seq2seq_attn.text.vocab import PAD


@pytest.mark.parametrize(("cell", "reference"), [("gru", torch.nn.GRU), ("lstm", torch.nn.LSTM)])
def test_the_encoder_is_pytorchs(make_model, cell, reference):
    model = make_model(
        encoder={"name": "bidirectional", "cell": cell, "hidden_size": 7, "num_layers": 1}
    ).eval()
    theirs = reference(11, 7, bidirectional=True, batch_first=True).double()
    with torch.no_grad():
        for ours, suffix in zip(model.encoder.layers[0], ("", "_reverse"), strict=True):
            getattr(theirs, f"weight_ih_l0{suffix}").copy_(ours.input_weights[0])
            getattr(theirs, f"bias_ih_l0{suffix}").copy_(ours.input_bias_P.fill_(0.2))
            getattr(theirs, f"weight_hh_l0{suffix}").copy_(ours.recurrent_weight_PH)
            getattr(theirs, f"bias_hh_l0{suffix}").copy_(ours.recurrent_bias_P.fill_(0.3))
    source = collate_source([[5, 6, 7, 8], [9], [4, 5, 6]])
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        model.encoder.embedding(source.ids_BS),
        source.lengths_B,
        batch_first=True,
        enforce_sorted=False,
    )
    packed_states, final = theirs(packed)
    final = final[0] if cell == "lstm" else final
    states, _ = torch.nn.utils.rnn.pad_packed_sequence(packed_states, batch_first=True)
    encoded = model.encoder(source)
    torch.testing.assert_close(encoded.values_BSM * encoded.mask_BS.unsqueeze(-1), states)
    torch.testing.assert_close(encoded.final_BM, torch.cat([final[0], final[1]], dim=-1))


def test_tied_embeddings_share_and_say_what_they_need():
    config = ModelConfig(
        embedding_size=11, hidden_size=14, readout_size=11, encoder={"hidden_size": 7}
    )
    untied = build_model(config, num_source_ids=30, num_target_ids=30)
    tied = build_model(
        config.model_copy(update={"tie_embeddings": "all"}), num_source_ids=30, num_target_ids=30
    )
    assert count_parameters(untied) - count_parameters(tied) == 2 * 30 * 11
    assert tied.encoder.embedding.weight is tied.output.projection.weight
    with pytest.raises(UsageError, match="readout_size=11"):
        build_model(
            config.model_copy(update={"tie_embeddings": "target", "readout_size": 12}),
            num_source_ids=30,
            num_target_ids=30,
        )
    with pytest.raises(UsageError, match=r"data\.vocab\.joint=true"):
        build_model(
            config.model_copy(update={"tie_embeddings": "all"}),
            num_source_ids=29,
            num_target_ids=30,
        )


def test_without_teacher_forcing_each_step_reads_the_most_probable_token(make_model, batch):
    """The states at the positions of target tokens are those of a free-running loop."""
    model = make_model().eval()
    with torch.no_grad():
        model.output.projection.bias.normal_(std=0.2)
        outputs = model(batch, teacher_forcing_ratio=0.0)
        memory, state = model.prepare(batch.source)
        ids_B = batch.tgt_in_BT[:, 0]
        chosen = set()
        for t, given_B in enumerate(batch.tgt_in_BT.t()):
            is_real_B = given_B != PAD
            step = model.step(ids_B, state, memory)
            torch.testing.assert_close(outputs.hidden_TBH[t][is_real_B], step.hidden_BH[is_real_B])
            state = step.state
            ids_B = model.output.log_probs(step, memory).argmax(dim=1)
            chosen |= set(ids_B.tolist())
    assert len(chosen) > 2


@pytest.mark.parametrize("ratio", [0.3, 0.8])
def test_every_token_is_drawn_independently(make_model, ratio):
    """Of the tokens after BOS a share of 1 - ratio is the model's own choice, whatever is read
    before it or beside it."""
    own = 30
    num_pairs = 60
    length = 40
    model = make_model().eval()
    with torch.no_grad():
        model.output.projection.bias[own] = 100.0
        torch.manual_seed(3)
        embedded_TBE = model(
            collate([[5]] * num_pairs, [[7] * length] * num_pairs, range(num_pairs)), ratio
        ).embedded_TBE
    is_own_TB = (embedded_TBE == model.embedding.weight[own]).all(dim=2)[1:].double()
    share = 1.0 - ratio
    assert is_own_TB.mean().item() == pytest.approx(share, abs=0.04)
    for both in (is_own_TB[1:] * is_own_TB[:-1], is_own_TB[:, 1:] * is_own_TB[:, :-1]):
        assert both.mean().item() == pytest.approx(share**2, abs=0.04)
