"""Translation by a toy run and by models with a script."""

import sys
from itertools import cycle, islice
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.config import Config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.runtime.device import translation_precision
from seq2seq_attn.text.tokenizers.base import SpaceTokenizer
from seq2seq_attn.text.vocab import EOS, SPECIALS, UNK, Vocab
from seq2seq_attn.translate import segments
from seq2seq_attn.translate.translator import Translator
from tests.processes import output_of
from tests.search.fake_model import FakeModel
from tests.toy_run import SOURCE, make_toy_run
from tests.translate.conftest import assert_same, texts

LINES = [*SOURCE, "", "Ein Hund", "  ", "Hund " * 150, "Wiese!", "qux ✈ 你好", "x" * 300]
A = UNK + 1
B = UNK + 2


@pytest.fixture(scope="module")
def run_path(module_path):
    return make_toy_run(module_path / "toy").path


@pytest.fixture(scope="module")
def translator(run_path):
    return load(run_path, device="cpu")


def fake(model, *, max_source_length=100):
    """A translator of s0 to s8 into t0, t1, ..."""
    text = SimpleNamespace(
        source_tokenizer=SpaceTokenizer(),
        target_tokenizer=SpaceTokenizer(),
        source_vocab=Vocab([*SPECIALS, *(f"s{i}" for i in range(9))]),
        target_vocab=Vocab([*SPECIALS, *(f"t{i}" for i in range(model.num_free))]),
    )
    config = Config(search={"beam_size": 2}, data={"max_length": max_source_length})
    return Translator(model, text, config, device=torch.device("cpu"))


@pytest.fixture
def short_segments():
    """It splits lines of more than three tokens."""
    return fake(FakeModel(num_free=4, seed=2, eos_bonus=1.0), max_source_length=3)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_batch_size_changes_nothing(translator, beam_size):
    expected = translator.translate(LINES, beam_size=beam_size, batch_size=1)
    assert len(set(texts(expected))) > 6  # the toy model does look at its input
    for batch_size in (2, 5, 64):
        translated = translator.translate(LINES, beam_size=beam_size, batch_size=batch_size)
        assert_same(translated, expected)


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_batch_size_changes_no_token_in_lower_precision(run_path, precision):
    translator = load(run_path, device="cpu", precision=precision)
    expected = translator.translate(LINES, batch_size=1)
    for batch_size in (2, 5, 64):
        translated = translator.translate(LINES, batch_size=batch_size)
        for translation, alone in zip(translated, expected, strict=True):
            assert translation.tokens == alone.tokens
            assert translation.source_tokens == alone.source_tokens


def test_lines_of_an_endless_stream_come_in_order(translator, monkeypatch):
    monkeypatch.setattr(segments, "CHUNK_LINES", 4)
    stream = translator.translate_lines(cycle(LINES), beam_size=1)
    translated = [best.text for [best] in islice(stream, 2 * len(LINES))]
    assert translated == 2 * texts(translator.translate(LINES, beam_size=1))


def test_attention_belongs_to_the_tokens(translator):
    for translation in translator.translate(LINES):
        assert translation.attention.dtype == np.float32
        assert translation.source_tokens[-1] == "<eos>"
        if translation.tokens:
            num_steps = len(translation.tokens) + translation.is_finished
            assert translation.attention.shape == (num_steps, len(translation.source_tokens))
            np.testing.assert_allclose(translation.attention.sum(axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("blank", ["", " \t ", "\x00\x07", " "])
def test_a_blank_line_gives_an_empty_translation(translator, blank):
    [translation] = translator.translate([blank])
    assert (translation.text, translation.tokens, translation.score) == ("", [], 0.0)
    assert translation.attention.shape == (0, 1)
    assert translation.links() == []


@pytest.mark.parametrize(("precision", "device"), [("fp8", "cpu"), ("int8", "cuda")])
def test_translation_precision_refuses_what_the_device_lacks(precision, device):
    with pytest.raises(UsageError, match=precision):
        translation_precision(precision, torch.device(device))


def test_translation_precision_is_fp32_by_default():
    assert translation_precision("auto", torch.device("cuda")) == "fp32"


class FiveForOne(FakeModel):
    """Five tokens for each of the source, then EOS."""

    def next_log_probs(self, source, prefix):
        log_probs = np.full(UNK + 1 + self.num_free, -20.0, dtype=np.float32)
        log_probs[EOS if len(prefix) == 5 * len(source) else A] = -0.1
        return log_probs


@pytest.mark.parametrize("beam_size", [1, 2])
def test_the_ratio_decides_how_long_translations_may_be(beam_size):
    translator = fake(FiveForOne())
    lines = ["s1 s2", "s1 s2 s3 s4 s5"]
    short, long = translator.translate(lines, beam_size=beam_size)
    assert (short.is_cut, long.is_cut) == (False, True)
    for translation in translator.translate(lines, beam_size=beam_size, max_length_ratio=5):
        assert (translation.is_finished, translation.is_cut) == (True, False)
        assert len(translation.tokens) == 5 * (len(translation.source_tokens) - 1)


def test_a_long_line_is_its_segments_joined(short_segments):
    lines = ["s1 s2 s3", "s4 s5 s6", "s7"]
    parts = short_segments.translate(lines)
    [joined] = short_segments.translate([" ".join(lines)])
    assert joined.text == " ".join(part.text for part in parts if part.text)
    assert joined.tokens == [token for part in parts for token in part.tokens]
    assert joined.score == pytest.approx(sum(part.score for part in parts))
    assert joined.source_tokens == "s1 s2 s3 s4 s5 s6 s7 <eos>".split()
    assert joined.attention.shape == (len(joined.tokens) + parts[-1].is_finished, 8)
    np.testing.assert_allclose(joined.attention.sum(axis=1), 1.0, atol=1e-5)
    assert joined.heaviest == joined.attention[: len(joined.tokens)].argmax(axis=1).tolist()


def test_a_matrix_too_large_is_left_out_but_links_stay(short_segments, monkeypatch):
    line = "s1 s2 s3 s4 s5"
    [whole] = short_segments.translate([line])
    monkeypatch.setattr(segments, "MAX_ATTENTION_CELLS", 5)
    [joined] = short_segments.translate([line])
    assert joined.attention is None
    assert joined.links() == whole.links()


def test_translate_takes_no_n_best():
    with pytest.raises(TypeError, match="n_best=0"):
        fake(FakeModel()).translate(["s1"], n_best=0)


SCRIPT = {
    (): {UNK: 0.7, A: 0.3},
    (UNK,): {UNK: 0.9, B: 0.1},
    (UNK, UNK): {EOS: 1.0},
    (A,): {EOS: 1.0},
}
"""two unknown tokens, or t0"""


@pytest.mark.parametrize(("unk", "text"), [("keep", "<unk> <unk>"), ("forbid", "t0")])
def test_unknown_tokens_are_kept_or_forbidden(unk, text):
    translator = fake(FakeModel(scripted=SCRIPT))
    assert texts(translator.translate(["s1 Zwickau s2 Xyz"], unk=unk)) == [text]


@pytest.mark.parametrize("keep_attention", [True, False])
def test_unknown_tokens_are_copied_from_the_heaviest_position(keep_attention):
    model = FakeModel(scripted=SCRIPT)
    translator = fake(model)
    source = ["s1", "Zwickau", "s2", "Xyz"]
    ids = tuple(translator.source_vocab.ids_of(source))
    expected = []
    for prefix in ((), (UNK,)):
        expected.append(source[model.attention(ids, prefix)[:-1].argmax()])
    [copied] = translator.translate([" ".join(source)], unk="copy", keep_attention=keep_attention)
    assert copied.tokens == expected
    assert copied.text == " ".join(expected)


def test_hypotheses_that_copying_makes_equal_are_one_translation():
    script = {(): {UNK: 0.5, B: 0.3, A: 0.2}}
    for token in (UNK, B, A):
        script[token,] = {EOS: 1.0}
    translator = fake(FakeModel(scripted=script))
    [best] = translator.translate_n_best(["t0"], n_best=3, beam_size=3, unk="copy")
    assert texts(best) == ["t0", "t1"]
    log_probs = [translation.log_prob for translation in best]
    assert log_probs == pytest.approx(np.log([0.5, 0.3]), abs=1e-4)
    [best] = translator.translate_n_best(["t0"], n_best=3, beam_size=3)
    assert len(best) == 3


@pytest.mark.parametrize(
    ("line", "unknown"), [("s1 s2", ()), ("Hallo s1 Welt", (0, 2)), ("s1 s2 s3 Hallo s4", (3,))]
)
def test_unknown_has_the_positions_of_unknown_source_tokens(short_segments, line, unknown):
    [translation] = short_segments.translate([line])
    assert translation.unknown_positions == unknown
    assert translation.unknown == tuple(line.split()[position] for position in unknown)
    assert translation.source_tokens == [*line.split(), "<eos>"]


class LooksAtEos(FakeModel):
    """Weights that rise to EOS."""

    def attention(self, source, prefix):
        weights = np.arange(1.0, len(source) + 2.0, dtype=np.float32)
        return weights / weights.sum()


def test_a_token_that_looks_at_eos_most_copies_the_heaviest_real_one():
    [translation] = fake(LooksAtEos(scripted=SCRIPT)).translate(["Xyz Abc"], unk="copy")
    assert translation.text == "Abc Abc"
    assert translation.links() == []


def test_copying_and_links_need_attention_over_positions():
    translator = fake(FakeModel(scripted=SCRIPT, has_weights=False))
    assert not translator.has_attention
    with pytest.raises(UsageError, match="unk='copy'"):
        translator.translate(["s1"], unk="copy")
    [translation] = translator.translate(["s1"])
    assert translation.attention is None
    with pytest.raises(ValueError, match="no links"):
        translation.links()


@pytest.mark.parametrize(
    ("lines", "match"),
    [
        ("Ein Hund", r"translate\(\[text\]\)"),
        (["Hund", b"Hund"], r"texts\[1\]"),
        (["Hund", None], r"texts\[1\]"),
    ],
)
def test_lines_that_are_no_strings_are_refused(translator, lines, match):
    with pytest.raises(TypeError, match=match):
        translator.translate(lines)


def test_loading_leaves_the_random_numbers_alone(run_path):
    before = torch.get_rng_state()
    load(run_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_translating_imports_nothing_heavy(run_path):
    code = (
        "import sys; from tests.toy_requests import translate\n"
        f"translate(['Ein Hund'], run={str(run_path)!r})\n"
        "heavy = {'spacy', 'torchtext', 'matplotlib', 'sacrebleu', 'tensorboard'} & "
        "set(sys.modules)\nsys.exit(f'imported {heavy}' if heavy else 0)"
    )
    command = [sys.executable, "-c", code]
    output_of(command, timeout=300)
