"""Several sources: each encoder reads its own, and hierarchical attention weighs them against each other."""

import random

import pytest
import torch

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import SourceBatch, collate, collate_source
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.normalizer import softmax
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.sources import SeveralSources
from seq2seq_attn.model.variants import build_variant
from seq2seq_attn.text.vocab import EOS
from seq2seq_attn.train.loss import batch_loss

SOURCES = [[[5, 6, 7], [8]], [[9], [4, 4, 5, 6]], [[], [7, 8]], [[6, 5], []]]
LINES = [[*first, EOS, *second] for first, second in SOURCES]


def build(num_sources: int = 2, **settings: object) -> Seq2Seq:
    torch.manual_seed(1)
    values = {"embedding_size": 5, "hidden_size": 7, "encoder": {"hidden_size": 3, "num_layers": 2}, **settings}
    config = ModelConfig.model_validate(values)
    model = build_model(config, num_source_ids=13, num_target_ids=11, vector_sizes=[None] * num_sources)
    return model.double().eval()


@pytest.mark.parametrize("name", ["bigru", "embeddings", "convolutional", "self_attention", "reversed_gru"])
def test_each_encoder_reads_its_source_alone(name: str) -> None:
    layers = 1 if name == "embeddings" else 2
    model = build(encoder={"name": name, "hidden_size": 4, "num_layers": layers})
    assert isinstance(model.encoder, SeveralSources)
    encoded = model.encoder(collate_source(LINES))
    for row, sources in enumerate(SOURCES):
        alone = [encoder(collate_source([ids])) for encoder, ids in zip(model.encoder.encoders, sources, strict=True)]
        values = torch.cat([of_source.values_BSM[0] for of_source in alone])
        torch.testing.assert_close(encoded.values_BSM[row, : len(values)], values)
        embedded = model.encoder.embedding(torch.tensor([*LINES[row], EOS]))
        torch.testing.assert_close(encoded.embedded_BSE[row, : len(values)], embedded)
        joined = torch.cat([of_source.final_BM[0] for of_source in alone])
        torch.testing.assert_close(encoded.final_BM[row], torch.tanh(model.encoder.combination(joined)))


def test_a_line_that_lacks_sources_has_empty_ones() -> None:
    encoder = build(num_sources=3).encoder
    encoded = encoder(collate_source([[5, 6], [5, 6, EOS, 7, EOS, 8, 9]]))
    torch.testing.assert_close(encoded.values_BSM[0, :3], encoder.encoders[0](collate_source([[5, 6]])).values_BSM[0])
    assert torch.isfinite(encoded.final_BM).all()


def test_the_sources_share_one_embedding() -> None:
    model = build(num_sources=3)
    assert len({id(encoder.embedding) for encoder in model.encoder.encoders}) == 1
    names = [name for name, _ in model.named_parameters() if "embedding" in name]
    assert names == ["encoder.encoders.0.embedding.weight", "embedding.weight"]


@pytest.mark.parametrize(
    ("attention", "output"),
    [
        *((name, "softmax") for name in ("additive", "hierarchical", "multi_head", "coverage", "fixed")),
        *(("additive", name) for name in ("copynet", "lexical", "lexicon", "marginal")),
    ],
)
def test_every_parameter_learns_and_padding_changes_nothing(attention: str, output: str) -> None:
    model = build(attention={"name": attention}, output={"name": output})
    targets = [[5, 6], [7], [8, 9, 10], [5]]
    together = batch_loss(model, collate(LINES, targets, range(4)))
    together.loss_sum.backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []
    alone = [batch_loss(model, collate([s], [t], [0])).loss_sum for s, t in zip(LINES, targets, strict=True)]
    torch.testing.assert_close(together.loss_sum, sum(alone))


def hierarchical(**settings: object) -> tuple[torch.nn.Module, torch.Tensor, torch.Tensor, SourceBatch]:
    torch.manual_seed(3)
    sizes = {"query_size": 7, "memory_size": 5, "normalizer": softmax.weights}
    attention = build_variant("attention", "hierarchical", settings, **sizes).double()
    for parameter in attention.parameters():
        torch.nn.init.uniform_(parameter, -0.9, 0.9)
    source = collate_source(LINES)
    values = torch.randn(*source.ids_BS.shape, 5, dtype=torch.float64)
    return attention, values, torch.randn(len(LINES), 7, dtype=torch.float64), source


def test_hierarchical_attention_equals_the_formula_part_by_part() -> None:
    attention, values, query, source = hierarchical(attention_size=3)
    memory, state = attention.prepare(Encoded(values, source.mask_BS, values[:, 0]), source)
    attended = attention.step(query, memory, state)
    for row, sources in enumerate(SOURCES):
        contexts, weights, start = [], [], 0
        for ids in sources:
            part = values[row, start : start + len(ids) + 1]
            start += len(ids) + 1
            hidden = torch.tanh(attention.query_projection(query[row]) + attention.key_projection(part))
            weights.append(torch.softmax(hidden @ attention.score_weight_A, dim=0))
            contexts.append(weights[-1] @ part)
        joined = torch.stack(contexts)
        hidden = torch.tanh(attention.part_query_projection(query[row]) + attention.part_key_projection(joined))
        of_parts = torch.softmax(hidden @ attention.part_score_weight_A, dim=0)
        torch.testing.assert_close(attended.context_BM[row], of_parts @ joined)
        expected = torch.cat([share * alpha for share, alpha in zip(of_parts, weights, strict=True)])
        torch.testing.assert_close(attended.weights_BS[row, : len(expected)], expected)


def test_hierarchical_attention_over_one_source_is_additive() -> None:
    attention, values, query, _ = hierarchical()
    source = collate_source([[5, 6, 7], [8], [9, 4], [5]])
    values = values[:, :4]
    sizes = {"query_size": 7, "memory_size": 5, "normalizer": softmax.weights}
    additive = build_variant("attention", "additive", {}, **sizes).double()
    additive.load_state_dict({k: v for k, v in attention.state_dict().items() if not k.startswith("part_")})
    found = []
    for variant in (attention, additive):
        memory, state = variant.prepare(Encoded(values, source.mask_BS, values[:, 0]), source)
        found.append(variant.step(query, memory, state))
    torch.testing.assert_close(found[0].context_BM, found[1].context_BM)
    torch.testing.assert_close(found[0].weights_BS, found[1].weights_BS)


def interleaved(seed: int, num_pairs: int = 32) -> tuple[list[list[int]], list[list[int]]]:
    """Lines of two sources, and targets whose tokens come from each in turn."""
    generator = random.Random(seed)
    pairs = [[[generator.randrange(4, 11) for _ in range(3)] for _ in range(2)] for _ in range(num_pairs)]
    return [[*a, EOS, *b] for a, b in pairs], [
        [token for both in zip(a, b, strict=True) for token in both] for a, b in pairs
    ]


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["additive", "hierarchical"])
def test_it_learns_a_target_that_needs_both_sources(attention: str) -> None:
    sizes = {"embedding_size": 16, "hidden_size": 32, "encoder": {"hidden_size": 16}}
    model = build(
        **sizes, attention={"name": attention}, dropout=dict.fromkeys(("embedding", "encoder", "readout"), 0.0)
    )
    model.float().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for update in range(300):
        optimizer.zero_grad()
        batch = collate(*interleaved(update), range(32))
        (batch_loss(model, batch).loss_sum / batch.num_tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        batch = collate(*interleaved(10**6), range(32))
        loss_sum = batch_loss(model.eval(), batch).loss_sum
    assert loss_sum / batch.num_tokens < 0.1  # guessing every other token: (3 log 7) / 7 = 0.83
