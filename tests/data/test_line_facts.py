"""Facts about the lines of a training text."""

import pytest

from seq2seq_attn.config import config_from_dict
from seq2seq_attn.data.line_facts import LineFacts
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import RUN_CORPUS
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_listed
from seq2seq_attn.run import Run
from tests.toy_run import make_toy_run

SENTENCES = ["Ein Hund rennt.", "Eine Frau liest!", "Wo ist Dr. Müller?", "Er wiegt 3.5 kg."]


def facts(folder, sources, targets, *, sides=("source", "target"), language="de", **tokenizer):
    """Facts about a corpus of these lines."""
    for side, lines in (("de", sources), ("en", targets)):
        (folder / f"train.{side}").write_text("".join(f"{line}\n" for line in lines))
    data = {
        "corpus": "files",
        "train": str(folder / "train"),
        "source_language": language,
        "target_language": "en",
        "data_dir": str(folder),
        "tokenizer": {"name": "spaces", **tokenizer},
    }
    return prepare_corpus(config_from_dict({"data": data})).line_facts(sides)


@pytest.mark.parametrize(
    ("lines", "one_sentence"),
    [
        (SENTENCES, True),
        ([*SENTENCES * 4, "Ein Hund rennt. Eine Frau liest."], True),
        ([*SENTENCES, *["Ein Hund rennt. Eine Frau liest."] * 3], False),
        ([" ".join(SENTENCES)], False),
        (["Hund", "Frau", "St. Gallen", "Mai"], False),
    ],
)
def test_lines_are_single_sentences(tmp_path, lines, one_sentence):
    sources = [f"{line[:-1]} {number}{line[-1]}" for number in range(10) for line in lines]
    assert facts(tmp_path, sources, sources).one_sentence is one_sentence


def test_marked_sentences_are_never_split(tmp_path):
    assert not facts(tmp_path, SENTENCES * 5, SENTENCES * 5, sentences=True).one_sentence


def test_the_reverse_model_reads_the_target_side(tmp_path):
    both = {
        "sources": [f"eins {number}" for number in range(20)],
        "targets": ["One sentence."] * 20,
    }
    assert not facts(tmp_path, **both).one_sentence
    assert facts(tmp_path, **both, sides=("target", "source")).one_sentence


def test_a_translation_is_short_where_training_had_no_shorter_one(tmp_path):
    lengths = [(20, 18), (20, 20), (20, 22)] * 30
    sources = [f"{number % 10} {'a ' * (source - 1)}" for number, (source, _) in enumerate(lengths)]
    targets = ["b " * target for _, target in lengths]
    found = facts(tmp_path, sources, targets)
    assert found.ratio == pytest.approx(1.0, abs=0.02)
    source = ["a"] * 20
    assert found.warnings(source, ["b"] * 18) == ()
    assert found.warnings(source, ["b"] * 17)
    assert found.warnings(source * 4, ["b"] * 77) == ()  # four times as long, twice the deviation
    assert found.warnings(source * 4, ["b"] * 74)


def test_nothing_is_known_by_default():
    assert LineFacts().warnings(["a"] * 1_000, []) == ()


def test_a_run_keeps_the_facts_and_knows_nothing_without_them(tmp_path):
    found = LineFacts(one_sentence=True, ratio=1.5, shortness=2.0)
    assert Run(make_toy_run(tmp_path / "run", facts=found).path).line_facts == found
    assert Run(make_toy_run(tmp_path / "old").path).line_facts == LineFacts()


@pytest.mark.parametrize("damaged", ['"x"', "[]", '{"ratio": -1}', '{"ratio": NaN}', "null"])
def test_damaged_facts_are_refused(tmp_path, damaged):
    run = make_toy_run(tmp_path / "run")
    write_listed(run.path / RUN_CORPUS, f'{{"lines": {damaged}}}'.encode())
    with pytest.raises(UserError, match=RUN_CORPUS):
        _ = Run(run.path).line_facts
