"""Several sources, and vectors as a source, through the commands: one translation per sentence
out."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from seq2seq_attn import load
from seq2seq_attn.__main__ import run
from seq2seq_attn.config import load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_json, write_lines
from seq2seq_attn.run import Run
from seq2seq_attn.text.lines import read_lines
from tests.cli.command_line import assert_fails, outputs, set_options
from tests.train.conftest import SOURCE, toy_settings, write_toy_corpus

FRENCH = "chien chat homme femme enfant balle maison arbre".split()
SIZE = 11
SOURCES = {"texts": ["de", "fr"], "vectors": ["vectors"], "both": ["de", "vectors"]}
"""of each run"""


def write_corpus(directory):
    """The toy corpus with a French side, the same words in the order of the German, and with a file
    of a noisy one-hot vector per word for each sentence: the test set's as .npy files, the others
    in an archive for each split."""
    write_toy_corpus(directory)
    generator = np.random.default_rng(1)
    for path in directory.glob("*.de"):
        vectors = {}
        french = []
        for number, line in enumerate(read_lines(path)):
            words = [SOURCE.index(word) for word in line.split()]
            noise = generator.normal(0, 0.01, (len(words), SIZE))
            vectors[f"p{number}"] = np.eye(SIZE)[words] + noise
            french.append(" ".join(FRENCH[word] for word in words))
        if path.stem == "test":
            for name, vectors_SF in vectors.items():
                np.save(directory / f"{name}.npy", vectors_SF)
            names = [f"{directory}/{name}.npy" for name in vectors]
        else:
            np.savez(directory / f"{path.stem}.npz", **vectors)
            names = [f"{directory}/{path.stem}.npz:{name}" for name in vectors]
        write_lines(path.with_suffix(".fr"), french)
        write_lines(path.with_suffix(".vectors"), names)


@pytest.fixture(scope="module")
def trained(module_path):
    """Runs of two updates, beside their corpus."""
    write_corpus(module_path / "corpus")
    for name in SOURCES:
        short = options(module_path, name, "train.max_updates=2")
        assert run(["train", f"--run-dir={module_path / name}", *short]) == 0
    return module_path


def options(root, name, *more):
    settings = [*toy_settings(root / "corpus"), f"data.source_languages={SOURCES[name]}", *more]
    return ["-c", "base", *set_options(settings)]


def columns(root, name):
    """The test lines of a run's sources as one file of columns."""
    sides = [read_lines(root / "corpus" / f"test.{language}") for language in SOURCES[name]]
    path = root / f"{name}.txt"
    write_lines(path, map("\t".join, zip(*sides, strict=True)))
    return path


@pytest.mark.parametrize("name", SOURCES)
def test_texts_files_and_columns_say_the_same(trained, capsys, name):
    prepared = outputs(capsys, "prepare", "-c", str(trained / name / "config.yaml"))
    assert f"({'+'.join(SOURCES[name])} -> en)" in prepared[0]
    translate = ["translate", "--run", str(trained / name)]
    files = [f"--input={trained}/corpus/test.{language}" for language in SOURCES[name]]
    expected = outputs(capsys, *translate, *files)
    assert len(expected) == 20
    table = columns(trained, name)
    assert outputs(capsys, *translate, "-i", str(table)) == expected
    lines = read_lines(table)
    assert outputs(capsys, *translate, *"\t".join(lines).split("\t")) == expected
    assert outputs(capsys, *translate, lines[0]) == expected[:1]


def test_each_source_counts(trained):
    translator = load(trained / "texts")
    assert translator.source_tokenizer.num_columns == 2
    lines = [
        "Hund Mann\tchien homme",
        "Hund Mann\tchien chat",
        "Hund Katze\tchien homme",
        "Hund Mann\t",
        "\thomme",
    ]
    scored = translator.score(lines, ["dog man"] * len(lines))
    assert len({translation.log_prob for translation in scored}) == len(lines)
    assert [t.text for t in translator.translate(["", "\t", " \t "])] == ["", "", ""]


def test_over_long_sources_are_cut_alike(trained):
    translator = load(trained / "texts").with_max_source_length(8)
    [found] = translator.translate(["Hund Katze Mann Frau\tchien chat homme"])
    assert "".join(found.source_tokens) == "Hund▁Katze▁Mann▁Frau\tchien▁chat▁homme<eos>"
    assert found.attention.shape[1] == len(found.source_tokens)
    assert found.attention.sum(axis=1) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("name", ["texts", "both"])
def test_attention_is_over_the_positions_of_all_sources(trained, capsys, caplog, name):
    second, tokens, num_words = "chien chat", [*"chien▁chat"], 2
    if name == "both":
        second = str(trained / "corpus" / "p3.npy")
        num_words = len(np.load(second))
        tokens = [f"[{number + 1}]" for number in range(num_words)]
    files = [f"--alignment={trained / 'links'}", f"--attention={trained / 'map.png'}"]
    command = ["translate", "--run", str(trained / name), "--format=json", *files]
    found = json.loads(outputs(capsys, *command, "Hund Mann", second)[0])
    assert found["source_tokens"] == [*"Hund▁Mann", "\t", *tokens, "<eos>"]
    assert found["unknown"] == []
    assert len("Hund▁Mann") not in {source for source, _ in found["links"]}
    for link in (trained / "links").read_text().split():
        assert int(link.split("-")[0]) < 2 + num_words
    assert "no links" not in caplog.text


@pytest.mark.parametrize("name", SOURCES)
def test_evaluate_and_score(trained, capsys, caplog, name):
    corpus = trained / "corpus"
    report = trained / "report.json"
    scores = []
    for given in ([], [f"--source={columns(trained, name)}", f"--reference={corpus / 'test.en'}"]):
        assert run(["evaluate", str(trained / name), f"--json={report}", *given]) == 0
        values = read_json(report)
        scores.append(values["sets"][0]["measures"][0]["runs"][0]["score"])
        assert values["length"]["of"] == ("source" if name == "texts" else "reference")
    assert scores[0] == scores[1]
    assert "zero" not in caplog.text
    assert len(outputs(capsys, "score", str(corpus / "test"), "--run", str(trained / name))) == 20
    joined = f"evaluate {trained}/{name} --concatenate=2".split()
    assert_fails(capsys, *joined, code=2, message="--concatenate 2")


def test_own_text_as_files_and_a_table(in_tmp_path, capsys):
    write_corpus(Path("corpus"))
    files = [Path(f"corpus/train.{language}") for language in ("de", "fr", "en")]
    rows = []
    for de, fr, en in zip(*map(read_lines, files), strict=True):
        rows.append(json.dumps({"fr": fr, "en": en, "de": de}))
    write_lines(Path("three.jsonl"), rows)
    settings = "data.source_languages=[de,fr] data.data_dir=data data.tokenizer.name=characters"
    prepare = ["prepare", *set_options(settings.split())]
    audits = []
    for texts in (files, ["three.jsonl"]):
        audits.append(outputs(capsys, *prepare, *[f"--train={text}" for text in texts]))
    assert audits[0][1:] == audits[1][1:]
    train = "train --train=corpus/train --set=data.source_languages=[de,fr] --dump-config"
    values = yaml.safe_load("\n".join(outputs(capsys, *train.split())))
    assert (values["name"], values["data"]["source_languages"]) == ("own-de+fr-en", ["de", "fr"])


# ---- prepared vectors ----


@pytest.mark.parametrize("name", ["vectors", "both"])
def test_the_prepared_store_holds_the_vectors_at_their_positions(trained, name):
    prepared = prepare_corpus(Run(trained / name).config)
    lines, _ = prepared.text("valid")
    batch = prepared.pairs("valid").batch(range(len(lines)))
    for row, line in enumerate(lines):
        *text, file = line.split("\t")
        path, key = file.rsplit(":", 1)
        vectors = np.load(path)[key].astype(np.float32)
        start = len(text[0].replace(" ", "▁")) + 1 if text else 0
        found = batch.source.vectors_BSF[row].numpy()
        assert np.array_equal(found[start : start + len(vectors)], vectors)
        assert not found[:start].any()
        assert not found[start + len(vectors) :].any()


def test_other_vectors_under_the_same_names_are_other_data(tmp_path):
    write_corpus(tmp_path / "corpus")
    config = load_config((), [*toy_settings(tmp_path / "corpus"), "data.source_language=vectors"])
    before = prepare_corpus(config)
    path = tmp_path / "corpus" / "p0.npy"
    np.save(path, np.load(path) + 1.0)
    assert prepare_corpus(config).directory != before.directory


@pytest.mark.parametrize(("tokenizer", "joint"), [("spaces", "true"), ("sentencepiece", "false")])
def test_names_of_files_are_not_text(trained, tmp_path, tokenizer, joint):
    settings = [*toy_settings(trained / "corpus"), f"data.data_dir={tmp_path}"]
    settings.append(f"data.tokenizer={{name: {tokenizer}, vocab_size: 40, joint: {joint}}}")

    def prepare(source):
        return prepare_corpus(load_config((), [*settings, f"data.{source}"]))

    german = prepare("source_language=de")
    alone = prepare("source_language=vectors")
    beside = prepare("source_languages=[de,vectors]")
    labels = [f"[{number}]" for number in range(1, 6)]
    assert sorted(beside.source_vocab.tokens) == sorted([*german.source_vocab.tokens, *labels])
    assert sorted(alone.source_vocab.tokens[4:]) == labels
    lines, _ = german.text("valid")
    for line, both in zip(lines, beside.text("valid")[0], strict=True):
        text, _ = beside.source_tokenizer.columns(beside.source_tokenizer.tokenize(both))
        assert text == german.source_tokenizer.tokenize(line)
    assert alone.target_vocab == german.target_vocab


# ---- what is refused ----

VECTORS = "data.source_languages=[vectors]"
NO_TEXT = ["data.train=null", "data.valid=null", "data.test={}"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["data.source_languages=[de,de]"], "data.source_languages=['de', 'de']"),
        (["data.source_languages=[de,../x]"], "data.source_languages.1='../x'"),
        (["data.links=ibm1"], "data.links='ibm1'"),
        (["data.tokenizer.sentences=true"], "data.tokenizer.sentences=true"),
        (["train.cuda_graphs=true"], "train.cuda_graphs=true"),
        ([*NO_TEXT, "data.corpus=captions"], "captions 'de+fr' -> 'en'"),
        (
            [*NO_TEXT, "data.corpus=multi30k", "data.source_languages=[de,en]"],
            "data.target_language: 'en'",
        ),
        ([VECTORS, "model.output.name=lexical"], "model.output.name"),
        (
            [VECTORS, "model.tie_embeddings=all", "data.vocab.joint=true", "model.readout_size=17"],
            "tie_embeddings",
        ),
    ],
)
def test_settings_that_do_not_fit(tmp_path, settings, message, capsys):
    assert_fails(capsys, "train", *options(tmp_path, "texts", *settings), code=2, message=message)


def test_a_line_whose_vectors_cannot_be_read_is_empty(trained, tmp_path, capsys, caplog):
    names = [str(trained / "corpus" / f"p{number}.npy") for number in range(3)]
    (tmp_path / "in").write_text("\n".join([names[0], "no.npy", "", *names[1:]]))
    command = ["translate", "--run", str(trained / "vectors")]
    lines = outputs(capsys, *command, "-i", str(tmp_path / "in"))
    [first, *others] = outputs(capsys, *command, *names)
    assert lines == [first, "", "", *others]
    [message] = [message for message in caplog.messages if "no.npy" in message]
    assert message.startswith("line 2: ")


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("translate --run texts Hund", 2, "['Hund']: expected 2"),
        ("translate --run texts -i test.de -i test.de -i test.de", 2, "'test.de']: expected 2"),
        ("translate --run texts -i test.de", 1, "2 texts, not 1"),
        ("translate --run texts -i test.de -i train.fr", 1, "test.de: 20 lines"),
        ("translate --run vectors no.npy", 1, "no.npy"),
        ("translate --run vectors valid.npz:a", 1, "valid.npz:a"),
        ("translate --run vectors valid.npz", 1, "valid.npz"),
        ("translate --run vectors -i p0.npy", 1, "p0.npy"),
        ("score test --run vectors --links=gold", 2, "--links gold"),
        ("evaluate texts vectors --source test.de --reference test.de", 2, "--source"),
    ],
)
def test_inputs_that_do_not_fit(trained, in_tmp_path, capsys, command, code, message):
    for path in [*(trained / "corpus").iterdir(), *(trained / name for name in SOURCES)]:
        Path(path.name).symlink_to(path)
    assert_fails(capsys, *command.split(), code=code, message=message)


def test_a_line_of_too_many_columns_is_refused(trained):
    with pytest.raises(UserError, match="2 texts, not 3"):
        load(trained / "texts").translate(["a\tb\tc"])


# ---- sentences ----


def test_attention_over_the_sentences_of_a_line(tmp_path):
    write_toy_corpus(tmp_path / "corpus")
    for path in (tmp_path / "corpus").glob("*.*"):
        path.write_text(path.read_text("utf-8").replace("\n", ".\n"), "utf-8")
    settings = (
        "data.tokenizer.sentences=true",
        "model.attention.name=hierarchical",
        "train.max_updates=2",
    )
    given = options(tmp_path, "texts", "data.source_languages=[]", *settings)
    assert run(["train", "--run-dir", str(tmp_path / "run"), *given]) == 0
    translator = load(tmp_path / "run")
    [found] = translator.score(["Hund. Katze."], ["dog. cat."])
    assert found.source_tokens == [*"Hund.", "\t", *"▁Katze.", "\t", "<eos>"]
    assert found.attention.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    short = translator.with_max_source_length(8).translate(["Hund. Katze. Mann."])[0]
    assert "".join(short.source_tokens).replace("\t", "") == "Hund.▁Katze.▁Mann.<eos>"
