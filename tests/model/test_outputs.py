"""Outputs by hand and by loops over their formulas."""

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
from seq2seq_attn.model.output import copy, lexical, lexicon, marginal, pointer
from seq2seq_attn.model.output.base import LEAST_WEIGHT, TakesTable
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.text.ibm1 import EMPTY, TranslationTable, estimate_table
from seq2seq_attn.text.vocab import BOS, EOS, PAD, UNK
from tests.extended import extend

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


def memory_of(output, ids, values=None):
    """One sentence with these ids, which are also its extended ids, and values; 0 without them."""
    values_BSM = row(*(values or [0.0] * len(ids))).unsqueeze(-1)
    ids = torch.tensor([ids])
    source = collate_source([[]])._replace(ids_BS=ids, extended_ids_BS=ids)
    encoded = Encoded(values_BSM, source.mask_BS, values_BSM[:, 0])
    return Memory(None, ids, ids, output.prepare(encoded, source))


def context_alone(hidden, context, embedded):
    return context


def test_marginal_over_the_heaviest_positions_by_hand():
    output = marginal.Marginal(
        **SIZES,
        context_size=1,
        memory_size=1,
        read_out=context_alone,
        top_k=2,
    )
    fill(output, 0.0)
    with torch.no_grad():
        output.projection.weight[4] = 1.0
        output.projection.weight[5] = -1.0
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
    output = lexicon.Lexicon(**SIZES, num_source_ids=9, num_entries=num_entries, epsilon=0.5)
    fill(output, 0.0)
    assert f"{2 * num_entries} translations of 2 source types" in output.set_table(
        table_of(ENTRIES)
    )
    found = output.log_probs(step_of([0.5, 0.25, 0.25]), memory_of(output, [4, 7, EOS])).exp()
    expected = row(0.5, 0.5, 0.25 + 0.5, 0.5, 0.5 * four + 0.5, 0.5 * five + 0.5)
    torch.testing.assert_close(found, expected / expected.sum(), rtol=1e-6, atol=1e-9)


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
    torch.testing.assert_close(
        output.log_probs(step, memory).exp()[0], torch.tensor([0, 0, 0, 0, 0.75, 0.25])
    )
    for target in (4, 3):
        log_prob, _ = output.score(step, memory, torch.tensor([target]))
        log_prob.sum().backward()
        assert torch.isfinite(log_prob).all()
        assert all(torch.isfinite(p.grad).all() for p in output.parameters() if p.grad is not None)


def test_a_lexicon_never_names_a_token_beyond_the_vocabulary():
    """A file of weights may hold any number."""
    output = lexicon.Lexicon(**SIZES, num_source_ids=9, num_entries=2)
    fill(output, 0.0).set_table(table_of(ENTRIES))
    for wrong in (1e6, -1e6):
        output.target_ids_UK[4] = wrong
        found = output.log_probs(step_of([0.5, 0.25, 0.25]), memory_of(output, [4, 7, EOS])).exp()
        torch.testing.assert_close(found.sum(), torch.ones((), dtype=torch.float64))


POINTER = pointer.Pointer(num_ids=6)


def test_a_token_that_cannot_be_copied_has_a_finite_loss():
    log_probs = POINTER.log_probs(step_of([0.0, 1.0]), memory_of(POINTER, [4, EOS]))[0].tolist()
    assert log_probs[5] == log_probs[PAD] == pytest.approx(math.log(LEAST_WEIGHT))
    assert log_probs[6] == -math.inf
    output = copy.Copy(**SIZES, hidden_size=1, context_size=1, embedding_size=1).double()
    log_prob = output.log_probs(step_of([0.0, 1.0]), memory_of(output, [6, 7]))[0, 6].item()
    assert math.log(LEAST_WEIGHT) - 10 < log_prob < math.log(LEAST_WEIGHT)


def lexicon_table():
    pairs = [[np.array(ids) for ids in side] for side in (SOURCE, TARGET_IDS)]
    return estimate_table(pairs[0].__getitem__, pairs[1].__getitem__, len(SOURCE))


INTERPOLATION = {"variant": "interpolation"}


def p_lex(step, memory, n):
    found = [0.0] * NUM_IDS
    table = lexicon_table()
    for j, source_id in enumerate(memory.source_ids_BS[n].tolist()):
        row = [float(i == EOS) for i in range(NUM_IDS)]
        if source_id not in (EOS, PAD):
            row = table.lookup(np.array([source_id]), np.arange(NUM_IDS))[:, 0].tolist()
        found = [p + step.weights_BS[n, j].item() * q for p, q in zip(found, row, strict=True)]
    return torch.tensor(found, dtype=torch.float64)


def loop_lexicon(model, outputs, step, memory, n):
    logits = model.output.projection(step.features_BF[n])
    return torch.softmax(logits + (p_lex(step, memory, n) + 0.001).log(), dim=0).tolist()


def loop_interpolation(model, outputs, step, memory, n):
    share = torch.sigmoid(model.output.share_bias).item()
    p_model = torch.softmax(model.output.projection(step.features_BF[n]), dim=0)
    p = share * p_lex(step, memory, n)  # token 6 has no entry
    return (p + (1 - p.sum()) * p_model).tolist()


def loop_marginal(model, outputs, step, memory, n):
    found = [0.0] * NUM_IDS
    for j, weight in enumerate(step.weights_BS[n].tolist()):
        if memory.source_ids_BS[n, j] != PAD:
            value = model.encoder(collate_source(SOURCE)).values_BSM[place(outputs, n)[1], j]
            features = model.decoder.read_out(step.hidden_BH[n], value, step.embedded_BE[n])
            probs = torch.softmax(model.output.projection(features), dim=0).tolist()
            found = [p + weight * q for p, q in zip(found, probs, strict=True)]
    return found


def loop_copynet(model, outputs, step, memory, n):
    values = model.encoder(collate_source(SOURCE)).values_BSM[place(outputs, n)[1]]
    generated = (
        model.output.projection(step.features_BF[n]).exp().tolist()
        + [0.0] * memory.source_ids_BS.shape[1]
    )
    for j, extended in enumerate(memory.extended_ids_BS[n].tolist()):
        if extended != PAD:
            generated[extended] += math.exp(
                torch.tanh(model.output.copy_projection(values[j])) @ step.hidden_BH[n]
            )
    return [one / sum(generated) for one in generated]


def loop_lexical(model, outputs, step, memory, n):
    total = torch.zeros(11, dtype=torch.float64)
    for j, source_id in enumerate(memory.source_ids_BS[n]):
        if source_id != PAD:
            total = total + step.weights_BS[n, j] * model.encoder.embedding.weight[source_id]
    f = torch.tanh(total)
    h = torch.tanh(model.output.layer.weight @ f) + f
    logits = (
        model.output.projection(step.features_BF[n]) + model.output.lexical_projection.weight @ h
    )
    return torch.softmax(logits, dim=0).tolist()


def loop_copy(model, outputs, step, memory, n):
    p_gen = torch.sigmoid(
        model.output.gate(torch.cat([step.context_BM[n], step.hidden_BH[n], step.embedded_BE[n]]))
    )
    found = (p_gen * torch.softmax(model.output.projection(step.features_BF[n]), dim=0)).tolist()
    found += [0.0] * memory.source_ids_BS.shape[1]
    for j, extended in enumerate(memory.extended_ids_BS[n].tolist()):
        if extended != PAD:
            found[extended] += (1 - p_gen.item()) * step.weights_BS[n, j].item()
    return found


def loop_pointer(model, outputs, step, memory, n):
    found = [0.0] * (NUM_IDS + memory.source_ids_BS.shape[1])
    for j, extended in enumerate(memory.extended_ids_BS[n].tolist()):
        found[extended] += step.weights_BS[n, j].item()
    return found


def loop_history(model, outputs, step, memory, n):
    """One past word after the other."""
    t, pair = place(outputs, n)
    read = [BOS, *TARGET_IDS[pair]][: t + 1]
    hidden_TH = outputs.hidden_TBH[:, pair]
    query = torch.tanh(model.output.query_projection(hidden_TH[t]))
    shares = [math.exp(query @ model.output.sentinel_H)] + [
        math.exp(query @ hidden_TH[i]) for i in range(1, t + 1)
    ]
    found = (
        shares[0] / sum(shares) * torch.softmax(model.output.projection(step.features_BF[n]), dim=0)
    ).tolist()
    for i in range(1, t + 1):
        found[read[i]] += shares[i] / sum(shares)
    return found


SOURCE, TARGET = [[5, 9, 7, 4], [8], [6, 8]], [[9, 33, 31, 9], [5, 5], []]
EXTENDED = [
    extend(*pair, NUM_IDS) for pair in zip([[33, 9, 33, 31], [8], [8, 30]], TARGET, strict=True)
]
TARGET_IDS = [[UNK if i >= NUM_IDS else i for i in ids] for ids in TARGET]
LOOPS = {
    "copy": (loop_copy, {}),
    "copynet": (loop_copynet, {}),
    "history_pointer": (loop_history, {}),
    "history_pointer self_history": (loop_history, {"attention": {"name": "self_history"}}),
    "lexical": (loop_lexical, {}),
    "lexicon": (loop_lexicon, {}),
    "lexicon interpolation": (
        loop_interpolation,
        {"output": {"name": "lexicon", "options": INTERPOLATION}},
    ),
    "marginal": (loop_marginal, {}),
    "pointer": (loop_pointer, {"tie_embeddings": "none", "decoder": {"name": "conditional"}}),
}


DECODERS = ("bahdanau", "luong", "conditional")


def place(outputs, n):
    """Step and pair of the n-th target position."""
    return divmod(n, len(SOURCE))


def real_positions(batch):
    """The target positions that are not padding, step by step."""
    return (batch.tgt_out_BT.t().flatten() != PAD).nonzero().squeeze(1).tolist()


def make_case(make_model, name, **overrides):
    """A model with this output, a batch, and its outputs."""
    overrides = {"output": {"name": name.split()[0]}, **LOOPS[name][1], **overrides}
    model = make_model(**overrides).eval()
    if isinstance(model.output, TakesTable):
        model.output.set_table(lexicon_table())
    batch = collate(SOURCE, TARGET_IDS, range(3), extended=EXTENDED)
    return model, batch, model(batch)


@pytest.mark.parametrize(
    ("name", "decoder"),
    [pair for pair in itertools.product(LOOPS, DECODERS) if pair != ("pointer", "bahdanau")],
)
@torch.no_grad()
def test_probabilities_and_loss_are_those_of_a_loop(make_model, name, decoder):
    model, batch, outputs = make_case(make_model, name, decoder={"name": decoder})
    step, memory = outputs.rows(slice(None))
    log_probs = model.output.log_probs(step, memory)
    nll = 0.0
    for n in real_positions(batch):
        assert log_probs[n].exp().tolist() == pytest.approx(
            LOOPS[name][0](model, outputs, step, memory, n), abs=1e-8
        )
        t, pair = place(outputs, n)
        target = [
            *(EXTENDED[pair].target if model.output.copies_source else TARGET_IDS[pair]),
            EOS,
        ][t]
        nll -= log_probs[n, target].item()
    assert model.output.loss(outputs, label_smoothing=0.0).loss_sum.item() == pytest.approx(
        nll, rel=1e-6
    )


@pytest.mark.parametrize(
    "name", ["copy", "copynet", "history_pointer", "lexical", "lexicon", "pointer"]
)
@torch.no_grad()
def test_label_smoothing_gives_equal_shares(make_model, name):
    """To every vocabulary entry, by the distribution that copies nothing; `pointer`: to the source
    positions."""
    model, batch, outputs = make_case(make_model, name)
    real_N = torch.tensor(real_positions(batch))
    step, memory = outputs.rows(real_N)
    log_probs_NV = model.output.log_probs(step, memory)
    targets_N = model.output.targets(batch)[real_N]
    chosen_N = log_probs_NV.gather(1, targets_N.unsqueeze(1)).squeeze(1)
    if name == "pointer":
        means_N = torch.stack([row[row > 0].log().mean() for row in step.weights_BS])
    else:
        log_vocab_NV = (
            log_probs_NV
            if "lexic" in name
            else model.output.projection(step.features_BF).log_softmax(1)
        )
        means_N = log_vocab_NV.mean(dim=1)
    loss = model.output.loss(outputs, label_smoothing=0.2)
    torch.testing.assert_close(
        loss.loss_sum, -(0.8 * chosen_N + 0.2 * means_N).sum(), rtol=1e-6, atol=0.0
    )
    torch.testing.assert_close(loss.nll_sum, -chosen_N.sum(), rtol=1e-6, atol=0.0)


def test_the_gradient_of_the_marginal_is_that_of_all_alignments(make_model):
    """log p(y) = log of the sum over all sequences of source positions: 3 ** 4 here."""
    model = make_model(output={"name": "marginal"}).eval()
    batch = collate([[5, 9]], [[7, 8, 6]], [0])
    parameters = list(model.parameters())
    loss = model.output.loss(model(batch), label_smoothing=0.0).loss_sum
    found = torch.autograd.grad(loss, parameters)
    outputs = model(batch)
    values = model.encoder(batch.source).values_BSM[0]
    total = torch.zeros((), dtype=torch.float64)
    for positions in itertools.product(range(3), repeat=4):
        product = torch.ones((), dtype=torch.float64)
        for t, j in enumerate(positions):
            features = model.decoder.read_out(
                outputs.hidden_TBH[t, 0], values[j], outputs.embedded_TBE[t, 0]
            )
            p = torch.softmax(model.output.projection(features), dim=0)[batch.tgt_out_BT[0, t]]
            product = product * outputs.weights_TBS[t, 0, j] * p
        total = total + product
    expected = torch.autograd.grad(-total.log(), parameters)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-6)


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
