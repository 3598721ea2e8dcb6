"""Write a web page in which the reader's browser translates with a run, or with two runs side by
side.

The page is a single file, with the graphs and parameters of the models, the tokenizers, and the
interpreter of the graphs.
"""

import base64
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.errors import UsageError
from seq2seq_attn.export.accuracy import kept_values
from seq2seq_attn.export.model_graphs import export_graphs
from seq2seq_attn.export.program import WeightFormat, write_program
from seq2seq_attn.export.tokens import describe_run
from seq2seq_attn.files import write_text
from seq2seq_attn.report.html import WEB as REPORT_WEB
from seq2seq_attn.report.template import fill_page
from seq2seq_attn.run import Run
from seq2seq_attn.translate.load import find_languages

log = logging.getLogger(__name__)

WEB = Path(__file__).parent / "web"
_STYLES = (REPORT_WEB / "colors.css", REPORT_WEB / "heat.css", "page.css")
SCRIPTS = (
    REPORT_WEB / "elements.js",
    REPORT_WEB / "heat.js",
    REPORT_WEB / "compare.js",
    "interpreter.js",
    "detokenize.js",
    "tokens.js",
    "sentences.js",
    "unknown.js",
    "search.js",
    "lines.js",
    "state.js",
    "figure.js",
    "curve.js",
    "explain.js",
    "page.js",
)


def export_page(runs: Sequence[Run], path: Path, weight_format: WeightFormat = "int16") -> None:
    """Write a page with the best model of each run.

    Raises:
        UserError: a file of a run is missing or damaged.
        UsageError: a model cannot be exported, the page does not support a tokenizer, or the runs
            differ in their languages.
    """
    title = ", ".join(run.path.resolve().name for run in runs)
    if len(set(map(find_languages, runs))) > 1:
        raise UsageError(
            f"{title}: these runs translate different languages; export a page for each"
        )
    kernel = base64.b64encode((WEB / "kernel.wasm").read_bytes()).decode("ascii")
    payload = {
        "title": title,
        "kernel": kernel,
        "runs": [_describe(run, weight_format) for run in runs],
        **kept_values(runs),
    }
    text = fill_page(WEB, title, _STYLES, SCRIPTS, payload, script_sources=" 'wasm-unsafe-eval'")
    write_text(path, text, is_named=True)


def _describe(run: Run, weight_format: WeightFormat) -> dict[str, Any]:
    """Return the model, tokenizers and settings of a run as plain JSON."""
    config = run.config
    model, _ = run.load_model(config.model)
    for option in ("method", "coverage_penalty", "no_repeat_ngram", "scorers", "prefix"):
        value = getattr(config.search, option)
        if value != SearchConfig.model_fields[option].default:
            log.warning("%s: the page searches without search.%s=%s", run.path, option, value)
    written = write_program(export_graphs(model), weight_format)
    step = written["program"]["step"]
    # The second output holds the attention weights. The page can replace them by weights that the
    # reader chooses, unless no operation reads them: then they are a mean over heads, for display.
    weights = json.dumps({"$": step["outputs"][1]})
    can_force = model.has_attention and weights in json.dumps(step["nodes"])
    kind = f"{config.model.attention.name} attention" if model.has_attention else "one vector"
    name = run.path.resolve().name
    about = {
        "name": name,
        "title": f"{name}: {kind}",
        "has_attention": model.has_attention,
        "can_force": can_force,
    }
    return {**about, **written, **describe_run(run)}
