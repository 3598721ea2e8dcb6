"""Block `translation`: sentences a second, greedy, with beam 5 and one at a time, against the tutorial's loop."""

from __future__ import annotations

import bench_search
import torch

from gpu_blocks import bounds
from gpu_blocks.corpus import model_config
from gpu_blocks.plan import Budget, Settings, write_record

TINY = ["--sentences", "8", "--single-sentences", "2", "--tutorial-sentences", "2", "--batch-size", "4", "--turns", "1"]
TINY_SIZES = {"num_source_ids": 40, "num_target_ids": 40}
FULL = ["--sentences", "1024", "--turns", "20", "--batch-size", "256"]


@torch.inference_mode()
def run(name: str, settings: Settings, budget: Budget) -> bool:
    """Measure in paired turns while there is time, then see where the time of a turn goes."""
    device = torch.device(settings.device)
    options = bench_search.parse(["--device", settings.device, *(TINY if settings.is_rehearsal else FULL)])
    torch.manual_seed(1)
    sizes = [TINY_SIZES] * 2 if settings.is_rehearsal else [bench_search.TUTORIAL_SIZES, bench_search.OUR_SIZES]
    tutorial, same = bench_search.tutorial_pair(model_config("tutorial", settings), sizes[0], settings.device)
    ours = bench_search.forced_model(model_config("multi30k", settings), sizes[1], settings.device)
    contestants = bench_search.make_contestants(tutorial, same, ours, options)
    for contestant in contestants:
        contestant.turn()
        contestant.speeds.clear()
    turns = budget.share(0.7)
    for _ in range(options.turns):
        for contestant in contestants:
            contestant.turn()
        if turns.left_s == 0.0:
            break
    rows = bench_search.rows(contestants)
    for row, contestant in zip(rows, contestants, strict=True):
        found = None if budget.left_s < 20.0 else bounds.profile(contestant.turn, device, 1)
        row["profile"] = None if found is None else found._asdict()
        row["bound"] = bounds.explain(found)
    differences = bench_search.differences(tutorial, same, options)
    for row in rows:
        speed = row["sentences_per_s"]
        print(
            f"{row['name']:36}{speed:>10,.1f} sentences/s   {row['ratio']:.1f} x the tutorial's\n{'':36}{row['bound']}"
        )
    about = {"steps": bench_search.NUM_STEPS, "batch_size": options.batch_size, "turns": len(contestants[0].speeds)}
    about["sentences"] = options.sentences
    write_record(settings, name, is_finished=True, values={**about, "rows": rows, "differences": differences})
    return True
