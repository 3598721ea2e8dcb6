"""`scripts/scenes`: its corpus, and everything from the corpus to the record, at tiny sizes."""

import json

import numpy as np
import pytest

from scripts.laboratory.captions.scenes import SIZE, draw_examples, picture_of, write_corpus
from scripts.tools import scenes
from scripts.tools.other_records import scenes_block
from seq2seq_attn.errors import UsageError

TINY = [
    *("model.embedding_size=8", "model.hidden_size=12", "model.encoder.hidden_size=8", "train.max_epochs=1"),
    *("model.readout_size=8", "model.attention.options.attention_size=8", "search.beam_size=2"),
]


def test_each_noun_of_a_caption_is_an_object_of_its_picture():
    for example in draw_examples("test", 40, set()):
        assert example.picture.shape == (len(example.labels), SIZE)
        assert sorted({thing for thing, _ in example.nouns}) == [*range(len(example.labels))]
        for thing, position in example.nouns:
            assert example.words[position] not in example.german.split()
            noun = example.labels[thing].split()[-1]
            assert example.words[position][0].lower() == noun[0]  # "mouse", "mice"
        assert example.german.count("___") >= len(example.labels)
        assert all(article not in example.words for article in ("the", "these", "this", "every", "his", "her"))


def test_a_vector_is_the_sum_of_what_is_seen():
    generator = np.random.default_rng(0)
    young, dog, both = (
        np.mean([picture_of(seen, generator) for _ in range(400)], axis=0)
        for seen in (("young",), ("dog",), ("dog", "young"))
    )
    assert np.abs(young + dog - both).max() < 0.25
    assert np.abs(young - dog).max() > 1.0


def test_the_corpus_is_the_same_each_time(tmp_path):
    texts = []
    for name in ("a", "b"):
        write_corpus(tmp_path / name, {"train": 20, "valid": 5, "test": 5})
        arrays = np.load(tmp_path / name / "train.npz")
        lines = [(tmp_path / name / f"train.{side}").read_text(encoding="utf-8") for side in ("de", "en")]
        texts.append((lines, [arrays[f"p{number}"].tolist() for number in range(20)]))
    assert texts[0] == texts[1]
    english = {split: (tmp_path / "a" / f"{split}.en").read_text().split("\n")[:-1] for split in ("train", "test")}
    assert not {*english["train"]} & {*english["test"]}
    with pytest.raises(UsageError, match=r"holds splits of .*'train': 20.* pairs, not .*'train': 21"):
        write_corpus(tmp_path / "a", {"train": 21, "valid": 5, "test": 5})


def test_from_the_corpus_to_the_record(tmp_path, capsys):
    record = tmp_path / "scenes.json"
    settings = [word for setting in TINY for word in ("--set", setting)]
    sizes = ["--num-train", "60", "--num-test", "6"]
    words = ["--dir", str(tmp_path / "runs"), "--record", str(record), *sizes, *settings]
    scenes.main(words)
    text = capsys.readouterr().out
    values = json.loads(record.read_text(encoding="utf-8"))
    assert [row["sources"] for row in values["systems"]] == [["vectors"], ["de"], ["de", "vectors"]]
    for row in (values["systems"][0], values["systems"][2]):
        assert 0 <= row["attended"] <= row["nouns"]
    block = "\n".join(scenes_block(values))
    assert text.strip() == block.strip()
    assert "| a vector per object |" in block
    assert f"% of {values['systems'][0]['nouns']} nouns" in block
    with pytest.raises(UsageError, match=r"vectors: trained with train\.label_smoothing=0\.0, not 0\.2; remove it"):
        scenes.main([*words, "--set", "train.label_smoothing=0.2"])
