"""Several sources through the four commands: texts and files in, one translation per sentence out."""

import json
from pathlib import Path

import pytest
import yaml

from seq2seq_attn import load
from seq2seq_attn.__main__ import run
from seq2seq_attn.errors import UserError
from seq2seq_attn.text.tokenizers.several import num_sources
from tests.cli.command_line import assert_fails, outputs
from tests.train.conftest import SOURCE, toy_settings, write_toy_corpus

FRENCH = "chien chat homme femme enfant balle maison arbre".split()
SETTINGS = ["data.source_languages=[de,fr]", "data.source_language=de"]


def write_corpus(directory: Path) -> None:
    """The toy corpus with a French side: the same words in the order of the German."""
    write_toy_corpus(directory)
    for path in directory.glob("*.de"):
        lines = path.read_text(encoding="utf-8").split("\n")
        words = [" ".join(FRENCH[SOURCE.index(word)] for word in line.split()) for line in lines]
        path.with_suffix(".fr").write_text("\n".join(words), encoding="utf-8")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two updates, beside its corpus."""
    root = tmp_path_factory.mktemp("sources")
    write_corpus(root / "corpus")
    assert run(["train", "--run-dir", str(root / "run"), *options(root, "train.max_updates=2")]) == 0
    return root


def options(root: Path, *more: str) -> list[str]:
    settings = [*toy_settings(root / "corpus"), *SETTINGS, *more]
    return ["-c", "base", *(f"--set={setting}" for setting in settings)]


def columns(root: Path) -> Path:
    """The German and French test lines as one file of columns."""
    sides = [(root / "corpus" / f"test.{name}").read_text(encoding="utf-8").split("\n")[:-1] for name in ("de", "fr")]
    (root / "columns.tsv").write_text("".join(f"{de}\t{fr}\n" for de, fr in zip(*sides, strict=True)), encoding="utf-8")
    return root / "columns.tsv"


def test_texts_files_and_columns_say_the_same(trained, capsys):
    assert "(de+fr -> en)" in outputs(capsys, "prepare", "-c", str(trained / "run" / "config.yaml"))[0]
    of = ["translate", "--run", str(trained / "run")]
    files = [word for name in ("de", "fr") for word in ("-i", str(trained / "corpus" / f"test.{name}"))]
    from_files = outputs(capsys, *of, *files)
    assert len(from_files) == 20
    assert outputs(capsys, *of, "-i", str(columns(trained))) == from_files
    lines = columns(trained).read_text(encoding="utf-8").splitlines()
    assert outputs(capsys, *of, *(text for line in lines for text in line.split("\t"))) == from_files
    assert outputs(capsys, *of, lines[0]) == from_files[:1]


def test_each_source_counts(trained):
    translator = load(trained / "run")
    assert num_sources(translator.source_tokenizer) == 2
    lines = ["Hund Mann\tchien homme", "Hund Mann\tchien chat", "Hund Katze\tchien homme", "Hund Mann\t", "\thomme"]
    scores = {translation.log_prob for translation in translator.score(lines, ["dog man"] * len(lines))}
    assert len(scores) == len(lines)
    assert [t.text for t in translator.translate(["", "\t", " \t "])] == ["", "", ""]


def test_over_long_sources_are_cut_alike(trained):
    translator = load(trained / "run").with_max_source_length(8)
    [found] = translator.translate(["Hund Katze Mann Frau\tchien chat homme"])
    assert "".join(found.source_tokens) == "Hund▁Katze▁Mann▁Frau\tchien▁chat▁homme<eos>"
    assert found.attention is not None
    assert found.attention.shape[1] == len(found.source_tokens)
    assert found.attention.sum(axis=1) == pytest.approx(1.0, abs=1e-5)


def test_attention_is_over_the_positions_of_all_sources(trained, capsys):
    files = {"alignment": trained / "links", "attention": trained / "map.png"}
    extra = [f"--{name}={path}" for name, path in files.items()]
    of = ["translate", "--run", str(trained / "run"), "--format=json", *extra]
    [line] = outputs(capsys, *of, "Hund", "chien chat")
    found = json.loads(line)
    assert found["source_tokens"] == [*"Hund", "\t", *"chien▁chat", "<eos>"]
    assert 4 not in {source for source, _ in found["links"]}
    words = {int(link.split("-")[0]) for link in files["alignment"].read_text().split()}
    assert words <= {0, 1, 2}


def test_evaluate_and_score(trained, capsys):
    corpus, report, scores = trained / "corpus", trained / "report.json", []
    for given in ([], [f"--source={columns(trained)}", f"--reference={corpus / 'test.en'}"]):
        assert run(["evaluate", str(trained / "run"), f"--json={report}", *given]) == 0
        [found] = json.loads(report.read_text())["sets"]
        scores.append(found["measures"][0]["runs"][0]["score"])
    assert scores[0] == scores[1]
    assert_fails(capsys, "evaluate", str(trained / "run"), "--concatenate=2", code=2, message="--concatenate 2")
    assert len(outputs(capsys, "score", str(corpus / "test"), "--run", str(trained / "run"))) == 20


def test_own_text_as_files_and_tables(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_corpus(Path("corpus"))
    files = [f"corpus/train.{language}" for language in ("de", "fr", "en")]
    rows = [*zip(*(Path(file).read_text().split("\n")[:-1] for file in files), strict=True)]
    Path("three.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    lines = [json.dumps({"fr": fr, "en": en, "de": de}) for de, fr, en in rows]
    Path("three.jsonl").write_text("".join(f"{line}\n" for line in lines))
    audits = []
    for train in (["corpus/train"], files, ["three.tsv"], ["three.jsonl"]):
        given = [f"--train={text}" for text in train]
        settings = ["data.source_languages=[de,fr]", "data.data_dir=data", "data.tokenizer.name=characters"]
        found = outputs(capsys, "prepare", *given, *(f"--set={setting}" for setting in settings))
        audits.append(found[1:])
    assert audits[1:] == audits[:-1]
    assert run(["train", "--train=corpus/train", "--set=data.source_languages=[de,fr]", "--dump-config"]) == 0
    values = yaml.safe_load(capsys.readouterr().out)
    assert (values["name"], values["data"]["source_languages"]) == ("own-de+fr-en", ["de", "fr"])


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
        ([*NO_TEXT, "data.corpus=multi30k", "data.source_languages=[de,en]"], "data.source_languages and data.target"),
        (["data.train=[a,b]"], "a, b"),
        ([VECTORS, "model.output.name=lexical"], "model.output.name"),
        ([VECTORS, "model.tie_embeddings=all", "data.vocab.joint=true", "model.readout_size=17"], "tie_embeddings"),
        ([*NO_TEXT, VECTORS, "data.corpus=captions"], "captions 'vectors' -> 'en'"),
    ],
)
def test_settings_that_do_not_fit(tmp_path, settings, message, capsys):
    assert_fails(capsys, "train", *options(tmp_path, *settings), code=2, message=message)


def test_inputs_that_do_not_fit(trained, capsys):
    of = ["translate", "--run", str(trained / "run")]
    german = ["-i", str(trained / "corpus" / "test.de")]
    french = ["-i", str(trained / "corpus" / "train.fr")]
    assert_fails(capsys, *of, "Hund", code=2, message="1 text")
    assert_fails(capsys, *of, *german * 3, code=2, message="test.de: this run reads 2 sources")
    assert_fails(capsys, *of, *german, code=1, message="1 text")
    assert_fails(capsys, *of, *german, *french, code=1, message="test.de: 20 lines")
    with pytest.raises(UserError, match="3 texts"):
        load(trained / "run").translate(["a\tb\tc"])


def test_a_run_with_one_source_takes_one_file(trained, capsys):
    settings = options(trained, "data.source_languages=[]", "train.max_updates=1")
    assert run(["train", "--run-dir", str(trained / "single"), *settings]) == 0
    single, source = str(trained / "single"), str(trained / "corpus" / "test.de")
    assert_fails(capsys, "translate", "--run", single, "-i", source, "-i", source, code=2, message=f"-i {source}")
    files = ["--source", source, "--reference", source]
    assert_fails(capsys, "evaluate", single, str(trained / "run"), *files, code=2, message="--source")


def test_attention_over_the_sentences_of_a_line(tmp_path):
    write_toy_corpus(tmp_path / "corpus")
    for path in (tmp_path / "corpus").glob("*.*"):
        path.write_text(path.read_text(encoding="utf-8").replace("\n", ".\n"), encoding="utf-8")
    settings = ("data.tokenizer.sentences=true", "model.attention.name=hierarchical")
    given = options(tmp_path, "data.source_languages=[]", *settings, "train.max_updates=2")
    assert run(["train", "--run-dir", str(tmp_path / "run"), *given]) == 0
    translator = load(tmp_path / "run")
    [found] = translator.score(["Hund. Katze."], ["dog. cat."])
    assert found.source_tokens == [*"Hund.", "\t", *"▁Katze.", "\t", "<eos>"]
    assert found.attention.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    short = translator.with_max_source_length(8).translate(["Hund. Katze. Mann."])[0]
    assert "".join(short.source_tokens).replace("\t", "") == "Hund.▁Katze.▁Mann.<eos>"
