"""Training's way through the decoder: what each step reads with scheduled sampling."""

import pytest
import torch

from seq2seq_attn.data.batch import collate
from seq2seq_attn.text.vocab import PAD


def test_without_teacher_forcing_each_step_reads_the_most_probable_token(make_model, batch):
    """The states at the positions of target tokens are those of a free-running loop."""
    model = make_model().eval()
    with torch.no_grad():
        model.output.projection.bias.normal_(std=0.2)
        outputs = model(batch, teacher_forcing_ratio=0.0)
        memory, state = model.prepare(batch.source)
        ids_B, chosen = batch.tgt_in_BT[:, 0], set()
        for t, given_B in enumerate(batch.tgt_in_BT.t()):
            is_real_B = given_B != PAD
            step = model.step(ids_B, state, memory)
            torch.testing.assert_close(outputs.hidden_TBH[t][is_real_B], step.hidden_BH[is_real_B])
            state, ids_B = step.state, model.output.log_probs(step, memory).argmax(dim=1)
            chosen |= set(ids_B.tolist())
    assert len(chosen) > 2


@pytest.mark.parametrize("ratio", [0.3, 0.8])
def test_every_token_is_drawn_independently(make_model, ratio):
    """Of the tokens after BOS a share of 1 - ratio is the model's own choice, whatever is read before it or beside
    it."""
    own, num_pairs, length = 30, 60, 40
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
