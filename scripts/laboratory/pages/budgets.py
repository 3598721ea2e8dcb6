"""The table of `docs/own-text.md` about budgets: scores by multiples of the chosen number of
updates, and whether the same multiple would be chosen without one of the texts."""

from collections.abc import Mapping

from scripts.laboratory.harness.records import Record


def budget_measure(row: Record) -> str:
    """The measure of a text in the table: BLEU or chrF of sentences, exact matches of others."""
    measures = set(row["by_factor"]["1"]["scores"])
    return next(iter(measures & {"bleu", "chrf"}), "exact")


def shares_of_best(row: Record) -> dict[str, float]:
    """The score at each multiple that was tried, in percent of the best score of the text."""
    measure = budget_measure(row)
    scores = {factor: run["scores"][measure] for factor, run in row["by_factor"].items()}
    best = max(scores.values())
    return {factor: 100 * score / best for factor, score in scores.items()}


def leave_one_out(rows: Mapping[str, Record]) -> list[Record]:
    """For each text, the factor that is chosen from the other texts, and the share of its best
    score that the text reaches with this factor. The factor is chosen at which the worst of the
    other texts keeps the largest share of its best score. Only factors tried with every text
    count."""
    shares = {name: shares_of_best(row) for name, row in rows.items()}
    tried = sorted(set.intersection(*map(set, shares.values())), key=float)
    chosen = []
    for name, row in rows.items():
        others = [shares[other] for other in rows if other != name]
        lowest = {factor: min(text[factor] for text in others) for factor in tried}
        factor = max(tried, key=lowest.__getitem__)
        about = f"{row['about']} ({row['by_factor']['1']['num_pairs']:,} pairs)"
        chosen.append({"about": about, "factor": factor, "share": shares[name][factor]})
    return chosen
