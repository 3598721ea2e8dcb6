"""Outputs by hand and by loops over their formulas."""

import math
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from seq2seq_attn.data.batch import collate, collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import Embedding
from seq2seq_attn.model.output import copy, lexical, lexicon, marginal, pointer
from seq2seq_attn.model.output.base import LEAST_WEIGHT, TakesTable
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.text.ibm1 import EMPTY, TranslationTable, estimate_table
from seq2seq_attn.text.vocab import BOS, EOS, PAD, UNK
from tests.extended import extend
from tests.model.conftest import NUM_TARGET_IDS as NUM_IDS

SIZES = {"feature_size": 1, "num_ids": 6}


def row(*numbers):
    return torch.tensor([numbers], dtype=torch.float64)


def fill(module, value):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(value)
    return module.double()


def step_of(weights, hidden=0.5, features=0.0):
    return StepOutput(row(features), row(hidden), row(0.0), row(0.0), row(*weights), None)


def memory_of(output, ids, values=None):
    """One sentence with these ids, which are also its extended ids, and values; 0 without them."""
    values_BSM = row(*(values or [0.0] * len(ids))).unsqueeze(-1)
    ids = torch.tensor([ids])
    source = collate_source([[]])._replace(ids_BS=ids, extended_ids_BS=ids)
    encoded = Encoded(values_BSM, source.mask_BS, values_BSM[:, 0])
    return Memory(None, ids, ids, output.prepare(encoded, source))


def test_marginal_over_the_heaviest_positions_by_hand():
    output = marginal.Marginal(
        **SIZES,
        context_size=1,
        memory_size=1,
        read_out=lambda hidden, context, embedded: context,
        top_k=2,
    )
    fill(output, 0.0)
    with torch.no_grad():
        output.projection.weight[4] = 1.0
        output.projection.weight[5] = -1.0
    memory = memory_of(output, [4, 5, EOS], [0.0, -40.0, 40.0])
    found = output.log_probs(step_of([0.1, 0.6, 0.3]), memory).exp()
    assert_close(found, row(0.0, 0.0, 0.0, 0.0, 1 / 3, 2 / 3), atol=1e-15, rtol=1e-12)


def table_of(entries):
    """From (source, target) to t(target | source)."""
    keys = sorted(entries)
    numbers = [((source - EMPTY) << 32) + target for source, target in keys]
    return TranslationTable(np.array(numbers), np.array([entries[key] for key in keys]))


ENTRIES = {
    (EMPTY, 5): 1.0,
    (4, 4): 0.6,
    (4, 3): 0.1,
    (4, 5): 0.2,
    (EOS, 4): 0.6,
    (EOS, 5): 0.4,
}
"""with several sources, EOS ends each of them and has entries too"""


@pytest.mark.parametrize(
    ("num_entries", "four", "five"),
    [
        (2, 0.75, 0.25),
        (1, 1.0, 0.0),
    ],
)
def test_lexicon_by_hand(num_entries, four, five):
    """Token 7 has no entry; the most probable ones of token 4 are kept."""
    output = lexicon.Lexicon(
        **SIZES,
        num_source_ids=9,
        num_entries=num_entries,
        epsilon=0.5,
    )
    fill(output, 0.0)
    assert f"{2 * num_entries} translations of 2 source types" in output.set_table(
        table_of(ENTRIES)
    )
    found = output.log_probs(step_of([0.5, 0.25, 0.25]), memory_of(output, [4, 7, EOS])).exp()
    expected = row(0.5, 0.5, 0.25 + 0.5, 0.5, 0.5 * four + 0.5, 0.5 * five + 0.5)
    assert_close(found, expected / expected.sum(), rtol=1e-6, atol=1e-9)


def test_a_lexicon_that_takes_all_of_the_probability_keeps_the_loss_finite():
    """lambda is 1 in float32, and the token with all the attention has entries: nothing is left to
    the model."""
    output = lexicon.Lexicon(
        **SIZES, num_source_ids=9, num_entries=2, variant="interpolation"
    ).float()
    output.set_table(table_of(ENTRIES))
    with torch.no_grad():
        output.share_bias.fill_(40.0)
    step = StepOutput(*(None if one is None else one.float() for one in step_of([1.0, 0.0, 0.0])))
    memory = memory_of(output, [4, 7, EOS])
    assert_close(output.log_probs(step, memory).exp()[0], torch.tensor([0, 0, 0, 0, 0.75, 0.25]))
    for target in (4, 3):
        log_prob, _ = output.score(step, memory, torch.tensor([target]))
        log_prob.sum().backward()
        assert torch.isfinite(log_prob).all()
        assert all(torch.isfinite(p.grad).all() for p in output.parameters() if p.grad is not None)


def test_a_lexicon_never_names_a_token_beyond_the_vocabulary():
    """A file of weights may hold any number."""
    output = lexicon.Lexicon(
        **SIZES,
        num_source_ids=9,
        num_entries=2,
    )
    fill(output, 0.0).set_table(table_of(ENTRIES))
    for wrong in (1e6, -1e6):
        output.target_ids_UK[4] = wrong
        found = output.log_probs(step_of([0.5, 0.25, 0.25]), memory_of(output, [4, 7, EOS])).exp()
        assert_close(found.sum(), torch.ones((), dtype=torch.float64))


POINTER = pointer.Pointer(num_ids=6)


def test_a_token_that_cannot_be_copied_has_a_finite_loss():
    log_probs = POINTER.log_probs(step_of([0.0, 1.0]), memory_of(POINTER, [4, EOS]))[0].tolist()
    assert log_probs[5] == log_probs[PAD] == pytest.approx(math.log(LEAST_WEIGHT))
    assert log_probs[6] == -math.inf
    output = copy.Copy(
        **SIZES,
        hidden_size=1,
        context_size=1,
        embedding_size=1,
    ).double()
    log_prob = output.log_probs(step_of([0.0, 1.0]), memory_of(output, [6, 7]))[0, 6].item()
    assert math.log(LEAST_WEIGHT) - 10 < log_prob < math.log(LEAST_WEIGHT)


SOURCE = [
    [5, 9, 7, 4],
    [8],
    [6, 8],
]
TARGET = [[9, 33, 31, 9], [5, 5], []]
"""33 and 31 are not in the vocabulary"""
EXTENDED = [
    extend([33, 9, 33, 31], TARGET[0], NUM_IDS),
    extend([8], TARGET[1], NUM_IDS),
    extend([8, 30], TARGET[2], NUM_IDS),
]
TARGET_IDS = [[9, UNK, UNK, 9], [5, 5], []]


LOOPS = {
    "copy": {},
    "copynet": {},
    "history_pointer": {},
    "history_pointer of self_history": {"attention": {"name": "self_history"}},
    "lexical": {},
    "lexicon": {},
    "lexicon of interpolation": {
        "output": {"name": "lexicon", "options": {"variant": "interpolation"}}
    },
    "marginal": {},
    "pointer": {"tie_embeddings": "none", "decoder": {"name": "conditional"}},
}
"""outputs and their settings"""
CASES = [*product(LOOPS, ("bahdanau", "luong", "conditional"))]
CASES.remove(("pointer", "bahdanau"))  # refused


@pytest.mark.parametrize(("name", "decoder"), CASES)
@torch.no_grad()
def test_probabilities_and_loss_are_those_of_a_loop(make_model, name, decoder):
    model, batch, outputs = run(make_model, name, decoder={"name": decoder})
    log_probs_NV = model.output.log_probs(*outputs.rows(slice(None)))
    nll = 0.0
    for n in real_positions(batch):
        position = make_position(model, batch, outputs, n)
        expected = PROBABILITIES[name](model, position)
        assert log_probs_NV[n].exp().tolist() == pytest.approx(expected, abs=1e-8)
        targets = TARGET_IDS
        if model.output.copies_source:
            targets = [pair.target for pair in EXTENDED]
        target = [*targets[position.pair], EOS][position.step]
        nll -= log_probs_NV[n, target].item()
    loss = model.output.loss(outputs, label_smoothing=0.0)
    assert loss.loss_sum.item() == pytest.approx(nll, rel=1e-6)


@pytest.mark.parametrize("name", "copy copynet history_pointer lexical lexicon pointer".split())
@torch.no_grad()
def test_label_smoothing_gives_equal_shares(make_model, name):
    """To every vocabulary entry, by the distribution that copies nothing; `pointer`: to the source
    positions."""
    model, batch, outputs = run(make_model, name)
    real_N = torch.tensor(real_positions(batch))
    step, memory = outputs.rows(real_N)
    log_probs_NV = model.output.log_probs(step, memory)
    targets_N = model.output.targets(batch)[real_N]
    chosen_N = log_probs_NV.gather(1, targets_N.unsqueeze(1)).squeeze(1)
    if name == "pointer":
        means = [weights[weights > 0].log().mean() for weights in step.weights_BS]
        means_N = torch.stack(means)
    elif name in ("lexical", "lexicon"):
        means_N = log_probs_NV.mean(dim=1)
    else:
        means_N = model.output.projection(step.features_BF).log_softmax(1).mean(dim=1)
    expected = -(0.8 * chosen_N + 0.2 * means_N).sum()
    loss = model.output.loss(outputs, label_smoothing=0.2)
    assert_close(loss.loss_sum, expected, rtol=1e-6, atol=0.0)
    assert_close(loss.nll_sum, -chosen_N.sum(), rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("name", ["copy", "copynet", "lexical", "lexicon", "marginal"])
def test_the_target_embedding_may_be_the_output_weight(make_model, name):
    model = make_model(output={"name": name}, tie_embeddings="target")
    assert model.output.projection.weight is model.embedding.weight


def test_lexical_refuses_an_encoder_that_leaves_the_embeddings_out():
    output = lexical.Lexical(**SIZES, source_embedding=Embedding(9, 1))
    with pytest.raises(UsageError, match=r"'lexical'.*`Encoded\.embedded_BSE`"):
        memory_of(output, [4, 5], [1.0, 2.0])


def test_rows_hold_no_copies_of_the_attentions_memory(make_model, batch):
    step, memory = make_model()(batch).rows(slice(None))
    assert memory.attention is None
    assert len(memory.source_ids_BS) == len(step.features_BF)


@pytest.mark.parametrize("decoder", packaged_variants("decoder"))
def test_the_readout_that_the_marginal_calls_is_saved_once_as_the_decoders(make_model, decoder):
    model = make_model(output={"name": "marginal"}, decoder={"name": decoder})
    assert not [name for name in model.state_dict() if name.startswith("output.read_out")]


# ---- loops over the formulas ----


class Position(NamedTuple):
    """One target position."""

    step: int
    pair: int
    at: StepOutput
    """tensors of this position alone"""
    source_ids: list[int]
    extended_ids: list[int]
    values: torch.Tensor
    """of the encoder, [S, M]"""
    hidden: torch.Tensor
    """of all steps, [T, H]"""


def make_position(model, batch, outputs, n):
    step, pair = divmod(n, len(SOURCE))
    rows, memory = outputs.rows(torch.tensor([n]))
    tensors = [None if tensor is None else tensor[0] for tensor in rows[:5]]
    return Position(
        step,
        pair,
        StepOutput(*tensors, None),
        memory.source_ids_BS[0].tolist(),
        memory.extended_ids_BS[0].tolist(),
        model.encoder(batch.source).values_BSM[pair],
        outputs.hidden_TBH[:, pair],
    )


def generated(model, features):
    """The probabilities of the vocabulary, copies apart."""
    return torch.softmax(model.output.projection(features), dim=0)


def with_copies(probs, position, shares):
    """Adds the share of each source position to the token there."""
    probs = [*probs.tolist(), *[0.0] * len(position.source_ids)]
    for token, share in zip(position.extended_ids, shares, strict=True):
        if token != PAD:
            probs[token] += float(share)
    return probs


def copy_probs(model, position):
    at = position.at
    gate = model.output.gate(torch.cat([at.context_BM, at.hidden_BH, at.embedded_BE]))
    p_gen = torch.sigmoid(gate)
    probs = p_gen * generated(model, at.features_BF)
    return with_copies(probs, position, (1 - p_gen) * at.weights_BS)


def copynet_probs(model, position):
    scores = []
    for value in position.values:
        scores.append(torch.tanh(model.output.copy_projection(value)) @ position.at.hidden_BH)
    logits = model.output.projection(position.at.features_BF)
    probs = with_copies(logits.exp(), position, torch.stack(scores).exp())
    return [prob / sum(probs) for prob in probs]


def pointer_probs(model, position):
    return with_copies(torch.zeros(NUM_IDS), position, position.at.weights_BS)


def history_probs(model, position):
    """One past word after the other."""
    read_ids = [BOS, *TARGET_IDS[position.pair]]
    query = torch.tanh(model.output.query_projection(position.at.hidden_BH))
    scores = [query @ model.output.sentinel_H]
    for hidden in position.hidden[1 : position.step + 1]:
        scores.append(query @ hidden)
    shares = torch.softmax(torch.stack(scores), dim=0)
    probs = shares[0] * generated(model, position.at.features_BF)
    for i in range(1, position.step + 1):
        probs[read_ids[i]] += shares[i]
    return probs.tolist()


def lexical_probs(model, position):
    total = torch.zeros(11, dtype=torch.float64)
    for weight, source_id in zip(position.at.weights_BS, position.source_ids, strict=True):
        if source_id != PAD:
            total = total + weight * model.encoder.embedding.weight[source_id]
    f = torch.tanh(total)
    h = torch.tanh(model.output.layer.weight @ f) + f
    logits = model.output.projection(position.at.features_BF)
    return torch.softmax(logits + model.output.lexical_projection.weight @ h, dim=0).tolist()


def marginal_probs(model, position):
    at = position.at
    probs = torch.zeros(NUM_IDS, dtype=torch.float64)
    for weight, value in zip(at.weights_BS, position.values, strict=True):
        features = model.decoder.read_out(at.hidden_BH, value, at.embedded_BE)
        probs += weight * generated(model, features)
    return probs.tolist()


def lexicon_table():
    source, target = ([np.array(ids) for ids in side] for side in (SOURCE, TARGET_IDS))
    return estimate_table(source.__getitem__, target.__getitem__, len(SOURCE))


def translated(position):
    """p_lex: the translations of each source token, by its weight."""
    probs = torch.zeros(NUM_IDS, dtype=torch.float64)
    for weight, source_id in zip(position.at.weights_BS, position.source_ids, strict=True):
        if source_id in (EOS, PAD):
            probs[EOS] += weight
        else:
            entries = lexicon_table().lookup(np.array([source_id]), np.arange(NUM_IDS))
            probs += weight * torch.from_numpy(entries[:, 0])
    return probs


def lexicon_probs(model, position):
    logits = model.output.projection(position.at.features_BF)
    return torch.softmax(logits + (translated(position) + 0.001).log(), dim=0).tolist()


def interpolation_probs(model, position):
    probs = torch.sigmoid(model.output.share_bias) * translated(position)  # token 6 has no entry
    rest = 1 - probs.sum()
    return (probs + rest * generated(model, position.at.features_BF)).tolist()


PROBABILITIES = {
    "copy": copy_probs,
    "copynet": copynet_probs,
    "history_pointer": history_probs,
    "history_pointer of self_history": history_probs,
    "lexical": lexical_probs,
    "lexicon": lexicon_probs,
    "lexicon of interpolation": interpolation_probs,
    "marginal": marginal_probs,
    "pointer": pointer_probs,
}


def run(make_model, name, **overrides):
    """A model with this output, a batch, and the model's outputs."""
    settings = {
        "output": {"name": name.split()[0]},
        **LOOPS[name],
        **overrides,
    }
    model = make_model(**settings).eval()
    if isinstance(model.output, TakesTable):
        model.output.set_table(lexicon_table())
    batch = collate(SOURCE, TARGET_IDS, range(3), extended=EXTENDED)
    return model, batch, model(batch)


def real_positions(batch):
    """The target positions that are not padding, step by step."""
    return (batch.tgt_out_BT.t().flatten() != PAD).nonzero().squeeze(1).tolist()
