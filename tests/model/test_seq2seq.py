"""The model as training and search see it."""

import pytest
import torch

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import build_model, count_parameters


@pytest.mark.parametrize(("cell", "reference"), [("gru", torch.nn.GRU), ("lstm", torch.nn.LSTM)])
def test_the_encoder_is_pytorchs(make_model, cell, reference):
    model = make_model(encoder={"name": "bidirectional", "cell": cell, "hidden_size": 7, "num_layers": 1}).eval()
    theirs = reference(11, 7, bidirectional=True, batch_first=True).double()
    with torch.no_grad():
        for ours, suffix in zip(model.encoder.layers[0], ("", "_reverse"), strict=True):
            getattr(theirs, f"weight_ih_l0{suffix}").copy_(ours.input_weights[0])
            getattr(theirs, f"bias_ih_l0{suffix}").copy_(ours.input_bias_P.fill_(0.2))
            getattr(theirs, f"weight_hh_l0{suffix}").copy_(ours.recurrent_weight_PH)
            getattr(theirs, f"bias_hh_l0{suffix}").copy_(ours.recurrent_bias_P.fill_(0.3))
    source = collate_source([[5, 6, 7, 8], [9], [4, 5, 6]])
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        model.encoder.embedding(source.ids_BS), source.lengths_B, batch_first=True, enforce_sorted=False
    )
    packed_states, final = theirs(packed)
    final = final[0] if cell == "lstm" else final
    states, _ = torch.nn.utils.rnn.pad_packed_sequence(packed_states, batch_first=True)
    encoded = model.encoder(source)
    torch.testing.assert_close(encoded.values_BSM * encoded.mask_BS.unsqueeze(-1), states)
    torch.testing.assert_close(encoded.final_BM, torch.cat([final[0], final[1]], dim=-1))


def test_tied_embeddings_share_and_say_what_they_need():
    config = ModelConfig(embedding_size=11, hidden_size=14, readout_size=11, encoder={"hidden_size": 7})
    untied = build_model(config, num_source_ids=30, num_target_ids=30)
    tied = build_model(config.model_copy(update={"tie_embeddings": "all"}), num_source_ids=30, num_target_ids=30)
    assert count_parameters(untied) - count_parameters(tied) == 2 * 30 * 11
    assert tied.encoder.embedding.weight is tied.output.projection.weight
    with pytest.raises(UsageError, match="readout_size=11"):
        build_model(
            config.model_copy(update={"tie_embeddings": "target", "readout_size": 12}),
            num_source_ids=30,
            num_target_ids=30,
        )
    with pytest.raises(UsageError, match=r"data\.vocab\.joint=true"):
        build_model(config.model_copy(update={"tie_embeddings": "all"}), num_source_ids=29, num_target_ids=30)
