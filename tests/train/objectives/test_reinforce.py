"""REINFORCE: its terms by hand and by a loop, and its gradient against all sequences of source
positions."""

import itertools
import math

import pytest
import torch

from seq2seq_attn.config import ModelConfig, load_config
from seq2seq_attn.data.batch import collate
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.attention.base import Attention
from seq2seq_attn.model.build import build_model
from seq2seq_attn.text.vocab import PAD
from seq2seq_attn.train.check import check_config
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.objectives import reinforce
from tests.contract.test_objectives import make_batch, outputs_of, random_scores

SOURCE, TARGET = [5, 6], [7, 8]
NUM_POSITIONS, NUM_STEPS = 3, 3


def test_a_batch_is_the_sum_of_loops_over_its_steps():
    batch = make_batch()
    outputs = outputs_of(batch, random_scores(batch))
    draw_log_probs_TB, baselines_TB = outputs.extra
    log_prob = outputs.target_log_probs().tolist()
    num_pairs = len(batch.tgt_out_BT)
    expected = 0.0
    for row in range(num_pairs):
        num_steps = int((batch.tgt_out_BT[row] != PAD).sum())
        for t in range(num_steps):
            future = [log_prob[later * num_pairs + row] for later in range(t, num_steps)]
            error = sum(future) / len(future) - baselines_TB[t, row].item()
            expected += error**2 - error * len(future) * draw_log_probs_TB[t, row].item()
            weights = outputs.weights_TBS[t, row].tolist()
            expected += 0.3 * sum(weight * math.log(weight) for weight in weights if weight)
    assert reinforce.Reinforce(entropy=0.3).term(outputs).item() == pytest.approx(
        expected, rel=1e-9
    )


class Forced(Attention):
    """Draws given positions instead of those that the wrapped attention draws. It counts its
    steps."""

    def __init__(self, drawing, positions_BT):
        super().__init__(drawing.context_size)
        self.drawing = drawing
        self.positions_BT = positions_BT
        self.t = 0

    def prepare(self, encoded, source):
        self.t = 0
        return self.drawing.prepare(encoded, source)

    def step(self, query_BH, memory, state):
        attended = self.drawing.step(query_BH, memory, state)
        chosen = torch.arange(len(query_BH)), self.positions_BT[:, self.t]
        self.t += 1
        draw = attended.extra._replace(log_prob_B=attended.weights_BS[chosen].log())
        return attended._replace(context_BM=memory.values_BSM[chosen], extra=draw)


def toy_model(decoder):
    torch.manual_seed(3)
    config = ModelConfig.model_validate(
        {
            "embedding_size": 3,
            "hidden_size": 4,
            "encoder": {"hidden_size": 2},
            "decoder": {"name": decoder},
            "attention": {"name": "hard", "options": {"estimator": "reinforce"}},
            "dropout": {"embedding": 0.0, "encoder": 0.0, "readout": 0.0},
        }
    )
    model = build_model(config, num_source_ids=9, num_target_ids=9).double()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -1.0, 1.0)
    return model


def copies(number):
    return collate([SOURCE] * number, [TARGET] * number, range(number))


def flat_gradient(loss, model):
    parameters = [one for name, one in model.named_parameters() if "baseline" not in name]
    return torch.cat(
        [
            gradient.flatten()
            for gradient in torch.autograd.grad(loss, parameters, retain_graph=True)
        ]
    )


def forced_losses(model):
    """Of each sequence of positions: its probability, log p(target), and the gradient that training
    follows."""
    all_positions = list(itertools.product(range(NUM_POSITIONS), repeat=NUM_STEPS))
    drawing = model.decoder.attention
    objective = reinforce.Reinforce(entropy=0.0)
    batch = copies(1)
    probs = []
    rewards = []
    gradients = []
    for positions in all_positions:
        model.decoder.attention = Forced(drawing, torch.tensor([positions]))
        outputs = model(batch)
        loss = model.output.loss(outputs, label_smoothing=0.0).loss_sum
        term = objective.term(outputs)
        model.decoder.attention = drawing
        probs.append(outputs.extra.log_prob_B.sum().exp())
        rewards.append(-loss)
        gradients.append(flat_gradient(loss + term, model))
    assert sum(probs).item() == pytest.approx(1.0)
    return torch.stack(probs), torch.stack(rewards), gradients


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "conditional"])
def test_the_gradient_is_that_of_all_sequences_of_positions(decoder):
    """That of minus the sum over sequences of p(positions) log p(target | positions): exactly, as
    the mean over all sequences, and within 5 standard errors in each of hundreds of parameters for
    10,000 draws."""
    model = toy_model(decoder)
    objective = reinforce.Reinforce(entropy=0.0)
    probs, rewards, gradients = forced_losses(model)
    expected = flat_gradient(-(probs * rewards).sum(), model)
    mean = (torch.stack(gradients) * probs.detach().unsqueeze(1)).sum(dim=0)
    torch.testing.assert_close(mean, expected, rtol=1e-9, atol=1e-9)
    batch = copies(100)
    drawn = []
    torch.manual_seed(5)
    for _ in range(100):
        loss = batch_loss(model, batch, objectives=[objective])
        drawn.append(flat_gradient(loss.loss_sum + loss.terms[0], model) / 100)
    samples = torch.stack(drawn)
    error = samples.std(dim=0) / 10.0
    assert ((samples.mean(dim=0) - expected).abs() <= 5 * error + 1e-12).all()
    assert (error < 0.1 * expected.abs().max()).all()  # the bound says something


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            "train.objectives={reinforce: {}}",
            r"train\.objectives\.reinforce.*model\.attention\.name=hard",
        ),
        ("model.attention={name: hard, options: {estimator: reinforce}}", "objective/reinforce"),
    ],
)
def test_one_without_the_other_is_refused_before_data_is_prepared(settings, message):
    with pytest.raises(UsageError, match=message):
        check_config(load_config(["quickstart"], [settings]))
