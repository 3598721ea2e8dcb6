"""See scripts/bench_train."""

import argparse
import statistics
import time

import torch
from bench_train_report import forced_name, report
from tutorial_model import copy_weights, tutorial_model

from seq2seq_attn.config import load_config
from seq2seq_attn.data.batch import collate
from seq2seq_attn.data.buckets import bucketed_batches
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.model import speed
from seq2seq_attn.model.build import build_model
from seq2seq_attn.runtime.memory import keep_primitives, reuse_large_blocks
from seq2seq_attn.runtime.precision import DTYPES, multiplies_bf16
from seq2seq_attn.train.batches import UpdateBatches
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.optim import build_optimizer
from seq2seq_attn.train.update import Updater

TUTORIAL = "tutorial"
RANDOM, BUCKETED = "random batches", "bucketed batches"
QUICK_S = 60.0
"""of `--quick`, for turns: two minutes less what the corpus and the matrix products take on a slow core"""


class Contestant:
    """A way to train: its own optimiser, batches and, if told, number of threads."""

    def __init__(self, name, batches, update, device, num_threads=None):
        self.name, self.batches, self.num_threads = name, batches, num_threads
        self._update, self._device = update, device
        self.speeds = []

    def turn(self, number):
        """One update; target tokens a second, with EOS, without padding."""
        if self.num_threads:
            torch.set_num_threads(self.num_threads)
        batch = self.batches[number % len(self.batches)]
        wait(self._device)
        began_at = time.perf_counter()
        self._update(batch)
        wait(self._device)
        self.speeds.append(batch.num_tokens / (time.perf_counter() - began_at))

    @property
    def speed(self):
        """Median tokens a second."""
        return statistics.median(self.speeds)


def wait(device):
    """Until a GPU has done what it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def precisions(device):
    """Precisions that the device supports in hardware; emulated bf16 would take minutes and show nothing."""
    return ["fp32", "bf16"] if multiplies_bf16(device) else ["fp32"]


def main(arguments=None):
    """Time, compare, print, record."""
    options = parse(arguments)
    keep_primitives(4_096)  # what these batches need
    reuse_large_blocks()  # as `seq2seq train` does; it helps the tutorial's loops too
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    config = load_config([options.config], ["data.captions.num_train=4000"] if options.captions else [])
    batch_size = config.train.batch.size
    if options.captions:
        config.data.corpus = "captions"
    prepared = prepare_corpus(config)
    pairs = prepared.pairs("train")
    sizes = {"num_source_ids": len(prepared.source_vocab), "num_target_ids": len(prepared.target_vocab)}
    bucketed = bucketed_batches(
        pairs.source_lengths, pairs.target_lengths, size=batch_size, unit="sentences", seed=1, epoch=0
    )
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(1)).tolist()
    batches = {
        BUCKETED: [pairs.batch(indices) for indices in bucketed[: options.batches]],
        RANDOM: [pairs.batch(order[i * batch_size : (i + 1) * batch_size]) for i in range(options.batches)],
    }
    flops = flops_per_token(config.model, sizes, batches[BUCKETED])
    contestants = make_contestants(config, sizes, batches, options)
    if options.quick:
        options.batches = affordable_batches(contestants, options)
    for contestant in contestants:
        for number in range(options.warm_up * options.batches):
            contestant.turn(number)
        contestant.speeds.clear()
    peaks = {}
    for number in range(options.batches):
        for name, peak in gemm_peaks(options).items():
            peaks.setdefault(name, []).append(peak)
        for contestant in contestants:
            contestant.turn(number)
    is_tutorial = options.config == TUTORIAL
    cpu = torch.device("cpu")
    differences = gradient_differences(config, sizes, precisions(cpu), cpu) if is_tutorial else {}
    report(contestants, differences, peaks, flops, options)


def affordable_batches(contestants, options):
    """How many batches there is time for, on this machine: from a turn of each over the first one."""
    began_at = time.perf_counter()
    for contestant in contestants:
        contestant.turn(0)
    seconds = time.perf_counter() - began_at
    affordable = (QUICK_S - seconds) / (seconds * (options.warm_up + 1))
    return max(1, min(options.batches, int(affordable)))


def gemm_peaks(options):
    """`gemm_peak` of each precision and number of threads, now: the machine is not always as fast."""
    found = {}
    for num_threads in options.cores or [options.threads]:
        torch.set_num_threads(num_threads)
        for precision in options.precisions:
            dtype = DTYPES.get(precision, torch.float32)
            found[peak_name(precision, num_threads, options)] = gemm_peak(dtype, options.device)
    return found


def gemm_peak(dtype, device):
    """FLOP a second of the readout's product over all steps, the best of some: what this machine can do at all.

    The result's rows begin at multiples of 64 numbers: into 5,893 packed ones, products in fp32 are a third slower."""
    a, b = (torch.randn(rows, 1_792, dtype=dtype, device=device) for rows in (1_920, 5_893))
    result = torch.empty(len(a), 5_952, dtype=dtype, device=device)[:, : len(b)]
    times = []
    for _ in range(4):
        wait(device)
        began_at = time.perf_counter()
        torch.mm(a, b.t(), out=result)
        wait(device)
        times.append(time.perf_counter() - began_at)
    return 2.0 * a.numel() * len(b) / min(times)


def peak_name(precision, num_threads, options):
    """What a peak, and what is held against it, is called."""
    return f"{precision}, {num_threads} thread{'s' * (num_threads > 1)}" if options.cores else precision


def flops_per_token(model, sizes, batches):
    """Useful operations a target token costs, forward and backward, without padding: those of the matrix products."""
    embedding, hidden, memory = model.embedding_size, model.hidden_size, 2 * model.encoder.hidden_size
    scoring = model.attention.options.get("attention_size", hidden)
    joined = hidden + memory + embedding
    readout = model.readout_size
    output = joined * sizes["num_target_ids"] if readout is None else readout * (joined + sizes["num_target_ids"])
    per_target = output + 3 * hidden * (embedding + memory + hidden) + hidden * scoring
    per_source = 6 * model.encoder.hidden_size * (embedding + model.encoder.hidden_size) + memory * scoring
    source = sum(int(batch.source.lengths_B.sum()) for batch in batches)
    target = sum(batch.num_tokens for batch in batches)
    return 6.0 * (per_target + per_source * source / target)


def make_contestants(config, sizes, batches, options):
    """The tutorial's loops and ours; `--quick` leaves out all but the plain and the fast one; `--cores` has the fast
    one with one thread and with two."""
    ratio, device = options.teacher_forcing, options.device
    ways = {"plain loop": speed.names(), "fast": []}
    updates = {
        f"ours, {name}, {precision}": our_update(config, sizes, way, precision, ratio, device)
        for name, way in ways.items()
        for precision in options.precisions
    }
    if options.cores:
        return [
            Contestant(
                f"ours, fast, {peak_name(name, num, options)}",
                batches[BUCKETED],
                updates[f"ours, fast, {name}"],
                device,
                num,
            )
            for num in options.cores
            for name in options.precisions
        ]
    if device.type == "cuda":
        graphed = {
            name: run_update(config, sizes, name, ratio, device, cuda_graphs=True) for name in options.precisions
        }
        updates |= {f"ours, graphs, {name}": update for name, update in graphed.items()}
    if ratio < 1.0:
        forced = {name: our_update(config, sizes, [], name, 1.0, device) for name in options.precisions}
        updates |= {forced_name(name): update for name, update in forced.items()}
    ours = [Contestant(name, batches[BUCKETED], update, device) for name, update in updates.items()]
    if options.quick:
        return ours
    tutorials = [
        Contestant(
            f"tutorial, {kind}", batches[kind], tutorial_update(config, sizes, kind == BUCKETED, ratio, device), device
        )
        for kind in (RANDOM, BUCKETED)
    ]
    return tutorials + ours


def run_update(config, sizes, precision, ratio, device, *, cuda_graphs):
    """Ours as `seq2seq train --set train.cuda_graphs=...` runs it, batches prepared ahead of time."""
    torch.manual_seed(1)
    settings = config.train.model_copy(update={"cuda_graphs": cuda_graphs})
    updater = Updater(build_model(config.model, **sizes).to(device), settings, device=device, precision=precision)
    prepared = {}

    def update(batch):
        if id(batch) not in prepared:
            prepared[id(batch)] = UpdateBatches([updater.prepare(batch)], [batch.indices_B.tolist()], batch.num_tokens)
        updater.train_step(prepared[id(batch)], update=1, learning_rate=1e-3, teacher_forcing_ratio=ratio)

    return update


def our_update(config, sizes, off, precision, ratio, device):
    """Ours as `seq2seq train` runs it, without the fast paths that are named (`model.speed`)."""
    model = build_model(config.model, **sizes).to(device)
    optimizer = build_optimizer(model, config.train.optimizer)

    def update(batch):
        with speed.without(off), torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = batch_loss(model, batch.to(device), teacher_forcing_ratio=ratio)
        (loss.loss_sum / loss.num_tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return update


def tutorial_update(config, sizes, packed, ratio, device):
    """The tutorial's own update: cross-entropy over all positions, padding ignored."""
    model = tutorial_model(config.model, sizes, packed=packed).to(device)
    optimizer = torch.optim.Adam(model.parameters())

    def update(batch):
        batch = batch.to(device)
        logits = model(batch.source.ids_BS.t(), batch.source.lengths_B, batch.tgt_in_BT.t(), ratio)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.tgt_out_BT.t().flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return update


def gradient_differences(config, sizes, of_precisions, device):
    """Relative difference of the loss and of all gradients to the tutorial's, teacher-forced, without dropout."""
    torch.manual_seed(2)
    model = build_model(config.model, **sizes).eval()
    tutorial = tutorial_model(config.model, sizes, packed=True).eval()
    copy_weights(tutorial, model)
    model, tutorial = model.to(device), tutorial.to(device)
    generator = torch.Generator().manual_seed(3)
    lengths = [5, 9, 12, 7, 3, 10, 8, 12]
    source = [torch.randint(4, sizes["num_source_ids"], (n,), generator=generator).tolist() for n in lengths]
    target = [torch.randint(4, sizes["num_target_ids"], (n,), generator=generator).tolist() for n in lengths]
    batch = collate(source, target, range(len(lengths))).to(device)
    logits = tutorial(batch.source.ids_BS.t(), batch.source.lengths_B, batch.tgt_in_BT.t(), 1.1)
    targets = batch.tgt_out_BT.t().flatten()
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets, ignore_index=0, reduction="sum")
    expected.backward()
    wanted = tutorial.output.weight.grad, tutorial.decoder.weight_hh_l0.grad, tutorial.source_embedding.weight.grad
    found = {}
    for precision in of_precisions:
        model.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = batch_loss(model, batch).loss_sum
        loss.backward()
        ours = (
            model.output.projection.weight.grad,
            model.decoder.cell.recurrent_weight_PH.grad,
            model.encoder.embedding.weight.grad,
        )
        worst = max(((a - b).norm() / b.norm()).item() for a, b in zip(ours, wanted, strict=True))
        found[precision] = {"loss": abs(loss.item() / expected.item() - 1), "gradients": worst}
    return found


def parse(arguments):
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_train", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="ours only, within two minutes: at most four batches")
    parser.add_argument("--cores", action="store_true", help="ours only, one thread against two")
    parser.add_argument("--config", default=TUTORIAL, help="another function: with --quick or --cores")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batches", type=int, default=None)
    parser.add_argument("--device", default="cpu", help="cpu or cuda: there CUDA graphs take part")
    parser.add_argument("--teacher-forcing", type=float, default=0.5)
    parser.add_argument("--captions", action="store_true", help="on the embedded corpus: no download")
    parser.add_argument("--record", nargs="?", const="train", metavar="NAME", help="write docs/speed/NAME.json (train)")
    options = parser.parse_args(arguments)
    options.batches = options.batches or (4 if options.quick else 8)
    options.device = torch.device(options.device)
    options.cores = [1, 2] if options.cores else []
    if options.config != TUTORIAL and not (options.quick or options.cores):
        parser.error(f"--config {options.config}: the tutorial's own loop is of one function; add --quick or --cores")
    options.precisions = precisions(options.device)
    # Rounds over all batches: every shape has been met before, as most have in a training run: oneDNN compiles a
    # product for each. On a GPU two rounds, because a shape is recorded when it comes again.
    options.warm_up = 2 if options.device.type == "cuda" else 1
    return options


if __name__ == "__main__":
    main()
