"""`scripts/typos`: its corpus, and everything from the word list to the page, at tiny sizes."""

import json

import pytest

from scripts.tools import typos, typos_page
from scripts.tools.typos_corpus import (
    KINDS,
    SPLITS,
    clean,
    explain,
    make_splits,
    make_twice,
    neighbors,
    read_split,
    typos_of,
)
from scripts.tools.typos_corpus import write_corpus as write
from seq2seq_attn.errors import UserError

WORDS = clean(
    "house horse mouse bottle letter window flower garden yellow orange purple simple people table cable stable "
    "children mountain building street running jumping playing standing smiling walking talking singing".split()
)
TINY = [
    *("model.embedding_size=8", "model.hidden_size=12", "model.encoder.hidden_size=8", "train.max_epochs=1"),
    *("model.attention.options.attention_size=8", "search.beam_size=2"),
]


def test_the_typos_of_a_word():
    found = {(one.kind, one.text): (one.letters, one.mended) for one in typos_of("bell")}
    assert found["swap", "ebll"] == ((1, 2), 1)
    assert found["drop", "bll"] == ((1, 2), 2)
    assert found["drop", "bel"] == ((3,), 4)  # also the other l's, at ((2, 3), 3)
    assert found["drop", "ell"] == ((1,), 1)
    assert found["double", "belll"] == ((3, 4, 5), 4)
    assert found["double", "beell"] == ((2, 3), 2)
    assert found["vowel", "ball"] == ((2,), 2)
    assert found["keyboard", "brll"] == ((2,), 2)
    assert ("swap", "bell") not in found
    assert {*neighbors("g")} == {*"fhtyvb"}
    assert {*neighbors("p")} == {*"ol"}


def test_all_typos_that_give_a_misspelling_count():
    splits = {"valid": [next(one for one in typos_of("bell") if one.text == "bel")]}
    found = explain(splits, ["bell", "belt", "ball"])["bel"]
    assert {one.word for one in found} == {"bell", "belt"}
    assert {one.letters for one in found} == {(2, 3), (3,)}


def test_no_split_shows_what_another_one_asks():
    splits = make_splits(WORDS)
    texts = {split: {one.text for one in of_split} for split, of_split in splits.items()}
    words = {split: {one.word for one in of_split} for split, of_split in splits.items()}
    for split in SPLITS[1:]:
        assert texts[split]
        assert not texts["train"] & texts[split]
    assert words["known"] <= words["train"]
    assert not words["new"] & words["train"]
    assert not {text for of_split in texts.values() for text in of_split} & {*WORDS}
    assert {one.kind for one in splits["train"]} == {*KINDS}
    assert make_splits(WORDS) == splits


def test_words_with_two_typos_are_no_word_and_in_no_split():
    splits = make_splits(WORDS)
    pairs = make_twice(WORDS, splits)
    texts = {text for text, _ in pairs}
    assert not texts & {*WORDS, *(one.text for of_split in splits.values() for one in of_split)}
    assert {word for _, word in pairs} == {one.word for one in splits["train"]}
    assert ("hopse", "house") not in pairs  # a single typo
    assert make_twice(WORDS, splits) == pairs


def test_the_files_name_the_first_letter_of_the_typo(tmp_path):
    sizes = write(tmp_path, WORDS)
    for split in SPLITS:
        examples = read_split(tmp_path, split)
        positions = (tmp_path / f"{split}.position").read_text(encoding="utf-8").split()
        assert len(examples) == len(positions) == sizes[split]
        for example, position in zip(examples, positions, strict=True):
            assert int(position) == example.letters[0] <= example.letters[-1] <= len(example.text)
            assert example.word in example.words


def test_from_the_word_list_to_the_page(tmp_path, capsys):
    (tmp_path / "words").write_text("\n".join(WORDS), encoding="utf-8")
    record = tmp_path / "typos.json"
    settings = [word for setting in TINY for word in ("--set", setting)]
    options = ["--dir", str(tmp_path / "runs"), "--record", str(record), "--plots", str(tmp_path / "plots")]
    typos.main([*options, "--words", str(tmp_path / "words"), *settings])
    text = capsys.readouterr().out
    assert f"{len(WORDS)} words" in text
    values = json.loads(record.read_text(encoding="utf-8"))
    for groups in values["tests"].values():
        everything = groups["words"]["all"]
        assert everything["n"] == sum(row["n"] for row in groups["length"].values())
        assert 0 <= everything["first"] <= everything["found"] <= everything["n"]
        assert everything["corrected"] <= everything["possible"]
    assert f"of {values['tests']['new']['words']['5 letters and more']['n']:,} words of five" in text
    assert all(f"| {kind} |" in text for kind in KINDS)
    for picture in ("typos-attention.png", "typos-letters.png"):
        assert (tmp_path / "plots" / picture).read_bytes().startswith(b"\x89PNG")


def test_a_list_without_words_is_refused(tmp_path):
    (tmp_path / "words").write_text("A1\nxx\n", encoding="utf-8")
    with pytest.raises(UserError, match="no words of 3 to 24 letters"):
        typos.main(["--dir", str(tmp_path), "--words", str(tmp_path / "words"), "--corpus"])


def test_the_page_says_which_goals_are_missed():
    row = {"n": 200, "found": 180, "corrected": 189, "attended": 161}
    found, corrected, attended = typos_page._headline({"words": {"all": {}, "5 letters and more": row}})
    assert "finder right: 90.0 %" in found
    assert found.endswith("(goal: 90 %)")
    assert "corrector right: 94.5 %" in corrected
    assert corrected.endswith("(goal: 95 %, missed)")
    assert attended.endswith("(goal: 80 %)")
