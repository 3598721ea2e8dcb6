"""Translation by a toy run and by models with a script."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.config import Config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import write_lines
from seq2seq_attn.runtime.device import translation_precision
from seq2seq_attn.text.tokenizers.base import SpaceTokenizer
from seq2seq_attn.text.vocab import EOS, SPECIALS, UNK, Vocab
from seq2seq_attn.translate import segments
from seq2seq_attn.translate.segments import join_translations
from seq2seq_attn.translate.translation import Translation
from seq2seq_attn.translate.translator import Translator
from tests.search.fake_model import FakeModel
from tests.toy_run import SOURCE, make_toy_run

LINES = [*SOURCE, "", "Ein Hund", "  ", "Hund " * 150, "Wiese!", "qux ✈ 你好", "x" * 300]


@pytest.fixture(scope="module")
def run_path(tmp_path_factory) -> Path:
    return make_toy_run(tmp_path_factory.mktemp("runs") / "toy").path


@pytest.fixture(scope="module")
def translator(run_path) -> Translator:
    return load(run_path, device="cpu")


A, B = UNK + 1, UNK + 2


def fake(model: FakeModel, *, max_source_length: int = 100) -> Translator:
    text = SimpleNamespace(
        source_tokenizer=SpaceTokenizer(),
        target_tokenizer=SpaceTokenizer(),
        source_vocab=Vocab([*SPECIALS, *(f"s{i}" for i in range(9))]),
        target_vocab=Vocab([*SPECIALS, *(f"t{i}" for i in range(model.num_free))]),
    )
    config = Config(search={"beam_size": 2}, data={"max_length": max_source_length})
    return Translator(model, text, config, device=torch.device("cpu"))


def texts(translations: Iterable[Translation]) -> list[str]:
    return [translation.text for translation in translations]


def log_probs(translations: Iterable[Translation]) -> list[float]:
    return [translation.log_prob for translation in translations]


def key(translation: Translation) -> tuple[str, list[str], list[str]]:
    return translation.text, translation.tokens, translation.source_tokens


@pytest.mark.parametrize(
    ("precision", "beam_size"), [("fp32", 1), ("fp32", 4), ("bf16", 4), ("int8", 4)]
)
def test_batch_size_and_order_change_nothing(run_path, precision, beam_size):
    translator = load(run_path, device="cpu", precision=precision)
    expected = translator.translate(LINES, beam_size=beam_size, batch_size=1)
    assert len(set(texts(expected))) > 6  # the toy model does look at its input
    for batch_size in (2, 5, 64):
        found = translator.translate(LINES, beam_size=beam_size, batch_size=batch_size)
        assert [key(t) for t in found] == [key(t) for t in expected]
        if precision == "fp32":
            assert log_probs(found) == pytest.approx(log_probs(expected), rel=1e-5)
    order = np.random.default_rng(0).permutation(len(LINES)).tolist()
    shuffled = translator.translate([LINES[i] for i in order], beam_size=beam_size)
    assert [key(t) for t in shuffled] == [key(expected[i]) for i in order]


def test_lines_of_an_endless_stream_come_in_order(translator, monkeypatch):
    monkeypatch.setattr(segments, "CHUNK_LINES", 4)

    def endless() -> Any:
        while True:
            yield from LINES

    stream = translator.translate_lines(endless(), beam_size=1)
    found = [next(stream)[0].text for _ in range(2 * len(LINES))]
    assert found == 2 * texts(translator.translate(LINES, beam_size=1))


def test_attention_belongs_to_the_tokens(translator):
    for translation in translator.translate(LINES):
        assert translation.attention is not None
        num_steps = len(translation.tokens) + (translation.is_finished and bool(translation.tokens))
        assert translation.attention.dtype == np.float32
        if translation.tokens:
            assert translation.attention.shape == (num_steps, len(translation.source_tokens))
            np.testing.assert_allclose(translation.attention.sum(axis=1), 1.0, atol=1e-5)
        assert translation.source_tokens[-1] == "<eos>"


def test_a_blank_line_gives_an_empty_translation(translator):
    for blank in ("", " \t ", "\x00\x07", " "):
        [translation] = translator.translate([blank])
        assert (translation.text, translation.tokens, translation.score) == ("", [], 0.0)
        assert translation.attention is not None
        assert translation.attention.shape == (0, 1)
        assert translation.links() == []
    assert translator.translate([]) == []


def test_translation_precision_refuses_what_the_device_lacks():
    assert translation_precision("auto", torch.device("cuda")) == "fp32"
    for precision, device in (("fp8", "cpu"), ("int8", "cuda")):
        with pytest.raises(UsageError, match=precision):
            translation_precision(precision, torch.device(device))


class FiveForOne(FakeModel):
    """Five tokens for each of the source, then EOS."""

    def next_log_probs(self, source: tuple[int, ...], prefix: tuple[int, ...]) -> np.ndarray:
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
        assert translation.is_finished
        assert not translation.is_cut
        assert len(translation.tokens) == 5 * (len(translation.source_tokens) - 1)
    [cut] = translator.translate(lines[:1], beam_size=1, max_length_ratio=1e-3)
    assert (cut.is_cut, cut.is_finished, len(cut.tokens)) == (True, False, 10)


def test_a_long_line_is_its_segments_joined():
    translator = fake(FakeModel(num_free=4, seed=2, eos_bonus=1.0), max_source_length=3)
    lines = ["s1 s2 s3", "s4 s5 s6", "s7"]
    parts = translator.translate(lines)
    [joined] = translator.translate([" ".join(lines)])
    assert joined.text == " ".join(part.text for part in parts if part.text)
    assert joined.tokens == [token for part in parts for token in part.tokens]
    assert joined.score == pytest.approx(sum(part.score for part in parts))
    assert joined.source_tokens == "s1 s2 s3 s4 s5 s6 s7 <eos>".split()
    assert joined.attention is not None
    assert joined.attention.shape == (len(joined.tokens) + parts[-1].is_finished, 8)
    np.testing.assert_allclose(joined.attention.sum(axis=1), 1.0, atol=1e-5)
    assert joined.heaviest == joined.attention[: len(joined.tokens)].argmax(axis=1).tolist()


def test_a_matrix_too_large_is_left_out_but_links_stay(monkeypatch):
    translator = fake(FakeModel(num_free=4, seed=2, eos_bonus=1.0), max_source_length=3)
    [whole] = translator.translate(["s1 s2 s3 s4 s5"])
    monkeypatch.setattr(segments, "MAX_ATTENTION_CELLS", 5)
    [joined] = translator.translate(["s1 s2 s3 s4 s5"])
    assert joined.attention is None
    assert joined.links() == whole.links()


def test_n_best_of_a_long_line_joins_rank_by_rank():
    translator = fake(FakeModel(num_free=4, seed=5, eos_bonus=1.0), max_source_length=2)
    first, second, third = translator.translate_n_best(["s1 s2", "s3", "s1 s2 s3"], n_best=2)
    for joined, start, end in zip(third, first, second, strict=True):
        assert joined.tokens == start.tokens + end.tokens
    assert join_translations(first[:1], SpaceTokenizer()) is first[0]


def scripted(**settings: Any) -> FakeModel:
    script = {
        (): {UNK: 0.7, A: 0.3},
        (UNK,): {UNK: 0.9, B: 0.1},
        (UNK, UNK): {EOS: 1.0},
        (A,): {EOS: 1.0},
    }
    return FakeModel(num_free=2, scripted=script, **settings)


def test_unknown_tokens_are_kept_copied_or_forbidden():
    model = scripted()
    translator = fake(model)
    source = ["s1", "Zwickau", "s2", "Xyz"]
    line = " ".join(source)
    assert translator.translate([line], unk="keep")[0].text == "<unk> <unk>"
    copied = translator.translate([line], unk="copy")[0]
    ids = tuple(translator.source_vocab.ids_of(source))
    weights = [model.attention(ids, prefix)[:-1] for prefix in ((), (UNK,))]
    assert copied.tokens == [source[w.argmax()] for w in weights]
    assert copied.text == " ".join(copied.tokens)
    assert translator.translate([line], unk="copy", keep_attention=False)[0].text == copied.text
    assert translator.translate([line], unk="forbid")[0].text == "t0"


def test_hypotheses_that_copying_makes_equal_are_one_translation():
    first = {UNK: 0.5, B: 0.3, A: 0.2}
    script = {(token,): {EOS: 1.0} for token in first}
    translator = fake(FakeModel(scripted={(): first, **script}))
    [best] = translator.translate_n_best(["t0"], n_best=3, beam_size=3, unk="copy")
    assert texts(best) == ["t0", "t1"]
    assert log_probs(best) == pytest.approx(np.log([0.5, 0.3]), abs=1e-4)
    assert len(translator.translate_n_best(["t0"], n_best=3, beam_size=3)[0]) == 3


def test_unknown_has_the_positions_of_unknown_source_tokens():
    translator = fake(FakeModel(num_free=4, seed=2, eos_bonus=1.0), max_source_length=3)
    known, mixed, long = translator.translate(["s1 s2", "Hallo s1 Welt", "s1 s2 s3 Hallo s4"])
    assert [known.unknown, mixed.unknown, long.unknown] == [(), (0, 2), (3,)]
    assert [long.source_tokens[position] for position in long.unknown] == ["Hallo"]


def test_a_token_that_looks_at_eos_most_copies_the_heaviest_real_one():
    class LooksAtEos(FakeModel):
        def attention(self, source: tuple[int, ...], prefix: tuple[int, ...]) -> np.ndarray:
            weights = np.arange(1.0, len(source) + 2.0, dtype=np.float32)  # rising to EOS
            return weights / weights.sum()

    translator = fake(LooksAtEos(num_free=2, scripted=scripted().scripted))
    [translation] = translator.translate(["Xyz Abc"], unk="copy")
    assert translation.text == "Abc Abc"
    assert translation.links() == []


def test_copying_needs_attention_over_positions():
    translator = fake(scripted(has_weights=False))
    assert not translator.has_attention
    with pytest.raises(UsageError, match="unk='copy'"):
        translator.translate(["s1"], unk="copy")
    [translation] = translator.translate(["s1"])
    assert translation.attention is None
    with pytest.raises(ValueError, match="no links"):
        translation.links()


def test_lines_may_come_from_any_iterable_but_one_string(translator, tmp_path):
    expected = texts(translator.translate(SOURCE))
    write_lines(tmp_path / "in", SOURCE)
    with (tmp_path / "in").open() as file:
        for lines in (iter(SOURCE), map(str, SOURCE), file):
            assert texts(translator.translate(lines)) == expected
    with pytest.raises(TypeError, match=r"translate\(\[text\]\)"):
        translator.translate("Ein Hund")
    for wrong in (b"Hund", None, 1):
        with pytest.raises(TypeError, match=r"texts\[1\]"):
            translator.translate(["Hund", wrong])  # type: ignore[list-item]


def test_loading_leaves_the_random_numbers_alone(run_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load(run_path)
    assert torch.equal(torch.rand(3), expected)


def test_translating_imports_nothing_heavy(run_path):
    code = (
        "import sys; from tests.toy_requests import translate\n"
        f"translate(['Ein Hund'], run={str(run_path)!r})\n"
        "heavy = {'spacy', 'torchtext', 'matplotlib', 'sacrebleu', 'tensorboard'} & "
        "set(sys.modules)\nsys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
