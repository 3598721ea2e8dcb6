"""Own text by one command: each format from the command line to a run that translates."""

import json
import shutil
from pathlib import Path
from random import Random

import pytest
import yaml

from seq2seq_attn.__main__ import run
from seq2seq_attn.api.own_text import choose_settings
from seq2seq_attn.api.settings import check_languages
from seq2seq_attn.api.text_counts import Counts, Side
from seq2seq_attn.config import DataConfig
from seq2seq_attn.files import read_json, write_lines
from seq2seq_attn.run import Run
from seq2seq_attn.text.lines import read_lines
from tests.cli.command_line import assert_fails, outputs, set_options
from tests.train.conftest import write_toy_corpus

TINY = set_options(
    [
        "model.embedding_size=7",
        "model.hidden_size=11",
        "model.readout_size=7",
        "model.encoder.hidden_size=6",
        "train.num_threads=1",
        "train.device=cpu",
        "train.max_updates=2",
        "train.max_epochs=1",
    ]
)
LANGUAGES = "--source-language de --target-language en".split()


@pytest.fixture(autouse=True)
def _corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_toy_corpus(Path("corpus"))


def test_a_korean_syllable_counts_as_several_tokens():
    side = Side("ko", ["한국어"])
    assert Counts(1, side, side).estimate_tokens("characters") == sum(side.lengths("characters"))


def train(capsys, *arguments):
    [path] = outputs(capsys, "train", *arguments, *TINY)
    return Run(path)


def dumped(capsys, *arguments):
    return yaml.safe_load("\n".join(outputs(capsys, "train", *arguments, "--dump-config")))


def test_from_a_table_to_a_translation(capsys):
    """Sentences are set aside for validation, and stay nowhere in training."""
    sources = read_lines(Path("corpus/train.de"))
    pairs = zip(sources, read_lines(Path("corpus/train.en")), strict=True)
    write_lines(Path("train.tsv"), ["de\ten", *map("\t".join, pairs)])
    own = train(capsys, "--train", "train.tsv", *LANGUAGES)
    [meta] = Path("data/prepared").glob("*/meta.json")
    audit = read_json(meta)["audit"]
    num_valid = len({*sources}) // 10
    assert (audit["valid"]["pairs_read"], audit["valid"]["overlap_sources"]) == (num_valid, 0)
    # short sentences of eight words come twice
    assert audit["train"]["pairs_read"] < 160 - num_valid
    assert run("evaluate --split valid --no-attention".split()) == 0
    Path("train.tsv").unlink()
    shutil.rmtree("data")
    assert len(outputs(capsys, "translate", "Hund")) == 1
    assert own.is_finished()


def test_settings_follow_the_size_of_the_corpus(capsys):
    tokenizers = []
    sizes = []
    for num_pairs in (4_999, 5_000, 25_000, 250_000):  # ten target words each
        lines = [f"Hund {number}.\tDog {number}{' .' * 8}" for number in range(num_pairs)]
        write_lines(Path("big.tsv"), ["de\ten", *lines])
        values = dumped(capsys, "--train=big.tsv", *LANGUAGES)
        assert values["name"] == "own-de-en"
        tokenizers.append(values["data"]["tokenizer"]["name"])
        sizes.append(values["model"]["hidden_size"])
    assert tokenizers == ["spacy", *["sentencepiece"] * 3]
    assert sizes == sorted({*sizes})
    for limit, tokenizer in (
        ("data.limit=4999", "spacy"),
        ("data.limit.valid=4999", "sentencepiece"),
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
    assert values["train"]["log_every_updates"] == 77
    assert values["model"]["attention"]["name"] == "dot"
    assert values["data"]["tokenizer"]["name"] == "spaces"
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
    values = dumped(capsys, "--train=corpus/train", "-c", "languages.yaml")
    assert values["name"] == "own-en-de+languages"


@pytest.mark.parametrize(("target", "line"), [("zh", "猫在桌子上。"), ("ca", "El gat del país.")])
def test_a_target_whose_words_would_get_spaces_inside_gets_subwords(capsys, target, line):
    Path("own.tsv").write_text(f"en\t{target}\n" + f"a cat\t{line}\n" * 20, "utf-8")
    text = ["--train=own.tsv", "--source-language=en", f"--target-language={target}"]
    assert dumped(capsys, *text)["data"]["tokenizer"]["name"] == "sentencepiece"
    # a file of settings comes before the choices for a text
    for chosen in ({"name": "spacy"}, {"vocab_size": 300}):
        own = {"data": {"tokenizer": chosen}, "train": {"validation": {"metric": "exact"}}}
        Path("mine.yaml").write_text(json.dumps(own), "utf-8")
        values = dumped(capsys, *text, "-c", "mine.yaml")
        assert values["data"]["tokenizer"].items() >= chosen.items()
        assert values["train"]["validation"]["metric"] == "exact"
    assert values["data"]["vocab"]["min_frequency"] == 1


def test_targets_of_few_words_are_validated_by_chrf(capsys):
    write_lines(Path("de.tsv"), [f"A ball {number}\tRote Bälle{number}." for number in range(40)])
    write_lines(Path("zh.tsv"), [f"A ball {number}\t红色的球B{number}." for number in range(40)])
    text = ["--columns=1,2", "--source-language=en"]
    german = [*text, "--train=de.tsv", "--target-language=de"]
    for options, metric in (
        (german, "chrf"),
        ([*text, "--train=zh.tsv", "--target-language=zh"], "bleu"),  # of characters
        ([*german, "--set=train.validation.metric=cer"], "cer"),
    ):
        assert dumped(capsys, *options)["train"]["validation"]["metric"] == metric
    assert "chrf" in train(capsys, *german).load_best().values


def sentence(random):
    return " ".join("".join(random.choices("abcdefgh", k=5)) for _ in range(9)) + "."


def pair(kind, random):
    """A pair of a kind of text, by its name."""
    word = "".join(random.choices("abcdefgh", k=random.randint(4, 9)))
    digits = random.choices("0123456789", k=random.randint(2, 8))
    day, month, year = random.randint(1, 28), random.randint(1, 12), random.randint(1900, 2100)
    return {
        "names": (word, word.upper()),
        "names of two words": (f"{word} {word[::-1]}", f"{word.upper()} {word[::-1].upper()}"),
        "sounds": (word, " ".join(word)),
        "letters": (" ".join(word), word),
        "numbers": (" ".join(digits), " ".join(reversed(digits))),
        "dates": (f"{day}. {month}. {year}", f"{year}-{month:02}-{day:02}"),
        "labels": (sentence(random) * 2, random.choice(["good", "bad"])),
        "titles": (" ".join(sentence(random) for _ in range(3)), word),
        "sentences": (sentence(random), sentence(random)),
        "few words": (f"Go {' '.join(digits)}.", f"Va {' '.join(digits)}."),
    }[kind]


def write_pairs(kind, num_pairs=300):
    """Write a table, and return the options that train on it."""
    random = Random(1)
    write_lines(Path("kind.tsv"), ["\t".join(pair(kind, random)) for _ in range(num_pairs)])
    return "--train=kind.tsv --columns=1,2 --source-language=en --target-language=fr".split()


@pytest.mark.parametrize(
    ("kind", "tokens", "metric"),
    [
        ("names", ("characters", None), "cer"),
        ("names of two words", ("characters", None), "cer"),
        ("sounds", ("characters", "spaces"), "wer"),
        ("letters", ("spaces", "characters"), "cer"),
        ("numbers", ("spaces", None), "wer"),
        ("dates", ("characters", None), "cer"),
        ("labels", ("sentencepiece", "spaces"), "wer"),
        ("titles", ("sentencepiece", "characters"), "cer"),
        ("sentences", ("spacy", None), "bleu"),
    ],
)
def test_tokens_and_metric_follow_the_lines(capsys, kind, tokens, metric):
    text = write_pairs(kind)
    values = dumped(capsys, *text)
    tokenizer = values["data"]["tokenizer"]
    assert (tokenizer["name"], tokenizer["target"]) == tokens
    assert values["train"]["validation"]["metric"] == metric
    values = dumped(capsys, *text, "--set=data.tokenizer.name=sentencepiece")
    tokenizer = values["data"]["tokenizer"]
    assert (tokenizer["name"], tokenizer["target"]) == ("sentencepiece", None)


@pytest.mark.parametrize(
    ("kind", "tokens"), [("sentences", "sentencepiece"), ("few words", "spacy")]
)
def test_a_closed_list_of_words_has_no_subwords(capsys, kind, tokens):
    assert dumped(capsys, *write_pairs(kind, 6_000))["data"]["tokenizer"]["name"] == tokens


@pytest.mark.parametrize("num_copies", [1, 2, 5])
def test_repeated_sentences_do_not_make_a_closed_list(num_copies):
    random = Random(1)
    lines = [sentence(random).rstrip(".") for _ in range(1_000)] * num_copies
    side = Side("en", lines)
    assert (side.kind, side.is_closed) == ("sentences", False)


def test_multi_word_labels_are_symbols():
    labels = ["play music", "book a table", "show the weather", "greet"]
    assert Side("en", Random(1).choices(labels, k=300)).kind == "symbols"


@pytest.mark.parametrize(
    ("kind", "options", "is_warned"),
    [
        ("names", [], True),
        ("names", ["--set=data.tokenizer.target=characters"], False),
        ("sounds", [], False),
        ("labels", [], False),
    ],
)
def test_targets_without_spaces_between_sounds_have_a_warning(
    capsys, caplog, kind, options, is_warned
):
    dumped(capsys, *write_pairs(kind), "-c", "g2p", *options)
    warnings = [message for message in caplog.messages if "no spaces" in message]
    assert len(warnings) == is_warned
    assert all("--set data.tokenizer.target=characters" in warning for warning in warnings)


def test_limits_of_length_keep_the_pairs(capsys):
    assert dumped(capsys, *write_pairs("labels"))["data"]["max_length_ratio"] > 9
    lines = [" ".join("0123456789"[: number % 9 + 1] * 30) for number in range(300)]
    write_lines(Path("long.tsv"), [f"{line}\t{line}" for line in lines])
    text = "--train=long.tsv --columns=1,2 --source-language=en --target-language=fr".split()
    assert dumped(capsys, *text)["data"]["max_length"] == 300
    assert dumped(capsys, *text, "--set=data.max_length=70")["data"]["max_length"] == 70


def test_a_limit_of_length_is_never_lowered():
    side = Side("en", ["a " * 600] * 9)
    data = DataConfig(max_length=500)
    settings = choose_settings(Counts(9, side, side), data, has_tokens=True)
    assert "data.max_length" not in settings


def test_updates_and_batches_grow_with_the_text(capsys):
    budgets = []
    for num_pairs in (300, 3_000, 30_000):
        train = dumped(capsys, *write_pairs("sentences", num_pairs))["train"]
        budgets.append((train["max_updates"], train["batch"]["size"]))
        assert train["max_epochs"] is None
        assert train["validation"]["every_updates"] * 20 == train["max_updates"]
    assert budgets == [(8_000, 16), (8_000, 32), (8_080, 64)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--set=train.max_updates=7"], (7, None, None)),
        (["--set=train.max_epochs=7"], (None, 7, None)),
        (["--set=train.max_epochs=null"], (8_000, None, 7)),
        (["--set=train.validation.patience=3"], (8_000, None, 3)),
        (["--config=own-small"], (None, 20, None)),  # a configuration with a budget of its own
        (["--config=g2p"], (8_000, None, 7)),
    ],
)
def test_limits_set_by_the_user_replace_the_chosen_ones(capsys, caplog, options, expected):
    train = dumped(capsys, *write_pairs("sentences"), *options)["train"]
    limits = (train["max_updates"], train["max_epochs"], train["validation"]["patience"])
    assert limits == expected
    assert ("patience is off" in caplog.text) == (expected[2] is None)


@pytest.mark.parametrize(
    ("limit", "every"), [("max_updates=7", 94), ("max_updates=9000", 450), ("max_epochs=7", None)]
)
def test_batches_follow_from_the_text_whatever_limits_training(capsys, limit, every):
    train = dumped(capsys, *write_pairs("sentences", 3_000), f"--set=train.{limit}")["train"]
    assert (train["batch"]["size"], train["validation"]["every_updates"]) == (32, every)


@pytest.mark.parametrize(
    ("options", "size"),
    [("accumulate=4", 4), ("unit=tokens", 160), ("unit=tokens,size=640", 640)],
)
def test_batch_sizes_are_in_the_unit_that_is_set(capsys, caplog, options, size):
    lines = [f"Hund {number}.\tDog {number}{' .' * 8}" for number in range(3_000)]
    write_lines(Path("ten_words.tsv"), ["de\ten", *lines])
    settings = [f"--set=train.batch.{option}" for option in options.split(",")]
    train = dumped(capsys, "--train=ten_words.tsv", *LANGUAGES, *settings)["train"]
    assert train["batch"]["size"] == size
    assert f"8,000 updates of {64 if size == 640 else 16} pairs" in caplog.text


def test_the_log_names_a_suggestion_that_the_user_replaced(capsys, caplog):
    dumped(capsys, *write_pairs("sentences"), "--set=train.batch.size=99")
    assert "updates of 99 pairs" in caplog.text


@pytest.mark.parametrize(
    ("names", "codes"),
    [
        (("GERMAN", "Flemish"), ("de", "nl")),
        (("deu", "fra_Latn"), ("deu", "fra_Latn")),
    ],
)
def test_names_of_languages_are_their_codes(capsys, names, codes):
    for code in codes:
        Path(f"own.{code}").write_text("1\n")
    languages = [f"--source-language={names[0]}", f"--target-language={names[1]}"]
    data = dumped(capsys, "--train=own", *languages)["data"]
    assert (data["source_language"], data["target_language"]) == codes


def test_columns_of_tables_are_an_option_and_a_setting(capsys):
    Path("train.tsv").write_text("1\tHallo!\tHello!\n2\tJa.\tYes.\n")
    text = ["--train=train.tsv", "--source-language=en", "--target-language=de"]
    for columns in ("--columns=3,2", "--set=data.columns=[3,2]"):
        assert dumped(capsys, *text, columns)["data"]["columns"] == ["3", "2"]


def test_a_resume_keeps_the_settings_of_the_run(capsys):
    Path("sizes.yaml").write_text(
        "train: {optimizer: {learning_rate: 1.0e-4}}\nmodel: {tie_embeddings: target}\n"
    )
    command = ["--train=corpus/train", *LANGUAGES, "--run-dir=own"]
    train(capsys, *command, "-c", "sizes.yaml")
    config = dumped(capsys, *command, "--resume")
    assert config["train"]["optimizer"]["learning_rate"] == 1e-4
    assert config["model"]["tie_embeddings"] == "target"
    assert config["name"] == "own-de-en+sizes"
    Path("new.tsv").write_text("de\ten\nHund\tdog\nKatze\tcat\n")
    tuning = ["--from=own", "--train=new.tsv", "--run-dir=tuned"]  # the run tells the languages
    assert run(["train", *tuning, "--set=train.max_updates=1"]) == 0
    capsys.readouterr()
    resumed = dumped(capsys, "--run-dir=tuned", "--resume")
    assert dumped(capsys, *tuning, "--resume")["data"] == resumed["data"]


def test_the_home_folder(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    Path("mine.yaml").write_text(
        "data: {data_dir: ~/data, corpus: files, train: ~/corpus/train, valid: [~/a, ~/b]}\n"
    )
    data = dumped(capsys, "-c", "mine.yaml")["data"]
    assert (data["data_dir"], data["train"]) == (f"{tmp_path}/data", f"{tmp_path}/corpus/train")
    assert data["valid"] == [f"{tmp_path}/a", f"{tmp_path}/b"]
    values = dumped(capsys, "--train=~/corpus/train", *LANGUAGES)
    assert values["data"]["train"] == f"{tmp_path}/corpus/train"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--train=corpus/train"], 2, "--source-language"),
        (["--train=corpus/train", "--source-language="], 2, "empty"),
        (["--valid=corpus/valid"], 2, "data.valid="),
        (["--train=", *LANGUAGES], 2, "data.train="),
        (["--config=multi30k-sources", "--source-language=fr"], 2, "data.source_languages"),
        (["--train=corpus/train", "--valid=gone", *LANGUAGES], 1, "gone"),
        (["--train=empty.tsv", *LANGUAGES], 1, "empty.tsv: empty"),
    ],
)
def test_mistakes_are_one_line(capsys, arguments, code, message):
    Path("empty.tsv").touch()
    assert_fails(capsys, "train", *arguments, code=code, message=message)
    assert not Path("runs").exists()


def write_letters(*alphabets):
    """Pairs of words of random letters."""
    random = Random(1)
    lines = []
    for _ in range(1_000):
        lines.append("\t".join(" ".join(random.choices(letters, k=24)) for letters in alphabets))
    write_lines(Path("pairs.tsv"), lines)


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
        write_letters("abcdefghijklmnopqrstuvwxyz", letters)
        options = "--train=pairs.tsv --columns=1,2 --set=data.tokenizer.name=sentencepiece".split()
        languages = ["--source-language=en", f"--target-language={target}"]
        tokenizer = dumped(capsys, *options, *languages)["data"]["tokenizer"]
        sizes[target] = min(19_000, tokenizer["vocab_size"]), tokenizer["joint"]
    assert sizes == {"fr": (4_000, True), "el": (4_000, False), "ii": (19_000, False)}


@pytest.mark.parametrize(
    ("source", "warning"), [("Englsh", "mean english"), ("fr", "one language")]
)
def test_languages_that_may_be_mistakes_are_logged(source, warning, caplog):
    check_languages([source, "word", "fr"])
    [message] = caplog.messages
    assert warning in message
