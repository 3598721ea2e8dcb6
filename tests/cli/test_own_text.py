"""Own text by one command: each format from the command line to a run that translates."""

import json
from pathlib import Path
from random import Random

import pytest
import yaml

from seq2seq_attn.__main__ import run
from seq2seq_attn.run import Run
from tests.cli.command_line import assert_fails, outputs
from tests.train.conftest import write_toy_corpus

TINY = [
    *(
        "model.embedding_size=7",
        "model.hidden_size=11",
        "model.readout_size=7",
        "model.encoder.hidden_size=6",
    ),
    *("train.num_threads=1", "train.device=cpu", "train.max_updates=2", "train.max_epochs=1"),
]
TINY_OPTIONS = [f"--set={setting}" for setting in TINY]
LANGUAGES = "--source-language de --target-language en".split()


@pytest.fixture(autouse=True)
def _corpus(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_toy_corpus(Path("corpus"))


def pairs(split: str) -> list[tuple[str, str]]:
    source, target = (
        Path(f"corpus/{split}.{language}").read_text().splitlines() for language in ("de", "en")
    )
    return list(zip(source, target, strict=True))


def train(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[Run, str]:
    code = run(["train", *arguments, *TINY_OPTIONS])
    out, err = capsys.readouterr()
    assert code == 0, err
    return Run(out.strip()), err


def dumped(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert run(["train", *arguments, "--dump-config"]) == 0
    return yaml.safe_load(capsys.readouterr().out)


def test_from_a_table_to_a_translation(capsys):
    """Sentences are set aside for validation, and stay nowhere in training."""
    Path("train.tsv").write_text(
        "de\ten\n" + "".join(f"{source}\t{target}\n" for source, target in pairs("train"))
    )
    own, _ = train(capsys, "--train", "train.tsv", *LANGUAGES)
    [prepared] = Path("data/prepared").iterdir()
    audit = json.loads((prepared / "meta.json").read_text())["audit"]
    num_valid = len({source for source, _ in pairs("train")}) // 10
    assert (audit["valid"]["pairs_read"], audit["valid"]["overlap_sources"]) == (num_valid, 0)
    assert (
        audit["train"]["pairs_read"] < 160 - num_valid
    )  # short sentences of eight words come twice
    assert run("evaluate --split valid --no-attention".split()) == 0
    for path in (
        Path("train.tsv"),
        *Path("data").rglob("*.source"),
        *Path("data").rglob("*.target"),
    ):
        path.unlink()
    assert len(outputs(capsys, "translate", "Hund")) == 1
    assert own.is_finished()


def test_settings_follow_the_size_of_the_corpus(capsys):
    found = []
    for num_pairs in (1_999, 2_000, 20_000, 200_000):
        Path("big.tsv").write_text("de\ten\n" + "a\tb\n" * num_pairs)
        values = dumped(capsys, "--train=big.tsv", *LANGUAGES)
        assert values["name"] == "own-de-en"
        found.append((values["data"]["tokenizer"]["name"], values["model"]["hidden_size"]))
    assert [tokenizer for tokenizer, _ in found] == ["spacy", *["sentencepiece"] * 3]
    assert [size for _, size in found] == sorted({size for _, size in found})
    for limit, tokenizer in (
        ("data.limit=1999", "spacy"),
        ("data.limit.valid=1999", "sentencepiece"),
    ):
        values = dumped(capsys, "--train=big.tsv", *LANGUAGES, f"--set={limit}")
        assert values["data"]["tokenizer"]["name"] == tokenizer


def test_configurations_and_settings_go_on_top(capsys):
    Path("mine.yaml").write_text("train: {log_every_updates: 77}\n")
    arguments = ["--train=corpus/train", *LANGUAGES]
    values = dumped(
        capsys, *arguments, "-c", "mine.yaml", "-c", "attention/dot", "--set=train.max_epochs=3"
    )
    assert values["name"] == "own-de-en+mine+dot"
    assert (values["train"]["log_every_updates"], values["model"]["attention"]["name"]) == (
        77,
        "dot",
    )
    assert values["data"]["tokenizer"]["name"] == "spacy"
    assert values["train"]["max_epochs"] == 3
    assert values["train"]["batch"]["size"] == 16
    values = dumped(capsys, *arguments, "-c", "tutorial")
    assert values["name"] == "tutorial-de-en"
    assert (values["data"]["corpus"], values["train"]["batch"]["size"]) == ("files", 128)
    Path("mine.links").write_text("0-0\n" * 160)
    values = dumped(
        capsys, *arguments, "--set=name=mine", "--links=mine.links", "-c", "objective/guided"
    )
    assert (values["name"], values["data"]["links"]) == ("mine", "mine.links")
    Path("languages.yaml").write_text("data: {source_language: en, target_language: de}\n")
    assert (
        dumped(capsys, "--train=corpus/train", "-c", "languages.yaml")["name"]
        == "own-en-de+languages"
    )


@pytest.mark.parametrize(("target", "line"), [("zh", "猫在桌子上。"), ("ca", "El gat del país.")])
def test_a_target_whose_words_would_get_spaces_inside_gets_subwords(capsys, target, line):
    Path("own.tsv").write_text(f"en\t{target}\n" + f"a cat\t{line}\n" * 20, "utf-8")
    text = ["--train=own.tsv", "--source-language=en", f"--target-language={target}"]
    assert dumped(capsys, *text)["data"]["tokenizer"]["name"] == "sentencepiece"
    for chosen in (
        {"name": "spacy"},
        {"vocab_size": 300},
    ):  # a file of settings comes before the choices for a text
        own = {"data": {"tokenizer": chosen}, "train": {"validation": {"metric": "exact"}}}
        Path("mine.yaml").write_text(json.dumps(own), "utf-8")
        values = dumped(capsys, *text, "-c", "mine.yaml")
        assert values["data"]["tokenizer"] == {
            **values["data"]["tokenizer"],
            "name": "sentencepiece",
            **chosen,
        }
        assert values["train"]["validation"]["metric"] == "exact"
    assert values["data"]["vocab"]["min_frequency"] == 1


def test_targets_of_single_words_are_validated_by_chrf(capsys):
    lines = [f"A ball {number}\t红色的球{number}\n" for number in range(40)]
    Path("own.tsv").write_text("".join(lines), "utf-8")
    text = ["--train=own.tsv", "--columns=1,2", "--source-language=en"]
    for options, metric in (
        (["--target-language=de"], "chrf"),
        (["--target-language=zh"], "bleu"),  # of characters
        (["--target-language=de", "--set=train.validation.metric=cer"], "cer"),
    ):
        assert dumped(capsys, *text, *options)["train"]["validation"]["metric"] == metric
    own, _ = train(capsys, *text, "--target-language=de")
    assert "chrf" in own.load_best().values


def test_columns_of_tables_are_an_option_and_a_setting(capsys):
    Path("train.tsv").write_text("1\tHallo!\tHello!\n2\tJa.\tYes.\n")
    text = ["--train=train.tsv", "--source-language=en", "--target-language=de"]
    assert_fails(capsys, "train", *text, code=2, message="--columns")
    for columns in ("--columns=3,2", "--set=data.columns=[3,2]"):
        assert dumped(capsys, *text, columns)["data"]["columns"] == ["3", "2"]


def test_a_resume_keeps_the_settings_of_the_run(capsys):
    Path("sizes.yaml").write_text(
        "train: {optimizer: {learning_rate: 1.0e-4}}\nmodel: {hidden_size: 12}\n"
    )
    command = ["--train=corpus/train", *LANGUAGES, "--run-dir=own"]
    assert (
        run(
            [
                "train",
                *command,
                "-c",
                "sizes.yaml",
                *(o for o in TINY_OPTIONS if "model.hidden_size" not in o),
            ]
        )
        == 0
    )
    capsys.readouterr()
    config = dumped(capsys, *command, "--resume")
    assert config["train"]["optimizer"]["learning_rate"] == 1e-4
    assert config["model"]["hidden_size"] == 12
    assert config["name"] == "own-de-en+sizes"
    Path("new.tsv").write_text("de\ten\nHund\tdog\nKatze\tcat\n")
    tuning = ["--from=own", "--train=new.tsv", "--run-dir=tuned"]  # the run tells the languages
    assert run(["train", *tuning, "--set=train.max_updates=1"]) == 0
    capsys.readouterr()
    assert (
        dumped(capsys, *tuning, "--resume")["data"]
        == dumped(capsys, "--run-dir=tuned", "--resume")["data"]
    )


def test_the_home_folder(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    Path("mine.yaml").write_text(
        "data: {data_dir: ~/data, corpus: files, train: ~/corpus/train, valid: [~/a, ~/b]}\n"
    )
    data = dumped(capsys, "-c", "mine.yaml")["data"]
    assert (data["data_dir"], data["train"]) == (f"{tmp_path}/data", f"{tmp_path}/corpus/train")
    assert data["valid"] == [f"{tmp_path}/a", f"{tmp_path}/b"]
    assert (
        dumped(capsys, "--train=~/corpus/train", *LANGUAGES)["data"]["train"]
        == f"{tmp_path}/corpus/train"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--train=corpus", *LANGUAGES], 1, "corpus"),
        (
            ["--train=corpus/train", "--source-language=fr", "--target-language=en"],
            1,
            "corpus/train.fr",
        ),
        (["--train=corpus/train"], 2, "--source-language"),
        (["--train=a", "--train=b", "--train=c"], 2, "a, b, c"),
        (["--valid=corpus/valid"], 2, "data.valid="),
        (["--train=", *LANGUAGES], 2, "data.train="),
        (["--config=multi30k-sources", "--source-language=fr"], 2, "data.source_languages"),
        (["--train=corpus/train", "--valid=gone", *LANGUAGES], 1, "gone"),
    ],
)
def test_mistakes_are_one_line(capsys, arguments, code, message):
    assert_fails(capsys, "train", *arguments, code=code, message=message)
    assert not Path("runs").exists()


def write_letters(num_pairs: int, *alphabets: str) -> None:
    """Pairs of random words."""
    random = Random(1)
    with Path("pairs.tsv").open("w", encoding="utf-8") as stream:
        for _ in range(num_pairs):
            words = [
                " ".join("".join(random.choices(letters, k=4)) for _ in range(6))
                for letters in alphabets
            ]
            stream.write("\t".join(words) + "\n")


ENGLISH_LETTERS = "abcdefghijklmnopqrstuvwxyz"
LETTERS = {
    "fr": "abcdefghijklmnopqrstuvwxyzéèç",
    "el": "αβγδεζηθικλμνξοπρστυφχψω",
    "ii": "".join(map(chr, range(0xA000, 0xA000 + 11_000))),  # Yi has many signs
}


def test_the_number_of_subwords(capsys):
    """That for the size of the corpus, or twice the characters; a vocabulary per side where letters
    differ."""
    sizes = {}
    for target, letters in LETTERS.items():
        write_letters(1_000, ENGLISH_LETTERS, letters)
        arguments = ["--train=pairs.tsv", "--columns=1,2", "--source-language=en"]
        arguments.append(f"--target-language={target}")
        tokenizer = dumped(capsys, *arguments, "--set=data.tokenizer.name=sentencepiece")["data"][
            "tokenizer"
        ]
        sizes[target] = tokenizer["vocab_size"], tokenizer["joint"]
    assert sizes["fr"] == (2_000, True)
    assert sizes["el"] == (2_000, False)
    assert sizes["ii"][0] >= 19_000
    assert not sizes["ii"][1]
