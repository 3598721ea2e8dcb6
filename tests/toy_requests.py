"""Evaluation and translation with little work: few resamples, no GPU, one run or several."""

from pathlib import Path

import seq2seq_attn
from seq2seq_attn.api.translate import translate_lines
from seq2seq_attn.metrics.significance import Resampling

QUICK = Resampling(num_resamples=50)


def evaluate(runs, **options):
    """Evaluate with the options of `seq2seq_attn.evaluate`."""
    return seq2seq_attn.evaluate(runs, **{"resampling": QUICK, "device": "cpu", **options})


def run_evaluate(folder, *names, **options):
    """Evaluate runs that lie in a folder."""
    return evaluate([folder / name for name in names], **options)


def translate_and_score(folder, *names, **options):
    """Evaluate runs by BLEU alone, for tests of files."""
    return run_evaluate(folder, *names, **{"metric": ["bleu"], "no_attention": True, **options})


def translate(
    texts=(),
    *,
    run=None,
    input=None,
    attention=None,
    output="-",
    **options,
):
    """Translate by one run, from one file, with one file of attention."""
    if isinstance(input, str | Path):
        input = [str(input)]
    one = {"run": run, "attention": attention and Path(attention)}
    lists = {name: [value] for name, value in one.items() if value is not None}
    translate_lines(
        texts, **{"device": "cpu", "input": input or [], **lists, **options}, output=str(output)
    )
