"""Mutated files of every kind: each reader reads them, or refuses them in one line that no terminal
acts on. The sample is small; the slow tier makes 200,000 mutations."""

import gc
import io
import re
import resource
import shutil
import time
from contextlib import redirect_stderr
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
import torch

from seq2seq_attn import cli
from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.api.streams import open_input, read_chunks
from seq2seq_attn.config import load_config
from seq2seq_attn.data.links import check_links
from seq2seq_attn.evaluation.systems import System
from seq2seq_attn.evaluation.test_sets import EvaluationSet
from seq2seq_attn.evaluation.translations import translate_set
from seq2seq_attn.files import MANIFEST, check_files
from seq2seq_attn.model.weights import read_tensors, write_tensors
from seq2seq_attn.run import Run
from seq2seq_attn.text.corpus import find_text
from seq2seq_attn.text.lines import iter_lines
from seq2seq_attn.text.tokenizers.vectors import read_vectors
from seq2seq_attn.text.vocab import Vocab
from seq2seq_attn.text.word_vectors import read_word_vectors, vector_size
from tests.text.test_generated_text import DECOMPRESS, make_pairs, table
from tests.toy_run import make_toy_run

ACTED_ON = re.compile(
    "[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)
"""by a terminal"""
MAX_GROWTH_MIB, MAX_S = 600, 20
HOSTILE = [
    b"\x1b]0;owned\x07\x1b[31m",
    b"\r",
    b"\n",
    b"\t",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b'"',
    "\u202e\u2028\x9b".encode(),
    b"[" * 3_000,
    b"{" * 3_000,
    b"9" * 5_000,
    b"-1",
    b"1e999",
    b"NaN",
    b"null",
    b"{}",
    b"[]",
    b"!!int x",
    b"&a [*a, *a]",
    b"<<: *a",
    b"../../etc/passwd",
    b"\xff" * 8,
    b"\0" * 8,
    b"\x7f" * 8,
    b"\\u0000",
    b"<tu>",
    b"&amp;&x;",
    b"%s%n",
    b"0-99999999",
    b"0x7fffffff",
    b"\xf0\x9f\x90\x95",
    b"\xcc\x81" * 500,
]


def mutate(data, random):
    """The data after one to four changes at random places."""
    changed = bytearray(data)
    for _ in range(random.randint(1, 4)):
        start = random.randrange(len(changed) + 1)
        end = min(len(changed), start + random.choice([0, 1, 1, 8, 100]))
        kind = random.randrange(6)
        if kind == 0 and start < len(changed):
            changed[start] ^= 1 << random.randrange(8)
        elif kind == 1:
            changed[start:end] = b""
        elif kind == 2:
            changed[start:start] = changed[start:end] * random.randint(1, 50)
        elif kind == 3 and random.random() < 0.2:
            del changed[start:]
        elif kind == 4:
            changed[start:end] = random.randbytes(end - start)
        else:
            changed[start:end] = random.choice(HOSTILE)
    return bytes(changed)


class Folder(NamedTuple):
    """Whole files of every kind."""

    path: Path
    run: Run
    system: System


@pytest.fixture(scope="module")
def folder(module_path):
    run = make_toy_run(module_path / "run")
    run.write_environment("cpu")
    shutil.copy(run.config_path, module_path / "own.yaml")
    write_tensors(
        module_path / "small.safetensors",
        {"a": torch.ones(3, 2), "b": torch.zeros(1)},
        {"x": [1, None]},
    )
    system = System("run", [run], device="cpu")
    translate_set(system, EvaluationSet("test", [], []), hyps_dir=run.hyps_dir)
    line = '{"event": "validation", "update": 1, "bleu": 1.5, "perplexity": 9.25}\n'
    run.metrics_path.write_text(line * 5)
    np.save(module_path / "a.npy", np.ones((3, 2)))
    np.savez_compressed(module_path / "a.npz", x=np.ones((3, 2)))
    (module_path / "a.links").write_text("0-0 1-2 2-1\n\n3-3\n")
    (module_path / "a.vec").write_text("2 3\nHund 1 2 3\nKatze 1e-3 -0.5 7\n")
    (module_path / "a.txt").write_text("Ein Hund\nŁódź – „ja“\n")
    for name in ("run", "run/hyps", "."):  # a file that it does not list is not checked
        (module_path / name / MANIFEST).write_text("{}")
    return Folder(module_path, run, system)


def read_own_text(folder, path):
    for languages in (("de", "en"), (None, None)):
        text = find_text(str(path), *languages, columns=["1", "2"])
        for _ in text.pairs():
            pass


def read_input(folder, path):
    with open_input(str(path)) as stream:
        for _ in read_chunks(stream, str(path)):
            pass


def read_links(folder, path):
    for number, line in enumerate(iter_lines(path), 1):
        check_links(path, number, line, 4, 4)


def read_tokenizer(folder, path):
    Run(folder.run.path).source_tokenizer.tokenize("Ein Hund")


def reuse(folder, path):
    translate_set(folder.system, EvaluationSet("test", [], []), reuse_hypotheses=True)


READERS = {
    "own.yaml": lambda folder, path: load_config([str(path)]),
    "run/config.yaml": lambda folder, path: Run(folder.run.path).config,
    "run/source.vocab": lambda folder, path: Vocab.load(path),
    "run/source.tokenizer.json": read_tokenizer,
    "run/source.sentencepiece.model": read_tokenizer,
    "run/finished.json": lambda folder, path: Run(folder.run.path).finished_at(),
    "run/environment.json": lambda folder, path: Run(folder.run.path).environment,
    "run/corpus.json": lambda folder, path: Run(folder.run.path).line_facts,
    "run/manifest.json": lambda folder, path: check_files(folder.run.path, prefix="finished"),
    "run/metrics.jsonl": lambda folder, path: Run(path.parent).validations,
    "run/hyps/test.json": reuse,
    "run/hyps/test.txt": reuse,
    "small.safetensors": lambda folder, path: read_tensors(path),
    "a.npy": lambda folder, path: read_vectors(str(path)),
    "a.npz": lambda folder, path: read_vectors(f"{path}:x"),
    "a.links": read_links,
    "a.vec": lambda folder, path: read_word_vectors(
        path, ["Hund", "hund", "Katze"], vector_size(path)
    ),
    "a.txt": read_input,
    "pairs": read_own_text,
}
NUM_MUTATIONS = {
    **dict.fromkeys(READERS, 12_000),
    **dict.fromkeys(
        ("own.yaml", "run/config.yaml", "run/hyps/test.json", "run/hyps/test.txt"), 4_000
    ),
    "pairs": 16_000,
}
"""in the slow tier: the slower readers have fewer"""
FORGIVING = {
    "a.txt",
    "run/finished.json",
    "run/metrics.jsonl",
    "run/hyps/test.json",
    "run/hyps/test.txt",
}
"""what is damaged in these is left out, with a warning"""


def whole_files(path, random):
    """The content of a file, again and again; where there is none, that of generated tables."""
    content = path.read_bytes() if path.exists() else None
    while True:
        lines, _ = table(make_pairs(random)[:9], random)
        text = content or lines.encode(random.choice(["utf-8", "utf-16", "cp1252"]))
        if content is None and random.random() >= 0.7:
            text = random.choice([*DECOMPRESS])(text)
        yield text


@pytest.mark.parametrize("share", [0.002, pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", READERS)
def test_every_reader_refuses_in_one_line(folder, monkeypatch, name, share):
    path = folder.path / name
    random = Random(name)
    before = path.read_bytes() if path.exists() else None
    files = whole_files(path, random)

    def read(**options):
        READERS[name](folder, path)
        return 0

    monkeypatch.setattr(cli, "app", read)
    monkeypatch.setattr(gc, "freeze", lambda: None)  # would keep the garbage of every command
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = set()
    for number in range(int(share * NUM_MUTATIONS[name])):
        content = mutate(next(files), random)
        path.write_bytes(content)
        began_at = time.monotonic()
        err = io.StringIO()
        with redirect_stderr(err):
            code = run_command(["read"])
        shown = err.getvalue()
        context = f"{name}, mutation {number}: {shown!r}, {content[:2_000]!r}"
        outcomes.add(code)
        assert ("\n" + shown).count("\nerror: ") == (code != 0), context
        assert code in (0, 1, 2), context
        assert "unexpected error" not in shown, context
        assert not ACTED_ON.search(shown), context
        assert time.monotonic() - began_at < MAX_S, context
    assert outcomes & ({0} if name in FORGIVING else {1, 2}), outcomes
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kib < MAX_GROWTH_MIB << 10
    path.unlink() if before is None else path.write_bytes(before)
