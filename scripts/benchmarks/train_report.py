"""The table and the record of `bench_train`."""

import json
import statistics
import sys
from pathlib import Path

import torch

from seq2seq_attn.runtime.environment import describe_environment


def report(contestants, differences, peaks, flops, options):
    """The table, and the record."""
    environment = describe_environment(sys.argv, options.device)
    threads = " and ".join(map(str, options.cores or [options.threads]))
    print(f"{environment['device_name']}, {threads} thread(s), torch {torch.__version__}, {environment['written_at']}")
    print(f"{options.config}, teacher forcing {options.teacher_forcing}, {options.batches} paired turns")
    if left_out := [name for name in ("fp32", "bf16") if name not in options.precisions]:
        print(f"left out, as the processor only emulates it: {', '.join(left_out)}")
    medians = {name: statistics.median(values) for name, values in peaks.items()}
    in_words = ", ".join(f"{name} {peak / 1e9:.0f} GFLOP/s" for name, peak in medians.items())
    print(f"{flops / 1e6:.0f} MFLOP a token; matrix products {in_words}\n")
    base = contestants[:2]
    print(f"{'':34}{'tokens/s':>10}{'of peak':>9}" + "".join(f"   x {contestant.name}" for contestant in base))
    rows = []
    for contestant in contestants:
        ratios = [paired_ratio(contestant, other) for other in base]
        peak = next((values for name, values in peaks.items() if contestant.name.endswith(name)), peaks.get("fp32"))
        of_peak = statistics.median(speed * flops / now for speed, now in zip(contestant.speeds, peak, strict=True))
        print(
            f"{contestant.name:34}{contestant.speed:>10,.0f}{100 * of_peak:>7.0f} %"
            + "".join(f"{r:>{5 + len(o.name)}.2f}" for r, o in zip(ratios, base, strict=True))
        )
        rows.append(
            {
                "name": contestant.name,
                "tokens_per_s": contestant.speed,
                "share_of_gemm_peak": of_peak,
                "ratios": dict(zip((o.name for o in base), ratios, strict=True)),
            }
        )
    by_name = {contestant.name: contestant for contestant in contestants}
    fed_back = {
        name: paired_ratio(by_name[f"ours, fast, {name}"], by_name[forced_name(name)])
        for name in options.precisions
        if forced_name(name) in by_name
    }
    for precision, ratio in fed_back.items():
        print(f"\nfast, {precision}: {100 * ratio:.0f} % of its speed at teacher forcing 1", end="")
    print()
    if differences:
        print("\nfast against the tutorial's function, relative difference:")
    for precision, values in differences.items():
        print(f"  {precision}: loss {values['loss']:.1e}, gradients {values['gradients']:.1e}")
    if options.record:
        path = Path(f"docs/speed/{options.record}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        about = {
            "options": {**vars(options), "device": str(options.device)},
            "gemm_peak": medians,
            "flops_per_token": flops,
            "left_out": left_out,
        }
        value = {**about, "rows": rows, "fed_back": fed_back, "differences": differences, "environment": environment}
        path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def paired_ratio(a, b):
    """Median over turns of the ratio of speeds."""
    return statistics.median(x / y for x, y in zip(a.speeds, b.speeds, strict=True))


def forced_name(precision):
    """The name of our contestant with teacher forcing 1."""
    return f"ours, fast, teacher forcing 1, {precision}"
