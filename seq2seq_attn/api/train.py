"""Prepare a corpus and train a run, from Python and for `seq2seq prepare` and `seq2seq train`."""

from pathlib import Path
from typing import Unpack

from seq2seq_attn.api.settings import ConfigNames, OwnText, find_layers
from seq2seq_attn.config import Config, load_config, with_default
from seq2seq_attn.config.load import Settings
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.sources import split_names
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError
from seq2seq_attn.run import Run
from seq2seq_attn.train.session import OnValidation, load_settings, newest_unfinished

CORPUS_CONFIGS = {"multi30k": "multi30k", "captions": "quickstart"}
"""The packaged configuration that prepares each named corpus."""


def train_model(
    config: ConfigNames = None,
    settings: Settings | None = None,
    *,
    from_run: str | Path | None = None,
    run_dir: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    on_validation: OnValidation | None = None,
    **text: Unpack[OwnText],
) -> Run:
    """Train a model as `seq2seq train` does. Return the run, whose `path` is its directory.

    >>> settings = {"seed": 2, "train.max_updates": 2}
    >>> train_model(["quickstart", "attention/bilinear"], settings, run_dir="runs/bilinear")
    Run('runs/bilinear')

    >>> rows = "".join(f"{number} dogs\\t{number} chiens\\n" for number in range(200))
    >>> with open("train.tsv", "w") as file: _ = file.write(rows)
    >>> settings = {"data.columns": [1, 2], "train.max_updates": 2}
    >>> text = {"train_text": "train.tsv", "source_language": "en", "target_language": "fr"}
    >>> train_model(settings=settings, run_dir="runs/en-fr", **text)
    Run('runs/en-fr')

    Args:
        config: packaged configurations or YAML files; a later file overrides an earlier file.
            None means `multi30k`, or the configuration of the run if `resume` is true.
        settings: single settings by dotted key, as `--set` takes them; the value None means `null`.
        from_run: a run to fine-tune on `train_text`, as `--from` does.
        run_dir: the directory of the run; None means `runs/<date>-<configuration>-s<seed>`.
        resume: continue the run in `run_dir`, or the newest unfinished run, from its last state.
        overwrite: replace the run in `run_dir`.
        on_validation: called after each validation with the update and the scores by name, such as
            `bleu`. Training stops there if it returns True; after an exception, training can be
            resumed. With `Run.score`, it serves a search of settings.
        text: your own parallel text, as the command takes it. `train_text`, `valid_text` and
            `test_text` are each a prefix, a table, or a list of source file and target file;
            `source_language` and `target_language` are language codes.

    Raises:
        UsageError: the arguments contradict each other, or a setting is not valid.
        UserError: a file or run cannot be read or written, or training fails.
    """
    chosen, path = find_run(config, settings, from_run, run_dir, resume=resume, **text)
    # The loop is imported after the checks, so that mistakes are reported before torch is imported.
    from seq2seq_attn.train.loop import train

    return train(
        chosen, run_dir=path, resume=resume, overwrite=overwrite, on_validation=on_validation
    )


def find_run(
    config: ConfigNames = None,
    settings: Settings | None = None,
    from_run: str | Path | None = None,
    run_dir: str | Path | None = None,
    *,
    resume: bool = False,
    **text: Unpack[OwnText],
) -> tuple[Config, Path | None]:
    """Return the configuration of a run and its directory. The arguments are as in `train_model`.

    A resumed run keeps its configuration. The directory is None if a new directory is to be made.
    """
    path = None if run_dir is None else Path(run_dir)
    if resume and path is None:
        path = newest_unfinished()
    # A run that `resume` names may not have begun, as in `compare`. It has no configuration yet.
    has_config = path is not None and Run(path).config_path.exists()
    layers = find_layers(
        config,
        settings,
        text,
        from_run=None if from_run is None else Path(from_run),
        resumed=path if resume and has_config else None,
    )
    chosen = load_settings(layers.config_names, *layers.settings, run_dir=path, resume=resume)
    return chosen, path


def prepare(
    corpus: str | None = None,
    *,
    config: ConfigNames = None,
    settings: Settings | None = None,
    **text: Unpack[OwnText],
) -> PreparedCorpus:
    """Read, check and tokenize a corpus, and return the prepared corpus.

    The corpus is `multi30k` or `captions` by name, the corpus of a configuration, or a text of the
    user. `config`, `settings` and `text` are as in `train_model`.

    Raises:
        UsageError: settings are not valid, or a corpus is named besides a text or a configuration.
        UserError: the corpus cannot be read, downloaded or written.
    """
    if corpus is not None:
        if config or "train_text" in text:
            raise UsageError(f"{corpus!r}: name a corpus, or give --train or --config, not both")
        if corpus not in CORPUS_CONFIGS:
            raise UsageError(
                f"corpus {corpus!r}: expected {', '.join(CORPUS_CONFIGS)}; for a text of your own "
                "use --train TEXT, for other corpora -c CONFIG"
            )
        config = CORPUS_CONFIGS[corpus]
    layers = find_layers(config, settings, text)
    loaded = load_config(with_default(layers.config_names), *layers.settings)
    split_names(loaded.data)  # rejects an invalid corpus before anything is read
    return prepare_corpus(loaded)
