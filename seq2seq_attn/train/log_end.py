"""Log the end of a training run: what was reached, in words, and the commands to go on with.

The words are counts of the validation text, which are true for any text.
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

BY_HEART = 0.25
"""A model has learnt its training text by heart if the loss in training, which includes dropout, is
less than this share of the loss in validation. The share was 0.04 for 3,600 words and their
sounds."""
RISING = 0.02
"""A score still rises if it gains at least this share of itself in the last quarter of training."""
_WORD_ORDER = ((0.05, "hardly any"), (0.15, "little"), (0.4, "part"), (1.0, "most"))
"""How much of the references' word order the translations have, by the share of their sequences of
four words that the references have too. Sequences of four words are BLEU's longest."""

log = logging.getLogger(__name__)


def log_end(run: Run, config: Config, copied_bleu: float | None) -> None:
    """Log the scores of the saved model on the validation set, advice on settings, and the next
    commands.

    Args:
        copied_bleu: The result of `Validator.copied_bleu`.
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
    for name in dict.fromkeys(["exact" if has_exact else "bleu", metric]):
        if name in METRICS:
            log.info(_describe_metric(name, validations, best))
    if best.get("ngram_shares") and not has_exact:
        log.info(describe_word_order(best["ngram_shares"]))
    if copied_bleu is not None and not has_exact:
        log.info(
            "for comparison: the source text itself, not translated, has BLEU %.1f", copied_bleu
        )
    losses = [event["nll"] for event in events if event["event"] == "train"]
    has_diverged = validations[-1]["perplexity"] is None or None in losses[-1:]
    advice = None if has_diverged else describe_fit(losses, validations, metric)
    if advice is not None:
        log.info(advice)
    log.info("next:")
    for command in next_commands(run, config, best):
        log.info("  %s", command)


def describe_fit(
    losses: Sequence[float], validations: Sequence[JsonObject], metric: str
) -> str | None:
    """Describe what limits the score: training that was too short, or a training text that is
    learnt by heart. Return None if it is neither.

    Args:
        losses: mean negative log-likelihoods of target tokens in training.
        validations: the validations, oldest first.
    """
    last = validations[-1]
    num_updates = last["update"]
    before = [line for line in validations if line["update"] <= 0.75 * num_updates]
    if before and metric in METRICS:
        sign = -1 if METRICS[metric].is_lower_better else 1
        earlier = sign * max(sign * line[metric] for line in before)
        gain = sign * (last[metric] - earlier)
        if gain > RISING * max(earlier, last[metric]) and last.get("is_best"):
            return (
                f"the score still rose at the end ({earlier:.1f} {METRICS[metric].title} after "
                f"three quarters of the updates, {last[metric]:.1f} at the end): train longer, "
                f"with --set train.max_updates={2 * num_updates} --set train.max_epochs=null"
            )
    if losses and losses[-1] < BY_HEART * math.log(last["perplexity"]):
        return (
            f"the training text is learnt by heart (perplexity {math.exp(losses[-1]):.2f} in "
            f"training, {last['perplexity']:.2f} in validation): more pairs help, or more dropout, "
            "with --set model.dropout.embedding, model.dropout.readout; more updates do not"
        )
    return None


def _describe_metric(name: str, validations: Sequence[JsonObject], best: JsonObject) -> str:
    """Describe the score of the saved model, and of the first and the last validation."""
    metric = METRICS[name]
    first, last = validations[0], validations[-1]
    return (
        f"validation {metric.title} ({metric.about}): {best[name]:.1f} for the saved model; "
        f"{first[name]:.1f} at the first validation, {last[name]:.1f} at the last"
    )


def describe_word_order(shares: Sequence[float]) -> str:
    """Describe how many words, and sequences of four words, the references share with the
    translations.

    Args:
        shares: For sequences of one word to four words, the share that occurs in the reference.
    """
    words, *_, longest = shares
    amount = next(text for limit, text in _WORD_ORDER if longest <= limit)
    return (
        f"of 100 words of its translations, {100 * words:.0f} are in the reference; of 100 "
        f"sequences of four words, {100 * longest:.0f}: {amount} of the word order is that of the "
        "references"
    )


def next_commands(run: Run, config: Config, validation: JsonObject) -> list[str]:
    """Return the commands that translate a validation sentence, evaluate the run, and write a page
    with all translations."""
    path = shlex.quote(str(run.path))
    commands = []
    samples = validation.get("samples") or []
    if samples and config.data.layout.is_one_text:
        text = shlex.quote(samples[0]["source"])
        end_of_options = "-- " if samples[0]["source"].startswith("-") else ""
        commands.append(f"seq2seq translate --run {path} {end_of_options}{text}")
    split = "" if len(run.splits) > 1 else " --split valid"  # else it has no test set
    commands.append(f"seq2seq evaluate {path}{split}")
    commands.append(f"seq2seq evaluate {path}{split} --report report.html")
    return commands
