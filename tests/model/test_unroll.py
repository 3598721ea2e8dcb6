"""The fast unroll is the plain one: outputs, gradients, and a loss curve."""

import gc

import pytest
import torch

from seq2seq_attn.data.batch import collate
from seq2seq_attn.model import seq2seq as seq2seq_module
from seq2seq_attn.model import unroll as unroll_module
from seq2seq_attn.model.attention import variant_names
from seq2seq_attn.model.unroll import unroll, unroll_deferred, unroll_plain
from seq2seq_attn.train.loss import batch_loss


@pytest.fixture
def with_way(monkeypatch):
    def use(way):
        monkeypatch.setattr(seq2seq_module, "unroll", way)

    return use


def loss_and_gradients(model, batch, ratio, seed=3):
    torch.manual_seed(seed)
    model.zero_grad()
    loss = batch_loss(model, batch, label_smoothing=0.1, teacher_forcing_ratio=ratio)
    loss.loss_sum.backward()
    return loss, {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("name", variant_names())
def test_loss_and_gradients_equal_the_plain_loops(make_model, batch, with_way, name, ratio):
    model = make_model(name)
    results = []
    for way in (unroll, unroll_plain):
        with_way(way)
        results.append(loss_and_gradients(model, batch, ratio))
    (fast, fast_gradients), (plain, plain_gradients) = results
    torch.testing.assert_close(fast.loss_sum, plain.loss_sum, rtol=1e-12, atol=0)
    torch.testing.assert_close(fast_gradients, plain_gradients, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kept", ["all", "whole multiples", "none"])
@pytest.mark.parametrize("ratio", [0.5, 0.0])
def test_logits_of_fed_back_tokens_serve_the_loss(make_model, batch, monkeypatch, ratio, kept):
    model = make_model().train()
    monkeypatch.setattr(seq2seq_module, "MOST_KEPT_CELLS", 0)
    expected, expected_gradients = loss_and_gradients(model, batch, ratio)
    monkeypatch.setattr(seq2seq_module, "MOST_KEPT_CELLS", 0 if kept == "none" else 10**9)
    monkeypatch.setattr(seq2seq_module, "ROW_MULTIPLE", {"all": 1, "whole multiples": 4, "none": 1}[kept])
    torch.manual_seed(3)
    known = model(batch, ratio).logits_GV
    assert (known is None) == (kept == "none")
    assert known is None or len(known) > 0
    found, gradients = loss_and_gradients(model, batch, ratio)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(gradients, expected_gradients, rtol=1e-9, atol=1e-12)


def test_known_scores_take_the_fast_way(make_model):
    known = {name for name in variant_names() if make_model(name).decoder.attention.fast_score() is not None}
    assert {"additive", "dot", "scaled_dot", "bilinear", "slots", "uniform", "none", "initial"} <= known


@pytest.mark.parametrize("ratio", [1.0, 0.5])
@pytest.mark.parametrize("name", variant_names())
def test_deferred_gradients_equal_the_plain_loops(make_model, batch, with_way, name, ratio):
    model = make_model(name)
    with_way(unroll_plain)
    plain, plain_gradients = loss_and_gradients(model, batch, ratio)
    with_way(unroll_deferred)
    deferred, deferred_gradients = loss_and_gradients(model, batch, ratio)
    torch.testing.assert_close(deferred.loss_sum, plain.loss_sum, rtol=1e-12, atol=0)
    torch.testing.assert_close(deferred_gradients, plain_gradients, rtol=1e-9, atol=1e-12)


def test_a_deferred_pass_leaves_nothing_to_the_garbage_collector(make_model, batch, with_way):
    model = make_model("additive")
    with_way(unroll_deferred)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        loss_and_gradients(model, batch, 1.0)
        gc.collect()
        assert not [thing for thing in gc.garbage if isinstance(thing, torch.Tensor)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_an_unknown_score_takes_the_deferred_way(make_model, batch, monkeypatch):
    model = make_model("dot")
    _, known = loss_and_gradients(model, batch, 1.0)
    monkeypatch.setattr(type(model.decoder.attention), "fast_score", lambda self: None)
    ways = []
    monkeypatch.setattr(unroll_module, "unroll_deferred", lambda *inputs: ways.append(1) or unroll_deferred(*inputs))
    _, unknown = loss_and_gradients(model, batch, 1.0)
    assert len(ways) == 1
    torch.testing.assert_close(unknown, known, rtol=1e-9, atol=1e-12)


def test_single_precision_is_close(make_model, batch, with_way):
    model = make_model(dtype=torch.float32)
    with_way(unroll)
    _, fast = loss_and_gradients(model, batch, 1.0)
    with_way(unroll_plain)
    _, plain = loss_and_gradients(model, batch, 1.0)
    for name in plain:
        assert (fast[name] - plain[name]).norm() <= 1e-6 * max(1.0, plain[name].norm()), name


@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_bf16_is_close(make_model, batch, ratio):
    """Also where a pass without gradient comes first: autocast must not reuse its casts without gradient."""
    model = make_model(dtype=torch.float32)
    exact, exact_gradients = loss_and_gradients(model, batch, ratio)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.manual_seed(3)
        model.zero_grad()
        low = batch_loss(model, batch, label_smoothing=0.1, teacher_forcing_ratio=ratio)
    low.loss_sum.backward()
    assert low.loss_sum.dtype == torch.float32
    torch.testing.assert_close(low.loss_sum, exact.loss_sum, rtol=1e-2, atol=0)
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    exact_flat = torch.cat([g.flatten() for g in exact_gradients.values()])
    assert (flat - exact_flat).norm() <= 2e-2 * exact_flat.norm()


@pytest.mark.parametrize("name", ["additive", "bilinear", "none"])
def test_fifty_updates_give_the_same_loss_curve(make_model, batch, with_way, name):
    curves = []
    for way in (unroll, unroll_plain):
        with_way(way)
        model = make_model(name)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        curve = []
        for update in range(50):
            loss, _ = loss_and_gradients(model, batch, 0.7, seed=update)
            optimizer.step()
            curve.append(loss.loss_sum.item() / loss.num_tokens)
        curves.append(curve)
    assert curves[0] == pytest.approx(curves[1], rel=1e-7)
    assert curves[0][-1] < curves[0][0]


@pytest.mark.parametrize("name", ["additive", "dot"])
def test_gradcheck_through_weights_and_states(make_model, name):
    model = make_model(name).eval()
    source, target = [[5, 9, 4], [7]], [[6], [8, 10]]
    batch = collate(source, target, range(2))
    embedded = torch.randn(3, 2, 11, dtype=torch.float64, requires_grad=True)

    def run(embedded, *parameters):
        hidden, memory, state = model.encode(batch.source)
        return unroll(model.decoder, embedded, hidden, memory, state)

    used = [
        p for n, p in model.decoder.named_parameters() if n.startswith(("recurrent", "attention", "context_weight"))
    ]
    assert torch.autograd.gradcheck(run, (embedded, *used))


def test_sampled_inputs_are_the_models_own_choices(make_model, batch):
    """With ratio 0 a naive loop that feeds back arg-max tokens gives the same loss."""
    model = make_model().eval()
    loss = batch_loss(model, batch, teacher_forcing_ratio=0.0)
    state = model.start(batch.source, 1)
    previous, total = batch.tgt_in_BT[:, 0], 0.0
    for t in range(batch.tgt_out_BT.shape[1]):
        features, state = model.step(previous, state)
        log_probs = torch.log_softmax(model.logits(features), dim=-1)
        wanted = batch.tgt_out_BT[:, t]
        total -= (log_probs.gather(1, wanted.unsqueeze(1)).squeeze(1) * (wanted != 0)).sum().item()
        previous = log_probs.argmax(dim=1)
    assert loss.nll_sum.item() == pytest.approx(total, rel=1e-6)
