"""Block `translation`: sentences per second, greedy, with beam 5 and one at a time, against the tutorial's loop."""

from __future__ import annotations

from functools import partial

import torch

from scripts.laboratory.benchmarks import search
from scripts.laboratory.benchmarks.gpu import bounds
from scripts.laboratory.benchmarks.gpu.corpus import model_config
from scripts.laboratory.benchmarks.gpu.plan import Budget, Settings, write_record
from scripts.laboratory.benchmarks.train_work import Sizes
from scripts.laboratory.harness.turns import take_turns

TINY = ["--sentences", "8", "--single-sentences", "2", "--tutorial-sentences", "2", "--batch-size", "4", "--turns", "1"]
TINY_SIZES = Sizes(40, 40)
FULL = ["--sentences", "1024", "--turns", "20", "--batch-size", "256"]


@torch.inference_mode()
def run(name: str, settings: Settings, budget: Budget) -> bool:
    """Measure in paired turns while there is time, then see where the time of a turn goes."""
    device = torch.device(settings.device)
    options = search.parse(["--device", settings.device, *(TINY if settings.is_rehearsal else FULL)])
    torch.manual_seed(1)
    sizes = [TINY_SIZES] * 2 if settings.is_rehearsal else [search.TUTORIAL_SIZES, search.OUR_SIZES]
    tutorial, same = search.tutorial_pair(model_config("tutorial", settings), sizes[0], settings.device)
    ours = search.forced_model(model_config("multi30k", settings), sizes[1], settings.device)
    contestants = search.make_contestants(tutorial, same, ours, options)
    turns = budget.share(0.7)
    take_turns(contestants, options.turns, warm_up=1, is_over=lambda: turns.left_s == 0.0)
    rows = search.rows(contestants)
    for row, contestant in zip(rows, contestants, strict=True):
        found = None if budget.left_s < 20.0 else bounds.profile(partial(contestant.turn, 0), device, 1)
        row["profile"] = None if found is None else found._asdict()
        row["bound"] = bounds.explain(found)
    differences = search.differences(tutorial, same, options)
    about = {"steps": search.NUM_STEPS, "batch_size": options.batch_size, "turns": len(contestants[0].speeds)}
    about["sentences"] = options.sentences
    write_record(settings, name, is_finished=True, values={**about, "rows": rows, "differences": differences})
    return True
