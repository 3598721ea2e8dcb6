"""`seq2seq translate` with documents: only their texts are translated; what it does not read, it
refuses."""

import io
import sys

import pytest

from seq2seq_attn.text.documents.forms import FORMS, WITH_FIELDS
from tests.cli.command_line import assert_fails, outputs
from tests.toy_run import SOURCE

TIMES = "1\n00:00:01,000 --> 00:00:02,500\nEin Hund schläft.\n"
CATALOGUE = '# a\nmsgid ""\nmsgstr ""\n\nmsgid "Ein Hund schläft."\nmsgstr ""\n'
XLIFF = '<?xml version="1.0"?>\n<xliff version="1.2"></xliff>\n'
OBJECTS = '{"de": "Ein Hund schläft."}\n'
TEXT = f"{SOURCE[0]}\n"
COLUMNS = f"{SOURCE[0]}\tx\n"
TEMPLATES = {
    "srt": "1\n00:00:01,000 --> 00:00:02,500\n%s\n",
    "vtt": "WEBVTT\n\nNOTE Hund\n\n00:01.000 --> 00:02.500\n%s\n",
    "jsonl": '{"id": 1, "de": "%s"}\n',
    "html": "<h1 title='Hund'>%s</h1><pre>Hund</pre>\n",
    "xlf": f"<xliff><file source-language='de'><trans-unit><source>{SOURCE[0]}</source>"
    "<target>%s</target></trans-unit></file></xliff>",
    "tmx": f"<tmx><tu><tuv lang='de'><seg>{SOURCE[0]}</seg></tuv>"
    "<tuv lang='en'><seg>%s</seg></tuv></tu></tmx>",
    "po": f'# Hund\nmsgid "{SOURCE[0]}"\nmsgstr "%s"\n',
    "csv": "id;de\n1;%s\n",
    "tsv": "id\tde\n1\t%s\n",
    "md": "# %s\n\n    Hund\n",
}
ALIASES = {"ndjson": "jsonl", "htm": "html", "xhtml": "html", "xliff": "xlf", "pot": "po"}


@pytest.fixture
def command(toy_runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return ["translate", "--run", str(toy_runs["toy"].path), "--device", "cpu"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("in.xlf.gz", TEXT),
        ("in.tmx", TEXT),
        ("in.RST", TEXT),
        ("in.docx", TEXT),
        ("in.txt", XLIFF),
        ("in.txt", f"\n{OBJECTS}"),
        ("in.txt", TIMES),
        ("in.txt", CATALOGUE),
        ("in.txt", f"WEBVTT\n\n{TIMES}"),
    ],
)
def test_a_document_is_refused(command, tmp_path, capsys, name, text):
    (tmp_path / name).write_text(text, "utf-8")
    assert_fails(capsys, *command, "-i", name, "-o", "out", code=1, message=name)
    assert not (tmp_path / "out").exists()


def test_a_document_on_standard_input_is_refused(command, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TIMES.encode())))
    assert_fails(capsys, *command, code=1, message="standard input")


@pytest.mark.parametrize(
    ("name", "text"), [("in.srt", TEXT), ("in.txt", TIMES), ("in.tsv", COLUMNS), ("in.rst", TEXT)]
)
def test_documents_are_translated_as_lines_on_request(command, tmp_path, capsys, name, text):
    (tmp_path / name).write_text(text, "utf-8")
    lines = outputs(capsys, *command, "-i", name, "--document", "lines")
    assert len(lines) == text.count("\n")


def test_a_missing_document_is_named_once(command, capsys):
    assert_fails(capsys, *command, "-i", "in.srt", code=1, message="error: in.srt: ")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_keeps_all_but_the_text(command, tmp_path, capsys, form):
    template = TEMPLATES[ALIASES.get(form, form)]
    text = "" if SOURCE[0] in template else SOURCE[0]
    (tmp_path / f"in.{form}").write_text(template % text, "utf-8")
    field = ["--field", "de"] if form in WITH_FIELDS else []
    outputs(capsys, *command, "-i", f"in.{form}", "-o", "out", *field)
    [expected] = outputs(capsys, *command, SOURCE[0])
    assert (tmp_path / "out").read_text("utf-8") == template % expected


def test_the_form_of_standard_input_is_named(command, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TIMES.encode())))
    lines = outputs(capsys, *command, "--document", "srt", "-i", "-")
    assert lines[:2] == TIMES.splitlines()[:2]


@pytest.mark.parametrize(
    "options",
    [
        ["--n-best", "2"],
        ["--format", "json"],
        ["--alignment", "links"],
        ["--attention", "a.html"],
        ["-i", "-"],
    ],
)
def test_options_for_lines_are_refused(command, tmp_path, capsys, options):
    (tmp_path / "in.srt").write_text(TIMES, "utf-8")
    arguments = ["-i", "in.srt", "--document", "srt", *options]
    assert_fails(capsys, *command, *arguments, code=2, message="in" if "-i" in options else "srt")


def test_texts_that_stay_untranslated_are_named(command, tmp_path, caplog, capsys):
    (tmp_path / "in.srt").write_text(f"{TIMES}<b>a</b> {{b, c {{d}}}}\n", "utf-8")
    outputs(capsys, *command, "-i", "in.srt")
    [message] = [message for message in caplog.messages if "untranslated" in message]
    assert message.startswith("in.srt: ")
    assert ": 1; line 4: " in message


def test_lines_have_no_field(command, tmp_path, capsys):
    (tmp_path / "in").write_text(TEXT, "utf-8")
    assert_fails(capsys, *command, "-i", "in", "--field", "de", code=2, message="--field")
