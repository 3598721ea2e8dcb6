"""The output `lexicon` at its limits: a share of 1, and numbers that no table holds."""

import torch

from seq2seq_attn.model.decoder.base import StepOutput
from seq2seq_attn.model.output import lexicon
from seq2seq_attn.text.vocab import EOS
from tests.model.test_outputs import ENTRIES, SIZES, fill, memory_of, step_of, table_of


def test_a_lexicon_that_takes_all_of_the_probability_keeps_the_loss_finite():
    """lambda is 1 in float32, and the token with all the attention has entries: nothing is left to the model."""
    output = lexicon.Lexicon(
        **SIZES, source_attention=None, num_source_ids=9, num_entries=2, variant="interpolation"
    ).float()
    output.set_table(table_of(ENTRIES))
    with torch.no_grad():
        output.share_bias.fill_(40.0)
    step = StepOutput(*(None if one is None else one.float() for one in step_of([1.0, 0.0, 0.0])))
    memory = memory_of(output, [4, 7, EOS], [0.0] * 3)
    torch.testing.assert_close(output.log_probs(step, memory).exp()[0], torch.tensor([0, 0, 0, 0, 0.75, 0.25]))
    for target in (4, 3):
        log_prob, _ = output.score(step, memory, torch.tensor([target]))
        log_prob.sum().backward()
        assert torch.isfinite(log_prob).all()
        assert all(torch.isfinite(p.grad).all() for p in output.parameters() if p.grad is not None)


def test_a_lexicon_never_names_a_token_beyond_the_vocabulary():
    """A file of weights may hold any number."""
    output = lexicon.Lexicon(**SIZES, source_attention=None, num_source_ids=9, num_entries=2)
    fill(output, 0.0).set_table(table_of(ENTRIES))
    for wrong in (1e6, -1e6):
        output.target_ids_UK[4] = wrong
        found = output.log_probs(step_of([0.5, 0.25, 0.25]), memory_of(output, [4, 7, EOS], [0.0] * 3)).exp()
        torch.testing.assert_close(found.sum(), torch.ones((), dtype=torch.float64))
