"""A source of vectors through the commands: names of .npy files in, one translation per file out."""

import json
from pathlib import Path

import numpy as np
import pytest

from seq2seq_attn import load
from seq2seq_attn.__main__ import run
from seq2seq_attn.config import load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.text.tokenizers.several import split_sources
from tests.cli.command_line import assert_fails, outputs
from tests.train.conftest import SOURCE, toy_settings, write_toy_corpus

SIZE = 11
ALONE, BESIDE = "data.source_language=vectors", "data.source_languages=[de,vectors]"


def write_pictures(directory: Path) -> None:
    """The toy corpus, with a file of a noisy one-hot vector per word for each sentence: the test set's as .npy files,
    the others in an archive for each split."""
    write_toy_corpus(directory)
    generator = np.random.default_rng(1)
    for path in directory.glob("*.de"):
        split, lines = path.stem, path.read_text(encoding="utf-8").split("\n")[:-1]
        pictures = {
            f"p{number}": np.eye(SIZE)[[SOURCE.index(word) for word in line.split()]]
            + generator.normal(0, 0.01, (len(line.split()), SIZE))
            for number, line in enumerate(lines)
        }
        if split == "test":
            for name, picture in pictures.items():
                np.save(directory / f"{name}.npy", picture)
            names = [f"{directory}/{name}.npy" for name in pictures]
        else:
            np.savez(directory / f"{split}.npz", **pictures)
            names = [f"{directory}/{split}.npz:{name}" for name in pictures]
        path.with_suffix(".vectors").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


def options(root: Path, *more: str) -> list[str]:
    return ["-c", "base", *(f"--set={setting}" for setting in [*toy_settings(root / "corpus"), *more])]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that reads vectors alone, and a run that reads German beside them, of two updates each."""
    root = tmp_path_factory.mktemp("vectors")
    write_pictures(root / "corpus")
    for name, sources in (("alone", ALONE), ("beside", BESIDE)):
        assert run(["train", "--run-dir", str(root / name), *options(root, sources, "train.max_updates=2")]) == 0
    return root


def picture(root: Path, number: int = 0) -> str:
    return str(root / "corpus" / f"p{number}.npy")


@pytest.mark.parametrize(("name", "sources"), [("alone", ALONE), ("beside", BESIDE)])
def test_the_prepared_store_holds_the_vectors_at_their_positions(trained, name, sources):
    prepared = prepare_corpus(RunDir(trained / name).config())
    lines, _ = prepared.text("valid")
    batch = prepared.pairs("valid").batch(range(len(lines)))
    assert batch.source.vectors_BSF is not None
    for row, line in enumerate(lines):
        *text, file = line.split("\t")
        path, key = file.rsplit(":", 1)
        vectors = np.load(path)[key].astype(np.float32)
        start = len(text[0].replace(" ", "▁")) + 1 if text else 0
        found = batch.source.vectors_BSF[row].numpy()
        assert np.array_equal(found[start : start + len(vectors)], vectors)
        assert not found[:start].any()
        assert not found[start + len(vectors) :].any()


def test_texts_and_files_say_the_same(trained, capsys):
    assert "(vectors -> en)" in outputs(capsys, "prepare", "-c", str(trained / "alone" / "config.yaml"))[0]
    corpus = trained / "corpus"
    of = ["translate", "--run", str(trained / "alone")]
    from_file = outputs(capsys, *of, "-i", str(corpus / "test.vectors"))
    assert len(from_file) == 20
    assert outputs(capsys, *of, picture(trained), picture(trained, 1)) == from_file[:2]
    german = (corpus / "test.de").read_text(encoding="utf-8").split("\n")[0]
    of = ["translate", "--run", str(trained / "beside")]
    from_files = outputs(capsys, *of, "-i", str(corpus / "test.de"), "-i", str(corpus / "test.vectors"))
    assert outputs(capsys, *of, german, picture(trained)) == from_files[:1]


def test_each_vector_counts_and_padding_does_not(trained, tmp_path):
    vectors = np.load(picture(trained, 3))
    names = []
    for number, array in enumerate((vectors, vectors[:-1], vectors + 0.5, np.zeros((0, SIZE)))):
        names.append(str(tmp_path / f"{number}.npy"))
        np.save(names[-1], array)
    translator = load(trained / "alone")
    together = [translation.log_prob for translation in translator.score(names, ["dog man"] * 4)]
    assert len(set(together)) == 4
    alone = [translator.score([name], ["dog man"])[0].log_prob for name in names]
    assert together == pytest.approx(alone, abs=1e-5)
    assert [t.text for t in translator.translate(["", names[3]])] == ["", ""]


def test_attention_has_a_position_per_vector(trained, capsys, caplog):
    vectors = np.load(picture(trained, 3))
    labels = [f"[{number + 1}]" for number in range(len(vectors))]
    links = trained / "links"
    of = ["translate", "--run", str(trained / "beside"), "--format=json", f"--alignment={links}"]
    [line] = outputs(capsys, *of, "Hund Mann", picture(trained, 3))
    assert json.loads(line)["source_tokens"] == [*"Hund▁Mann", "\t", *labels, "<eos>"]
    assert json.loads(line)["unknown"] == []
    words = {int(link.split("-")[0]) for link in links.read_text().split()}
    assert words <= {*range(2 + len(vectors))}
    assert "no links" not in caplog.text


def test_evaluate_and_score(trained, capsys, caplog):
    corpus, report = trained / "corpus", trained / "report.json"
    files = [f"--source={corpus / 'test.vectors'}", f"--reference={corpus / 'test.en'}"]
    scores = []
    for given in ([], files):
        assert run(["evaluate", str(trained / "alone"), f"--json={report}", *given]) == 0
        values = json.loads(report.read_text())
        scores.append(values["sets"][0]["measures"][0]["runs"][0]["score"])
        assert values["length"]["of"] == "reference"
    assert scores[0] == scores[1]
    assert "zero" not in caplog.text
    assert len(outputs(capsys, "score", str(corpus / "test"), "--run", str(trained / "beside"))) == 20


def test_other_vectors_under_the_same_names_are_other_data(tmp_path):
    write_pictures(tmp_path / "corpus")
    assert run(["train", "--run-dir", str(tmp_path / "run"), *options(tmp_path, ALONE, "train.max_updates=1")]) == 0
    config = RunDir(tmp_path / "run").config()
    before = prepare_corpus(config)
    np.save(picture(tmp_path), np.load(picture(tmp_path)) + 1.0)
    assert prepare_corpus(config).directory != before.directory


def test_names_that_lead_nowhere(trained, tmp_path, capsys):
    of = ["translate", "--run", str(trained / "alone")]
    archive = trained / "corpus" / "valid.npz"
    for name, message in [
        ("no.npy", "no.npy"),
        ("no.npz:a", "no.npz"),
        (f"{archive}:a", f"{archive}:a"),
        (str(archive), str(archive)),
        (str(tmp_path), str(tmp_path)),
    ]:
        assert_fails(capsys, *of, name, code=1, message=message)
    assert_fails(capsys, *of, "-i", picture(trained), code=1, message=picture(trained))


def test_pairs_are_not_concatenated_and_have_no_links(trained, capsys):
    assert_fails(capsys, "evaluate", str(trained / "alone"), "--concatenate=2", code=2, message="--concatenate 2")
    score = ["score", str(trained / "corpus" / "test"), "--run", str(trained / "alone"), "--links=gold"]
    assert_fails(capsys, *score, code=2, message="--links gold")


@pytest.mark.parametrize(("tokenizer", "joint"), [("spacy", "true"), ("sentencepiece", "false")])
def test_names_of_files_are_not_text(tokenizer, joint, tmp_path):
    write_pictures(tmp_path / "corpus")
    settings = [
        *toy_settings(tmp_path / "corpus"),
        f"data.tokenizer={{name: {tokenizer}, vocab_size: 40, joint: {joint}}}",
    ]
    german, alone, beside = (
        prepare_corpus(load_config((), [*settings, sources])) for sources in ("data.source_language=de", ALONE, BESIDE)
    )
    labels = [f"[{number}]" for number in range(1, 6)]
    assert sorted(beside.source_vocab.tokens) == sorted([*german.source_vocab.tokens, *labels])
    assert sorted(alone.source_vocab.tokens[4:]) == labels
    lines, _ = german.text("valid")
    for line, both in zip(lines, beside.text("valid")[0], strict=True):
        assert split_sources(beside.source_tokenizer.tokenize(both))[0] == german.source_tokenizer.tokenize(line)
    assert alone.target_vocab == german.target_vocab
