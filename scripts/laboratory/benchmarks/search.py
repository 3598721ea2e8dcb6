"""Translation speed: the loop of the PyTorch attention tutorial, written anew here, against ours; greedy and beam."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from scripts.benchmarks.pages import publish
from scripts.laboratory.benchmarks.train_work import Sizes
from scripts.laboratory.benchmarks.tutorial_model import TutorialModel, copy_weights, tutorial_model
from scripts.harness import turns
from scripts.harness.records import Record, describe, exit_code, options_of
from scripts.harness.runs import describe_run
from scripts.harness.turns import Contestant, left_out, paired_ratio, take_turns
from seq2seq_attn import load
from seq2seq_attn.config import ModelConfig, load_config
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.runtime.memory import keep_memory_flat
from seq2seq_attn.runtime.precision import Precision
from seq2seq_attn.search.beam import beam_search
from seq2seq_attn.search.greedy import greedy_search
from seq2seq_attn.search.hypothesis import StepModel
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.search.steps import PlainSteps, step_model
from seq2seq_attn.text.vocab import BOS, EOS
from seq2seq_attn.translate.translator import Translator

NUM_STEPS = 14
"""of every translation: about what test_2016_flickr takes"""
TUTORIAL_SIZES, OUR_SIZES = Sizes(7853, 5893), Sizes(5485, 3964)
"""of the prepared corpora"""
SPLIT = "test_2016_flickr"
Sentences = list[list[int]]
"""ids without EOS"""


@torch.inference_mode()
def main() -> None:
    """Time, compare, print, record."""
    options = parse()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    keep_memory_flat()  # as `seq2seq translate` does
    tutorial, same = tutorial_pair(load_config(["tutorial"]).model, TUTORIAL_SIZES, options.device)
    ours = forced_model(load_config(["multi30k"]).model, OUR_SIZES, options.device)
    contestants = make_contestants(tutorial, same, ours, options)
    take_turns(contestants, options.turns, warm_up=1)  # the first turn allocates
    record = {
        "options": options_of(options),
        "steps": NUM_STEPS,
        "left_out": left_out(options.device),
        "rows": rows(contestants),
        "differences": differences(tutorial, same, options),
        "environment": describe("bench_search", options.device),
    }
    if options.run is not None:
        run = RunDir(options.run)
        record["run"] = {"name": run.config().name, **describe_run(run), "rows": time_run(options)}
    publish("search", record, save=options.record)


def forced_model(config: ModelConfig, sizes: Sizes, device: str) -> Seq2Seq:
    """A model of random weights that never ends a sentence by itself."""
    model = build_model(config, **sizes._asdict()).eval()
    model.get_parameter("output.projection.bias")[EOS] = -1e4
    return model.to(device)


def tutorial_pair(config: ModelConfig, sizes: Sizes, device: str) -> tuple[TutorialModel, Seq2Seq]:
    """The tutorial's model and ours with its weights: one function."""
    same = forced_model(config, sizes, "cpu")
    tutorial = tutorial_model(config, **sizes._asdict(), packed=True).eval()
    copy_weights(tutorial, same)
    return tutorial.to(device), same.to(device)


def make_contestants(
    tutorial: TutorialModel, same: Seq2Seq, ours: Seq2Seq, options: argparse.Namespace
) -> list[Contestant]:
    """The tutorial's loop; ours at its function, then at the sizes of the `multi30k` configuration."""
    device = torch.device(options.device)

    def enter(name: str, translate: Callable[[Sentences], object], sentences: Sentences) -> Contestant:
        def work(_: int) -> float:
            translate(sentences)
            return len(sentences)

        return Contestant(name, work, device=device)

    theirs = random_sentences(options.tutorial_sentences, num_source_ids(same))
    found = [enter("tutorial's loop", lambda sentences: tutorial_greedy(tutorial, sentences, device), theirs)]
    for label, model in (("its function", same), ("multi30k", ours)):
        batched = random_sentences(options.sentences, num_source_ids(model))
        single = random_sentences(options.single_sentences, num_source_ids(model))
        steps: dict[str, StepModel[Any]] = {"plain": PlainSteps(model)}
        steps |= {name: step_model(model, name) for name in precisions(options.device)}
        for name, step in steps.items():
            for beam_size, search in ((1, "greedy"), (5, "beam 5")):
                way = searcher(step, beam_size, options.batch_size, device)
                found.append(enter(f"{label}, {search}, {name}", way, batched))
            found.append(enter(f"{label}, one at a time, {name}", searcher(step, 1, 1, device), single))
    return found


def num_source_ids(model: Seq2Seq) -> int:
    """The size of a model's source vocabulary."""
    return len(model.get_parameter("encoder.embedding.weight"))


def precisions(device: str) -> list[Precision]:
    """Precisions that the device supports in hardware; products in int8 are of a CPU."""
    return [*turns.precisions(device), "int8"] if device == "cpu" else turns.precisions(device)


def searcher(
    step: StepModel[Any], beam_size: int, batch_size: int, device: torch.device
) -> Callable[[Sentences], None]:
    """Our search over batches of neighbors in length."""
    options = SearchOptions(beam_size=beam_size, keep_attention=False)

    def translate(sentences: Sentences) -> None:
        ordered = sorted(sentences, key=len)
        for start in range(0, len(ordered), batch_size):
            batch = collate_source(ordered[start : start + batch_size]).to(device)
            limits = [NUM_STEPS] * len(batch.lengths_B)
            if beam_size == 1:
                greedy_search(step, batch, options, max_lengths_B=limits)
            else:
                beam_search(step, batch, options, max_lengths_B=limits)

    return translate


def tutorial_greedy(model: TutorialModel, sentences: Sentences, device: torch.device) -> Sentences:
    """One sentence after another, one token after another, each looked at before the next, as the tutorial does."""
    translations = []
    for ids in sentences:
        source = torch.tensor([*ids, EOS], device=device).unsqueeze(1)
        states, final = model.encoder(model.source_embedding(source))
        hidden = torch.tanh(model.bridge(torch.cat([final[-2], final[-1]], dim=1)))
        states, mask = states.permute(1, 0, 2), (source != 0).t()
        tokens = [BOS]
        while len(tokens) <= NUM_STEPS:
            previous = torch.tensor([tokens[-1]], device=device)
            logits, hidden = model.step(previous, hidden, states, mask)
            tokens.append(int(logits.argmax(1).item()))
        translations.append(tokens[1:])
    return translations


def random_sentences(count: int, num_ids: int) -> Sentences:
    """Ids without EOS, in lengths like those of captions: 12 words on average."""
    generator = torch.Generator().manual_seed(2)
    lengths = torch.normal(12.0, 4.0, (count,), generator=generator).round().clamp(4, 35).int().tolist()
    return [torch.randint(4, num_ids, (length,), generator=generator).tolist() for length in lengths]


def differences(tutorial: TutorialModel, same: Seq2Seq, options: argparse.Namespace) -> Record:
    """Largest difference of log-probabilities to the tutorial's model, over its own translations of 16 sentences, and
    the share of tokens that both choose."""
    device = torch.device(options.device)
    sentences = random_sentences(16, num_source_ids(same))
    translations = torch.tensor(tutorial_greedy(tutorial, sentences, device), device=device)
    source = collate_source(sentences).to(device)
    tgt_in = torch.cat([torch.full_like(translations[:, :1], BOS), translations[:, :-1]], dim=1)
    expected = tutorial(source.ids_BS.t(), source.lengths_B, tgt_in.t(), 1.1).log_softmax(dim=-1)
    found: Record = {}
    for name in precisions(options.device):
        step = step_model(same, name)
        state, log_probs = step.start(source, 1), []
        for ids in tgt_in.t():
            tokens, state = step.step(ids, state)
            log_probs.append(tokens.log_probs())
        ours, likely = torch.stack(log_probs), expected > -100.0  # EOS, which is forced away, has -10,000
        found[name] = {
            "log_prob": (ours - expected)[likely].abs().max().item(),
            "same_tokens": (ours.argmax(-1) == expected.argmax(-1)).float().mean().item(),
        }
    return found


def rows(contestants: Sequence[Contestant]) -> list[Record]:
    """Speeds and their ratios to the tutorial's loop."""
    found = []
    for contestant in contestants:
        ratio = paired_ratio(contestant.speeds, contestants[0].speeds)
        about = {"name": contestant.name, "sentences_per_s": contestant.speed}
        found.append({**about, "ratio": ratio.value, "interval": [ratio.low, ratio.high]})
    return found


def time_run(options: argparse.Namespace) -> list[Record]:
    """A trained run on real sentences, each precision: speed, BLEU, milliseconds for one sentence."""
    sources, references = prepare_corpus(RunDir(options.run).config()).text(SPLIT)
    measure = Measure("bleu", references)
    found = []
    for name in precisions(options.device):
        translator = load(options.run, options.device, precision=name)
        translator.translate(sources[:100])
        row: Record = {"precision": name}
        for beam_size in (1, 5):
            timed = [timed_translation(translator, sources, beam_size) for _ in range(options.turns)]
            score = measure.statistics(timed[-1][1]).score()
            speed = len(sources) / statistics.median(seconds for seconds, _ in timed)
            row[f"beam_{beam_size}"] = {
                "sentences_per_s": speed,
                "bleu": score.score,
                "signature": score.signature,
            }
        singles = (timed_translation(translator, [source], 1)[0] for source in sources[: options.single_sentences])
        row["one_sentence_ms"] = 1000 * statistics.median(singles)
        found.append(row)
    return found


def timed_translation(translator: Translator, sources: Sequence[str], beam_size: int) -> tuple[float, list[str]]:
    """Seconds for all sentences, and their translations."""
    began_at = time.perf_counter()
    texts = [one.text for one in translator.translate(sources, beam_size=beam_size, keep_attention=False)]
    return time.perf_counter() - began_at, texts


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_search", description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--sentences", type=int, default=256, help="sentences per turn, translated in batches")
    parser.add_argument("--single-sentences", type=int, default=50, help="sentences per turn, translated one at a time")
    parser.add_argument("--tutorial-sentences", type=int, default=20, help="sentences per turn for the tutorial's loop")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--run", type=Path, help="a trained run directory, to be timed on real sentences too")
    parser.add_argument("--record", action="store_true", help="write docs/speed/search.json")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(exit_code(main))
