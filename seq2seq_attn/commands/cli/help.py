"""How `--help` shows a command: options in groups, without Python types."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

GROUPS = {
    "Text": "train_text valid_text test_text links source_language target_language data_dir source_dir "
    "input split source target reference concatenate",
    "Settings": "config settings vary seeds seed dump_config imports",
    "Run": "run run_dir resume overwrite",
    "Search": "beam_size n_best length_penalty coverage_penalty no_repeat_ngram max_length_ratio unk prefix ensemble",
    "Samples": "method num_samples temperature top_k top_p",
    "Scores": "metric by_length length_of length_in merge_below no_attention",
    "Output": "output format alignment attention full json report plots csv latex",
    "Machine": "device precision batch_size at_once reuse_hypotheses",
    "Other options": "debug help",
}
"""groups of options, in the order of the help; the values are names of the commands' parameters"""


class GroupedCommand(TyperCommand):
    """A command whose help lists its options by `GROUPS`, or by an option's own `rich_help_panel`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then a section per group."""
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{group: [] for group in GROUPS}}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:  # a hidden option
                rows[_group(parameter)].append(_plain(*record))
        for group, options in rows.items():
            if options:
                with formatter.section(group):
                    formatter.write_dl(options)


def _group(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "Arguments"
    if parameter.rich_help_panel:
        return str(parameter.rich_help_panel)
    return next((group for group, names in GROUPS.items() if parameter.name in names.split()), "Other options")


def _plain(names: str, text: str) -> tuple[str, str]:
    """A help record without the Python type, and with every default outside of parentheses."""
    text = re.sub(r"\[default: \((.*)\)(?=[];])", r"[default: \1", text)
    return re.sub(r" <[^ ]+>$", "", names), text
