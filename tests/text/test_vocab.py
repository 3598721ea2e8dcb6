"""The vocabulary, and the faults of torchtext's `Vocab` that must not come through."""

import importlib.abc
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.vocab import (
    BOS,
    EOS,
    PAD,
    SPECIALS,
    UNK,
    Vocab,
    build_vocab,
    import_torchtext,
)


def test_ids_go_by_frequency_then_code_point_within_limits():
    vocab = build_vocab(Counter({"hund": 3, "ein": 5, "b": 1, "a": 1, "Ä": 1}))
    assert vocab.tokens == [*SPECIALS, "ein", "hund", "a", "b", "Ä"]
    assert vocab.ids_of(["ein", "Ä"]) == [4, 8]
    assert vocab.tokens_of([PAD, BOS, EOS, UNK, 4]) == [*SPECIALS, "ein"]
    counter = Counter({"a": 5, "b": 4, "c": 3, "d": 1})
    assert build_vocab(counter, max_size=2).tokens[4:] == ["a", "b"]
    assert build_vocab(counter, max_size=3, min_frequency=4).tokens[4:] == ["a", "b"]


def test_unknown_tokens_and_text_spelled_like_a_special_add_nothing():
    # torchtext's `stoi` is a defaultdict: every unknown look-up adds the word
    counter = Counter({"<pad>": 9, "<eos>": 9, "<unk>": 9, "<bos>": 9, "a": 1})
    vocab = build_vocab(counter)
    for _ in range(2):
        assert vocab.ids_of("<pad> a <eos> nie <bos> <unk>".split()) == [
            UNK,
            4,
            UNK,
            UNK,
            UNK,
            UNK,
        ]
    assert len(vocab) == 5
    assert "nie" not in vocab
    assert [vocab.tokens[i] for i in (PAD, BOS, EOS, UNK)] == ["<pad>", "<bos>", "<eos>", "<unk>"]
    assert len(counter) == 5


ODD = ["", " ", '"', '"a"', "\n", "\r", "\u2028", "\\n"]


@settings(deadline=None, max_examples=30)  # the first call loads torchtext
@given(st.sets(st.text(st.characters(codec="utf-8")) | st.sampled_from(ODD)))
def test_any_token_survives_the_file(tmp_path_factory, tokens):
    path = tmp_path_factory.mktemp("vocab") / "source.vocab"
    vocab = build_vocab(Counter(tokens))
    vocab.save(path)
    assert Vocab.load(path) == vocab
    assert path.read_bytes().count(b"\n") == len(vocab) + 2  # one line a token, and the brackets


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'["der", "die"]',
        b'["<pad>", "<bos>", "<eos>", "<unk>", "a", "a"]',
        b"7",
        b'["<pad>"',
    ],
)
def test_a_damaged_file_is_refused(tmp_path, content):
    path = tmp_path / "v"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"/v"):
        Vocab.load(path)


def test_a_torchtext_that_does_not_load_says_what_to_install(monkeypatch):
    # 0.18 on a current torch fails with OSError, not ImportError
    class Broken(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name == "torchtext":
                raise OSError("Could not load this library: libtorchtext.so")

    for name in [name for name in sys.modules if name.split(".")[0] == "torchtext"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(UserError, match=r"libtorchtext.so\)"):
        import_torchtext()
