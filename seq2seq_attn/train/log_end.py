"""Log the end of a training run: the scores in words, advice on settings, and the next commands.

Scores are those of the validation set, so the words hold for any language and kind of text.
"""

import json
import logging
import math
import shlex
from collections.abc import Sequence

from seq2seq_attn.config import Config
from seq2seq_attn.files import JsonObject
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.run import Run
from seq2seq_attn.train.checkpoint import perfect_score

MEMORIZED = 0.25
"""A model has memorized its training text if the loss in training, which includes dropout, is
less than this share of the loss in validation. The share was 0.04 for letters to sounds, trained on
3,600 words (docs/own-text.md)."""
IMPROVING = 0.02
"""A score still improves if the change in the last quarter of training is more than this share of
the score."""
USELESS = 10.0
"""A model is unusable if its score, on a scale from 0 to 100, is less than this."""
USELESS_ERROR = 50.0
"""A model is unusable if its error rate in percent is more than this."""
_WORD_ORDER = ((0.05, "hardly any"), (0.15, "little"), (0.4, "part"), (0.995, "most"), (1, "all"))
"""How much of the references' word order the translations have. Each entry has the upper limit of a
share and the word for shares up to this limit. The share is that of the translations' sequences of
four words, the longest of BLEU, which also occur in the references."""

log = logging.getLogger(__name__)


def log_end(run: Run, config: Config, copied_bleu: float | None) -> None:
    """Log the scores of the saved model on the validation set, advice on settings, and the next
    commands.

    Args:
        copied_bleu: BLEU of the untranslated source; None if a source line is not a single text.
    """
    lines = run.metrics_path.read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    validations = [event for event in events if event["event"] == "validation"]
    best: JsonObject = {}
    for validation in validations:
        if validation.get("is_best"):
            best = validation
    if best.get("bleu") is None:
        return  # nothing was validated, or the run is a language model
    metric = config.train.validation.metric
    has_exact = "exact" in best
    main_metric = "exact" if has_exact else "bleu"
    for name in dict.fromkeys([main_metric, metric]):
        if name in METRICS:  # perplexity is not
            log.info(_describe_metric(name, validations, best))
    if best.get("ngram_shares") and not has_exact:
        log.info(describe_word_order(best["ngram_shares"]))
    if copied_bleu is not None and not has_exact:
        log.info(
            "for comparison: the source text itself, not translated, has BLEU %.1f", copied_bleu
        )
    losses = [event["nll"] for event in events if event["event"] == "train"]
    last_values = [validations[-1]["perplexity"], *losses[-1:]]
    if None not in last_values:  # None stands for a number that was not finite
        longer = _longer_training(config, events[-1])
        advice = describe_fit(losses, validations, best[metric], metric, longer)
        if advice:
            log.info(advice)
    log.info("next:")
    for command in next_commands(run, config, best):
        log.info("  %s", command)


def describe_fit(
    losses: Sequence[float],
    validations: Sequence[JsonObject],
    best_score: float,
    metric: str,
    longer: str,
) -> str | None:
    """Describe what limits the score: training that was too short, or a training text that is
    memorized. Return None if neither limits the score and the model is usable.

    Args:
        losses: mean negative log-likelihoods of target tokens in training, oldest first.
        validations: the validations, oldest first.
        best_score: the score of the saved model by `metric`.
        longer: the options of the command that trains longer.
    """
    last = validations[-1]
    early = [line[metric] for line in validations if line["update"] <= 0.75 * last["update"]]
    is_useless = _is_useless(best_score, metric)
    if best_score == perfect_score(metric):
        return None
    if early and metric in METRICS and last.get("is_best") and not is_useless:
        best_early = min(early) if METRICS[metric].is_lower_better else max(early)
        gain = abs(last[metric] - best_early)  # never a loss, because the last score is the best
        if gain > IMPROVING * max(best_early, last[metric]):
            return (
                f"the score still improved at the end ({best_early:.1f} {METRICS[metric].title} "
                f"before the last quarter of the updates, {last[metric]:.1f} at the end): train "
                f"longer, with {longer}"
            )
    if losses and losses[-1] < MEMORIZED * math.log(last["perplexity"]):
        return (
            f"the model has memorized the training text (perplexity {math.exp(losses[-1]):.2f} in "
            f"training, {last['perplexity']:.2f} in validation): more updates do not help; add "
            "pairs, or raise dropout with --set model.dropout.embedding, model.dropout.readout"
        )
    if is_useless:
        return (
            "this model is not usable yet: train longer, without limits of your own, or with at "
            f"least {longer}; if the score does not rise, more pairs help"
        )
    return None


def _is_useless(score: float, metric: str) -> bool:
    """Return whether a score is too low for a model of use. Return False for a metric from outside
    the package, whose scale is unknown."""
    if metric not in METRICS or ":" in metric:
        return False
    return score > USELESS_ERROR if METRICS[metric].is_lower_better else score < USELESS


def _longer_training(config: Config, end: JsonObject) -> str:
    """Return the options that make the training about twice as long. `end` is the event that
    records the end of training."""
    train = config.train
    settings = []
    if train.max_minutes:
        settings.append(f"train.max_minutes={2 * train.max_minutes:g}")
    if "max_minutes" not in end["reason"]:
        num_updates = max(2 * end["update"], train.max_updates or 0)
        settings.append(f"train.max_updates={num_updates}")
        if train.max_epochs:
            settings.append("train.max_epochs=null")
    if "patience" in end["reason"]:
        settings.append("train.validation.patience=null")
    return "--set " + " --set ".join(settings)


def _describe_metric(name: str, validations: Sequence[JsonObject], best: JsonObject) -> str:
    """Describe the score of the saved model and the scores of the first and last validation."""
    metric = METRICS[name]
    first, last = validations[0], validations[-1]
    return (
        f"validation {metric.title} ({metric.about}): {best[name]:.1f} for the saved model; "
        f"{first[name]:.1f} at the first validation, {last[name]:.1f} at the last"
    )


def describe_word_order(shares: Sequence[float]) -> str:
    """Describe how many words and sequences of four words of the translations occur in the
    references.

    Args:
        shares: The share of the translations' sequences of N words that occur in the references,
            for N from 1 to 4.
    """
    word_share, *_, longest_share = shares
    amount = next(text for limit, text in _WORD_ORDER if longest_share <= limit)
    return (
        f"of 100 words of the translations, {100 * word_share:.0f} are in the reference; of 100 "
        f"sequences of four words, {100 * longest_share:.0f}: {amount} of the word order is that "
        "of the references"
    )


def next_commands(run: Run, config: Config, validation: JsonObject) -> list[str]:
    """Return the commands that translate a sentence of the validation set, evaluate the run, and
    write a page with all translations.

    Args:
        validation: A validation, whose first sample is the sentence. Without samples, or if a
            source line is not a single text, no command translates.
    """
    path = shlex.quote(str(run.path))
    commands = []
    samples = validation.get("samples")
    if samples and config.data.layout.is_one_text:
        sentence = samples[0]["source"]
        end_of_options = "-- " if sentence.startswith("-") else ""
        commands.append(f"seq2seq translate --run {path} {end_of_options}{shlex.quote(sentence)}")
    split = "" if len(run.splits) > 1 else " --split valid"  # one split is the validation set
    evaluate = f"seq2seq evaluate {path}{split}"
    return [*commands, evaluate, f"{evaluate} --report report.html"]
