"""Write a web page in which a run translates, or two runs side by side.

The page is one file, with the graphs and parameters of the models, the tokenizers, and the
interpreter of the graphs.
"""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.export.model_graphs import export_graphs
from seq2seq_attn.export.program import WeightFormat, write_program
from seq2seq_attn.export.tokens import describe_run
from seq2seq_attn.files import ListedFiles, write_text
from seq2seq_attn.report.template import fill_page
from seq2seq_attn.run import Run
from seq2seq_attn.text.captions import find_captions
from seq2seq_attn.text.languages import short_code
from seq2seq_attn.text.lines import read_lines
from seq2seq_attn.text.tokenizers.base import SIDES

NUM_SENTENCES = 24
"""number of test sentences that the page's slider offers, from short to long"""
WORDS_PER_GROUP = 3
"""number of sentence lengths that share a point of the accuracy curve"""
_WEB = Path(__file__).parent / "web"
_SCRIPTS = ("interpreter.js", "detokenize.js", "tokens.js", "search.js", "page.js")


def export_page(runs: Sequence[Run], path: Path, weight_format: WeightFormat = "int16") -> None:
    """Write a page with the best model of each run.

    Raises:
        UserError: a file of a run is missing or damaged.
        UsageError: a model cannot be exported, the page does not support a tokenizer, or the runs
            differ in their languages.
    """
    described = [_describe(run, weight_format) for run in runs]
    title = ", ".join(run.path.resolve().name for run in runs)
    languages = set()
    for run in described:
        languages.add(tuple(short_code(run[side]["language"]) for side in SIDES))
    if len(languages) > 1:
        raise UsageError(
            f"{title}: these runs translate different languages; export a page for each"
        )
    kernel = base64.b64encode((_WEB / "kernel.wasm").read_bytes()).decode("ascii")
    pairs = _test_pairs(runs[0])
    by_length = sorted(pairs, key=lambda pair: len(pair[0]))
    sentences = []
    for number in range(NUM_SENTENCES if pairs else 0):
        sentences.append(by_length[number * (len(pairs) - 1) // (NUM_SENTENCES - 1)])
    payload = {
        "title": title,
        "kernel": kernel,
        "runs": described,
        "accuracy": _accuracy(runs, pairs),
        "sentences": sentences,
    }
    write_text(path, fill_page(_WEB, title, ["page.css"], _SCRIPTS, payload), is_named=True)


def _describe(run: Run, weight_format: WeightFormat) -> dict[str, Any]:
    """Return everything that the page knows of a run, as plain JSON."""
    config = run.config
    model, _ = run.load_model(config.model)
    written = write_program(export_graphs(model), weight_format)
    step = written["program"]["step"]
    # The second output holds the attention weights. If no operation reads them, they are a mean
    # over heads that is only shown, and forcing them would have no effect.
    weights = json.dumps({"$": step["outputs"][1]})
    can_force = model.has_attention and weights in json.dumps(step["nodes"])
    kind = f"{config.model.attention.name} attention" if model.has_attention else "one vector"
    title = f"{run.path.resolve().name}: {kind}"
    about = {"title": title, "has_attention": model.has_attention, "can_force": can_force}
    return {**about, **written, **describe_run(run)}


def _test_pairs(run: Run) -> list[tuple[str, str]]:
    """Return the test pairs of the embedded captions, or no pairs for another corpus."""
    data = run.config.data
    if data.corpus != "captions":
        return []
    files = find_captions(None, data.source_language, data.target_language)["test"]
    pairs = list(zip(read_lines(files.source), read_lines(files.target), strict=True))
    return pairs[: data.limit.test]


def _accuracy(runs: Sequence[Run], pairs: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return a point of the accuracy curve for each group of test sentences of similar length.

    `length` is the mean length of the group's sources in words. `shares` has, for each run, the
    share of translations that equal the reference. There are no points unless `evaluate` has saved
    the translations of all runs.
    """
    try:
        contents = [ListedFiles(run.hyps_dir).read("test.txt") for run in runs]
    except UserError:
        return []
    saved = [content.decode().splitlines() for content in contents]
    if not pairs or any(len(lines) != len(pairs) for lines in saved):
        return []
    lengths = np.array([len(source.split()) for source, _ in pairs])
    references = np.array([reference for _, reference in pairs], dtype=object)
    is_correct = np.array(saved, dtype=object) == references
    groups = lengths // WORDS_PER_GROUP
    points = []
    for group in np.unique(groups):
        is_inside = groups == group
        shares = is_correct[:, is_inside].mean(axis=1).tolist()
        points.append({"length": lengths[is_inside].mean(), "shares": shares})
    return points
