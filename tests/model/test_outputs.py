"""Outputs by hand and by loops over their formulas: `marginal`, `copynet`, `lexical`, `lexicon`."""

import itertools
import math

import numpy as np
import pytest
import torch

from seq2seq_attn.data.batch import collate, collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import Embedding
from seq2seq_attn.model.output import lexical, lexicon, marginal
from seq2seq_attn.model.output.base import TakesTable
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.search.steps import step_model
from seq2seq_attn.text.ibm1 import EMPTY, TranslationTable, estimate_table
from seq2seq_attn.text.vocab import EOS, PAD, UNK
from tests.extended import extend
from tests.search.searching import search

NUM_IDS = 31  # of make_model
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


def memory_of(output, ids, values, embedded=None):
    """One sentence with these ids, which are also its extended ids, values and embeddings."""
    ids = torch.tensor([ids])
    source = collate_source([[]])._replace(ids_BS=ids, extended_ids_BS=ids)
    values_BSM = row(*values).unsqueeze(-1)
    embedded_BSE = None if embedded is None else row(*embedded).unsqueeze(-1)
    encoded = Encoded(values_BSM, source.mask_BS, values_BSM[:, 0], embedded_BSE)
    return Memory(None, ids, ids, output.prepare(encoded, source))


def context_alone(hidden, context, embedded):
    return context


def test_marginal_over_the_heaviest_positions_by_hand():
    output = marginal.Marginal(
        **SIZES, source_attention=None, context_size=1, memory_size=1, readout=context_alone, top_k=2
    )
    fill(output, 0.0)
    with torch.no_grad():
        output.projection.weight[4], output.projection.weight[5] = 1.0, -1.0
    memory = memory_of(output, [4, 5, EOS], [0.0, -40.0, 40.0])
    found = output.log_probs(step_of([0.1, 0.6, 0.3]), memory).exp()
    torch.testing.assert_close(found, row(0.0, 0.0, 0.0, 0.0, 1 / 3, 2 / 3), atol=1e-15, rtol=1e-12)


def table_of(entries):
    """From (source, target) to t(target | source)."""
    keys = sorted(entries)
    numbers = [((source - EMPTY) << 32) + target for source, target in keys]
    return TranslationTable(np.array(numbers), np.array([entries[key] for key in keys]))


ENTRIES = {(EMPTY, 5): 1.0, (4, 4): 0.6, (4, 3): 0.1, (4, 5): 0.2, (EOS, 4): 0.6, (EOS, 5): 0.4}
"""with several sources, EOS ends each of them and has entries too"""


@pytest.mark.parametrize(("num_entries", "four", "five"), [(2, 0.75, 0.25), (1, 1.0, 0.0)])
def test_lexicon_by_hand(num_entries, four, five):
    """Token 7 has no entry; the most probable ones of token 4 are kept."""
    output = lexicon.Lexicon(**SIZES, source_attention=None, num_source_ids=9, num_entries=num_entries, epsilon=0.5)
    fill(output, 0.0)
    output.set_table(table_of(ENTRIES))
    found = output.log_probs(step_of([0.5, 0.25, 0.25]), memory_of(output, [4, 7, EOS], [0.0] * 3)).exp()
    expected = row(0.5, 0.5, 0.25 + 0.5, 0.5, 0.5 * four + 0.5, 0.5 * five + 0.5)
    torch.testing.assert_close(found, expected / expected.sum(), rtol=1e-6, atol=1e-9)


def lexicon_table():
    pairs = [[np.array(ids) for ids in side] for side in (SOURCE, TARGET_IDS)]
    return estimate_table(pairs[0].__getitem__, pairs[1].__getitem__, len(SOURCE))


def p_lex(step, memory, n):
    found, table = [0.0] * NUM_IDS, lexicon_table()
    for j, source_id in enumerate(memory.source_ids_BS[n].tolist()):
        row = [float(i == EOS) for i in range(NUM_IDS)]
        if source_id not in (EOS, PAD):
            row = table.lookup(np.array([source_id]), np.arange(NUM_IDS))[:, 0].tolist()
        found = [p + step.weights_BS[n, j].item() * q for p, q in zip(found, row, strict=True)]
    return torch.tensor(found, dtype=torch.float64)


def loop_lexicon(model, step, memory, n):
    logits = model.output.projection(step.features_BF[n])
    return torch.softmax(logits + (p_lex(step, memory, n) + 0.001).log(), dim=0).tolist()


def loop_interpolation(model, step, memory, n):
    share = torch.sigmoid(model.output.share_bias).item()
    p_model = torch.softmax(model.output.projection(step.features_BF[n]), dim=0)
    p = share * p_lex(step, memory, n)  # token 6 has no entry
    return (p + (1 - p.sum()) * p_model).tolist()


def loop_marginal(model, step, memory, n):
    found = [0.0] * NUM_IDS
    for j, weight in enumerate(step.weights_BS[n].tolist()):
        if memory.source_ids_BS[n, j] != PAD:
            value = model.encoder(collate_source(SOURCE)).values_BSM[n_pair(n), j]
            features = model.decoder.readout(step.hidden_BH[n], value, step.embedded_BE[n])
            probs = torch.softmax(model.output.projection(features), dim=0).tolist()
            found = [p + weight * q for p, q in zip(found, probs, strict=True)]
    return found


def loop_copynet(model, step, memory, n):
    values = model.encoder(collate_source(SOURCE)).values_BSM[n_pair(n)]
    generated = model.output.projection(step.features_BF[n]).exp().tolist() + [0.0] * memory.source_ids_BS.shape[1]
    for j, extended in enumerate(memory.extended_ids_BS[n].tolist()):
        if extended != PAD:
            generated[extended] += math.exp(torch.tanh(model.output.copy_projection(values[j])) @ step.hidden_BH[n])
    return [one / sum(generated) for one in generated]


def loop_lexical(model, step, memory, n):
    total = torch.zeros(11, dtype=torch.float64)
    for j, source_id in enumerate(memory.source_ids_BS[n]):
        if source_id != PAD:
            total = total + step.weights_BS[n, j] * model.encoder.embedding.weight[source_id]
    f = torch.tanh(total)
    h = torch.tanh(model.output.layer.weight @ f) + f
    logits = model.output.projection(step.features_BF[n]) + model.output.lexical_projection.weight @ h
    return torch.softmax(logits, dim=0).tolist()


SOURCE, TARGET = [[5, 9, 7, 4], [8], [6, 8]], [[9, 33, 31, 6], [5], []]
EXTENDED = [extend(*pair, NUM_IDS) for pair in zip([[33, 9, 33, 31], [8], [8, 30]], TARGET, strict=True)]
TARGET_IDS = [[UNK if i >= NUM_IDS else i for i in ids] for ids in TARGET]
LOOPS = {
    "marginal": (loop_marginal, {"name": "marginal"}),
    "copynet": (loop_copynet, {"name": "copynet"}),
    "lexical": (loop_lexical, {"name": "lexical"}),
    "lexicon": (loop_lexicon, {"name": "lexicon"}),
    "interpolation": (loop_interpolation, {"name": "lexicon", "options": {"variant": "interpolation"}}),
}
POSITIONS = []


def n_pair(n):
    """The pair of the n-th target token."""
    return POSITIONS[n] % len(SOURCE)


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "conditional"])
@pytest.mark.parametrize("name", LOOPS)
def test_probabilities_are_those_of_a_loop(make_model, name, decoder):
    loop, output = LOOPS[name]
    model = make_model(output=output, decoder={"name": decoder}).eval()
    if isinstance(model.output, TakesTable):
        model.output.set_table(lexicon_table())
    batch = collate(SOURCE, TARGET_IDS, range(3), extended=EXTENDED)
    POSITIONS[:] = batch.positions_N.tolist()
    with torch.no_grad():
        outputs = model(batch)
        step, memory = outputs.rows(slice(None))
        rows = model.output.log_probs(step, memory).exp()
        for n in range(batch.num_tokens):
            assert rows[n].tolist() == pytest.approx(loop(model, step, memory, n), abs=1e-8)
        targets = model.output.targets(outputs, batch)
        expected = -rows.log().gather(1, targets.unsqueeze(1))[: batch.num_tokens].sum()
        torch.testing.assert_close(model.output.loss(outputs, batch, label_smoothing=0.0).loss_sum, expected)


@pytest.mark.parametrize("name", ["lexical", "lexicon"])
def test_label_smoothing_gives_every_vocabulary_entry_an_equal_share(make_model, name):
    model = make_model(output={"name": name}).eval()
    if isinstance(model.output, TakesTable):
        model.output.set_table(lexicon_table())
    batch = collate(SOURCE, TARGET_IDS, range(3))
    with torch.no_grad():
        outputs = model(batch)
        log_probs_NV = model.output.log_probs(*outputs.rows(slice(0, batch.num_tokens)))
        found = model.output.loss(outputs, batch, label_smoothing=0.2)
    wanted_NV = torch.nn.functional.one_hot(outputs.targets_N[: batch.num_tokens], NUM_IDS)
    smoothed_NV = 0.8 * wanted_NV + 0.2 / NUM_IDS
    torch.testing.assert_close(found.loss_sum, -(smoothed_NV * log_probs_NV).sum())
    torch.testing.assert_close(found.nll_sum, -(wanted_NV * log_probs_NV).sum())


def test_the_gradient_of_the_marginal_is_that_of_all_alignments(make_model):
    """log p(y) = log of the sum over all sequences of source positions: 3 ** 4 here."""
    model = make_model(output={"name": "marginal"}).eval()
    batch = collate([[5, 9]], [[7, 8, 6]], [0])
    parameters = list(model.parameters())
    loss = model.output.loss(model(batch), batch, label_smoothing=0.0).loss_sum
    found = torch.autograd.grad(loss, parameters)
    outputs = model(batch)
    values = model.encoder(batch.source).values_BSM[0]
    total = torch.zeros((), dtype=torch.float64)
    for positions in itertools.product(range(3), repeat=4):
        product = torch.ones((), dtype=torch.float64)
        for t, j in enumerate(positions):
            features = model.decoder.readout(outputs.hidden_TBH[t, 0], values[j], outputs.embedded_TBE[t, 0])
            p = torch.softmax(model.output.projection(features), dim=0)[batch.tgt_out_BT[0, t]]
            product = product * outputs.weights_TBS[t, 0, j] * p
        total = total + product
    expected = torch.autograd.grad(-total.log(), parameters)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-6)


def test_the_heaviest_positions_of_all_are_all(make_model, batch):
    losses = []
    for options in ({}, {"top_k": 99}, {"top_k": 2}):
        model = make_model(output={"name": "marginal", "options": options}).eval()
        losses.append(model.output.loss(model(batch), batch, label_smoothing=0.1).loss_sum.item())
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("attention", ["fixed", "additive"])
def test_copynet_finds_source_words_in_search(make_model, attention):
    """It needs no attention over source positions."""
    model = make_model(attention, output={"name": "copynet"}).eval()
    with torch.no_grad():
        model.output.projection.bias.fill_(-40.0)
    source = collate_source([[5, 6, 5, 7], [8]], [[31, 32, 31, 34], [31]])
    best = search(step_model(model), source, [6, 4], beam_size=3, n_best=3)
    found = [{i for hypothesis in hypotheses for i in hypothesis.ids} for hypotheses in best]
    assert {31, 32, 34} >= found[0] > set()
    assert found[1] == {31}


@pytest.mark.parametrize("name", ["copy", "copynet", "lexical", "lexicon", "marginal"])
def test_the_target_embedding_may_be_the_output_weight(make_model, name):
    model = make_model(output={"name": name}, tie_embeddings="target")
    assert model.output.projection.weight is model.embedding.weight


def test_lexical_refuses_an_encoder_that_leaves_the_embeddings_out():
    output = lexical.Lexical(**SIZES, source_attention=None, source_embedding=Embedding(9, 1))
    with pytest.raises(UsageError, match=r"'lexical'.*`Encoded\.embedded_BSE`"):
        memory_of(output, [4, 5], [1.0, 2.0])


def test_rows_hold_no_copies_of_the_attentions_memory(make_model, batch):
    step, memory = make_model()(batch).rows(slice(None))
    assert memory.attention is None
    assert len(memory.source_ids_BS) == len(step.features_BF)


@pytest.mark.parametrize("decoder", packaged_variants("decoder"))
def test_the_readout_that_the_marginal_calls_is_saved_once_as_the_decoders(make_model, decoder):
    model = make_model(output={"name": "marginal"}, decoder={"name": decoder})
    assert not [name for name in model.state_dict() if name.startswith("output.readout")]
