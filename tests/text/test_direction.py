"""The direction of a text: 40 pairs of languages, columns or files exchanged or not, with and
without a header. A direction is right or refused, never wrong."""

from itertools import product
from pathlib import Path

import pytest
import yaml

from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.corpus import find_text
from seq2seq_attn.text.languages import english_name
from seq2seq_attn.text.scripts import is_in_script, usual_script
from tests.text.conftest import as_lines

LANGUAGES = yaml.safe_load((Path(__file__).parents[1] / "e2e" / "languages.yaml").read_text())
OTHERS = [language for language in LANGUAGES if language != "en"]
PAIRS = [("en", language) for language in OTHERS]
PAIRS += [("deu_Latn", "ru"), ("ar", "fr"), ("zh", "ja"), ("hi", "mr"), ("ko", "ja")]
PAIRS = PAIRS[-40:]


def have_one_script(first, second):
    """Whether the text of one language could be that of the other."""
    scripts = [usual_script(language) for language in (first, second)]
    lines = [LANGUAGES[language]["lines"] for language in (first, second)]
    return all(
        script is None or is_in_script(text, script)
        for script, text in zip(scripts, reversed(lines), strict=True)
    )


def outcome(expected, *arguments, **options):
    """`right`, `wrong` or `refused`."""
    try:
        pairs = list(find_text(*arguments, **options).pairs())
    except UsageError as error:
        return "refused" if "first" in str(error) and "--columns" in str(error) else "unexplained"
    return "right" if pairs == expected else "wrong"


@pytest.mark.parametrize(("source", "is_right"), [("el+hi", True), ("hi+el", False)])
def test_a_file_of_several_sources(write, source, is_right):
    lines = ["\t".join(LANGUAGES[code]["lines"][0] for code in ("el", "hi"))]
    files = [write("sources", as_lines(lines)), write("target", "A dog runs.\n")]
    expected = [(lines[0], "A dog runs.")]
    assert outcome(expected, files, source, "en") == ("right" if is_right else "refused")


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_tables(write, source, target):
    expected = list(zip(*(LANGUAGES[code]["lines"] for code in (source, target)), strict=True))
    for is_exchanged, header in product([False, True], ["", "codes", "names"]):
        names = [source, target]
        if header == "names":
            names = [english_name(name).capitalize() for name in names]
        rows = [names, *expected] if header else expected
        columns = [row[::-1] if is_exchanged else row for row in rows]
        table = write("a.tsv", as_lines(map("\t".join, columns)))
        found = outcome(expected, table, source, target)
        is_decided = header or not have_one_script(source, target)
        is_sure = header or (is_decided and None not in map(usual_script, (source, target)))
        assert found == ("right" if is_sure else "refused"), (is_exchanged, header)
        numbers = ["1", "2"] if is_exchanged else ["2", "1"]
        wrong = outcome(expected, table, source, target, columns=numbers)
        assert wrong == ("refused" if is_decided else "wrong"), (is_exchanged, header)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_two_files(write, source, target):
    expected = list(zip(*(LANGUAGES[code]["lines"] for code in (source, target)), strict=True))
    files = [
        write("first.txt", as_lines(LANGUAGES[source]["lines"])),
        write("second.txt", as_lines(LANGUAGES[target]["lines"])),
    ]
    assert outcome(expected, files, source, target) == "right"
    if not have_one_script(source, target):
        exchanged = [row[::-1] for row in expected]
        assert outcome(exchanged, files[::-1], source, target) == "refused"


@pytest.mark.parametrize(
    ("languages", "first", "second"),
    [
        (("de", "en"), "A dog.", "Собака."),
        (("ru", "uk"), "A dog.", "Собака."),
        (("zh", "yue"), "狗。", "개."),
    ],
)
def test_a_column_is_not_the_text_of_two_languages(write, languages, first, second):
    table = write("a.tsv", f"{first}\t{second}\n" * 3)
    assert outcome([], table, *languages) == "refused"


def test_a_separator_that_no_line_has_leaves_no_two_columns(write):
    table = write("a.csv", "sep=;\n" + "A dog.,Ein Hund.\n" * 3)
    assert outcome([], table, "en", "de") == "refused"


def test_kana_are_not_chinese(write):
    files = [
        write(name, "\n".join(LANGUAGES[code]["lines"]))
        for name, code in (("a.txt", "ja"), ("b.txt", "zh"))
    ]
    assert outcome([], files, "zh", "ja") == "refused"


@pytest.mark.parametrize("word", ["абдал", "abbé"])
def test_a_side_that_is_no_language_may_be_in_any_script(write, word):
    table = write("a.tsv", f"{word}\tə b d\n")
    assert [*find_text(table, "word", "phonemes", columns=["1", "2"]).pairs()] == [(word, "ə b d")]
