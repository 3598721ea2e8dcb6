"""From the records of the bench to docs/attention.md and docs/mechanisms.md. Needs the standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from scripts.laboratory.harness.pages import interval_cell, mean_cell, percent, table
from scripts.laboratory.harness.records import ROOT, Record, load_records
from scripts.mechanism_bench.guide import render_guide
from scripts.mechanism_bench.plan import BASELINE_ROW, CAPTIONS, FOLDER, MULTI30K, Row, all_rows
from scripts.mechanism_bench.summary import MAX_LOSS, Summary, loss_and_reason, summaries

PAGE, GUIDE = ROOT / "docs" / "attention.md", ROOT / "docs" / "mechanisms.md"
OF_EACH_SEED = ("seed", "minutes", "validation_bleu", "validation_perplexity")
TRAINING_HEADER = ("seeds", "minutes", "validation BLEU", "validation perplexity")
OF_ALL_SEEDS = ("updates", "precision", "commit")
"""columns of the tables of training runs"""
INTRODUCTION = f"""\
# Every mechanism on the same bench

Written by `scripts/mechanisms` from `docs/records/mechanisms`. Each row is `seq2seq train -c {CAPTIONS} -c ROW`: the
embedded corpus of German-English captions, ten epochs, one overlay. `encoder/convolutional` also takes attention
`key_value`, `objective/reinforce` also `hard`, and `cell/` changes encoder and decoder. Rows with options have a
suffix; [How the rows were trained](#how-the-rows-were-trained) has every command. [Mechanisms](mechanisms.md) explains
the rows and shows the attention of most.

- All rows use `{CAPTIONS}`'s learning rate, dropout and number of updates; none of these was tuned for its row. The
  depth of `encoder/convolutional` and the start of some objectives were chosen in trials on captions.
- Rows differ in size. `attention/additive` is `{CAPTIONS}` itself, with a scoring layer of 96 units. Other attentions
  with such a layer use the default, the decoder's 160 units, as does `attention/additive-160`; `attention/multi_head`
  has 192, as wide as the encoder's states. `attention/dot` needs a decoder of that width. On Multi30k all scoring
  layers have 192 units except that of `attention/additive-160`.
- Speed is that of training, in target tokens per second of CPU time on one thread, divided by that of
  `attention/additive`; both make the same updates in turns. Brackets are the 95 % confidence interval of the median
  over turns.{{measured}} The baseline has hand-written training
  code (`seq2seq_attn/model/fast`), which gains more in bf16
  ([by how much](speed/README.md#what-each-piece-of-speed-code-is-worth)). So have the attentions `bilinear`, `dot`,
  `scaled_dot`, `key_value`, `slots`, `fixed`, `initial` and `uniform`, and the decoder `conditional`. Other attentions,
  normalizers and cells, and the decoder `luong`, have none; in fp32 they are not as far behind.
- BLEU is cased, on the test set, with beam search: the mean over seeds ± their standard deviation. A single seed has
  its 95 % bootstrap interval over sentences, which says nothing about other seeds.
- AER is the alignment error rate against gold links, in forced decoding: the model reads the reference, as in
  training, instead of writing a translation of its own. Each target word is linked to the source word of its largest
  weight, or to the first of them where weights tie, as with `attention/uniform`; target words without a gold link
  count as errors. A decoder may attend to a word one step before or after translating it: the column "AER, best
  shift" has the lowest of three rates, with the weights of the same step (0), the step before (-1) and the step after
  (+1).
- Error, next word: among target words whose source word directly follows the previous target word's, the share whose
  largest weight is on a wrong word. Error, jump: the same for all other words. Neither counts the first word.
- Entropy is that of the weights, in nats per target token: the lower, the sharper. It is 0 by construction for
  `attention/hard` and `attention/monotonic`; `objective/reinforce` has that of the probabilities it draws from.
  Dropped and repeated are the shares of source words whose weights, summed over a translation, are below 0.2 and
  above 2. The weights of `attention/multi_head` are the mean over its heads.
- Multi30k is greedy BLEU on its validation set (natural text), after training with `-c {MULTI30K}` in place of
  `{CAPTIONS}`: three epochs, so it also shows how fast a mechanism learns. A row without ± has one seed: a difference
  of one BLEU may be chance.
- An empty cell was not measured, or the row has no attention over source positions."""


def documents() -> Iterator[tuple[Path, str]]:
    """Path and wanted text of both pages."""
    found = summaries(load_records(FOLDER))
    yield PAGE, render_page(found)
    yield GUIDE, render_guide(found)


def render_page(found: dict[str, Summary]) -> str:
    """docs/attention.md."""
    measured = [row for row in all_rows() if row.name in found]
    parts = [INTRODUCTION.format(measured=_measured(found.values())), "\n".join(_main_table(measured, found))]
    scored = [row for row in measured if found[row.name].bleu]
    if scored:
        parts += ["## BLEU by source length", "\n".join(_length_table(scored, found))]
        parts += _losses(scored, found)
        parts += ["## How the rows were trained", "\n".join(_training_table(scored, found)), _provenance(scored, found)]
    if on_multi30k := [row for row in measured if found[row.name].multi30k]:
        parts += [f"With `-c {MULTI30K}` in place of `-c {CAPTIONS}`:", "\n".join(_multi30k_table(on_multi30k, found))]
    if missing := [f"`{row.name}`" for row in all_rows() if row not in scored]:
        parts.append(f"Not trained yet: {', '.join(missing)}.")
    return "\n\n".join(parts) + "\n"


def _main_table(rows: Sequence[Row], found: dict[str, Summary]) -> list[str]:
    header = [
        "row",
        "parameters",
        "speed",
        "BLEU",
        "seeds",
        "AER",
        "AER, best shift",
        "error, next word",
        "error, jump",
        "entropy",
        "dropped",
        "repeated",
        "Multi30k",
    ]
    return table(header, [_main_row(row, found[row.name]) for row in rows])


def _main_row(row: Row, one: Summary) -> list[str]:
    return [
        f"`{row.name}`",
        "" if one.parameters is None else f"{one.parameters:,}",
        "1" if row == BASELINE_ROW else _speed(one.speed),
        _bleu(one),
        str(len(one.bleu) or ""),
        percent(one.error_rates.get(0)),
        _best_shift(one.error_rates),
        percent(one.move_error("next")),
        percent(one.move_error("jump")),
        "" if (entropy := one.mean("entropy")) is None else f"{entropy:.2f}",
        percent(one.mean("dropped")),
        percent(one.mean("repeated")),
        mean_cell(one.multi30k_bleu),
    ]


def _bleu(one: Summary) -> str:
    if len(one.captions) == 1:
        [run] = one.captions
        return interval_cell(run, key="bleu")
    return mean_cell(one.bleu)


def _best_shift(error_rates: dict[int, float]) -> str:
    """The lowest error rate, with its shift."""
    if not error_rates:
        return ""
    shift = min(error_rates, key=lambda one: error_rates[one])
    return f"{percent(error_rates[shift])} ({shift:+d})" if shift else f"{percent(error_rates[0])} (0)"


def _measured(found: Iterable[Summary]) -> str:
    """The turns, hardware and precision of the measurements of speed; nothing without any."""
    speeds = [one.speed for one in found if one.speed]
    if not speeds:
        return ""
    hardware = _values([speed["environment"] for speed in speeds], "device_name")
    precision, turns = (_values(speeds, key) for key in ("precision", "turns"))
    return f" It was measured in {turns} turns on {hardware}, in {precision}, though most rows were trained in fp32."


def _speed(speed: Record | None) -> str:
    return "" if speed is None else interval_cell(speed, key="ratio", digits=2)


def _length_table(rows: Sequence[Row], found: dict[str, Summary]) -> list[str]:
    first = found[rows[0].name].by_length
    header = ["row", *(f"{label} (n {num_pairs})" for label, (num_pairs, _) in first.items())]
    cells = [[f"{found[row.name].by_length[label][1]:.1f}" for label in first] for row in rows]
    return table(header, [[f"`{row.name}`", *of_row] for row, of_row in zip(rows, cells, strict=True)])


def _losses(rows: Sequence[Row], found: dict[str, Summary]) -> list[str]:
    """The rows that lose more than `MAX_LOSS`, with the reason."""
    if BASELINE_ROW not in rows:
        return []
    lost = ((row, loss_and_reason(row, found)) for row in rows)
    lines = [f"- `{row.name}`, {loss[0]:.1f} below: {loss[1]}." for row, loss in lost if loss]
    title = f"## More than {MAX_LOSS:g} BLEU below `{BASELINE_ROW.name}`"
    return [title, "\n".join(lines) if lines else "No row."]


def _training_table(rows: Sequence[Row], found: dict[str, Summary]) -> list[str]:
    cells = [[f"`{row.command}`", *_training(found[row.name].captions, OF_ALL_SEEDS)] for row in rows]
    return table(["command", *TRAINING_HEADER, *OF_ALL_SEEDS], cells)


def _multi30k_table(rows: Sequence[Row], found: dict[str, Summary]) -> list[str]:
    keys = ("parameters", *OF_ALL_SEEDS, "hardware")
    cells = [[f"`{row.name}`", *_training(found[row.name].multi30k, keys)] for row in rows]
    return table(["row", *TRAINING_HEADER, *keys], cells)


def _training(runs: Sequence[Record], keys: Sequence[str]) -> list[str]:
    """The cells under `TRAINING_HEADER`, then those of `keys`."""
    return [
        *(", ".join(str(run[key]) for run in runs) for key in OF_EACH_SEED),
        *(_values(runs, k) for k in keys),
    ]


def _values(runs: Sequence[Record], key: str) -> str:
    """The different values of some runs."""
    return ", ".join(dict.fromkeys(str(run[key]) for run in runs))


def _provenance(rows: Sequence[Row], found: dict[str, Summary]) -> str:
    """The value that all rows share, or else the different values."""
    runs = [run for row in rows for run in found[row.name].captions]

    search = {f"beam {run['search']['beam_size']}" for run in runs}
    signature, num_pairs, hardware, torch = (
        _values(runs, key) for key in ("signature", "num_pairs", "hardware", "torch")
    )
    return (
        f"`{signature}`, n = {num_pairs}, {', '.join(sorted(search))}; one thread of {hardware}, torch {torch}. "
        "Minutes are wall time of training with its validations, on a machine that did other work too."
    )
