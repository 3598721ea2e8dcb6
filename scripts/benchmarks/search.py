"""See scripts/bench_search."""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch
from tutorial_model import copy_weights, tutorial_model

from seq2seq_attn import load
from seq2seq_attn.config import load_config
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.model.build import build_model
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.runtime.memory import keep_memory_flat
from seq2seq_attn.runtime.precision import multiplies_bf16
from seq2seq_attn.search.beam import beam_search
from seq2seq_attn.search.greedy import greedy_search
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.search.steps import PlainSteps, step_model
from seq2seq_attn.text.vocab import BOS, EOS

NUM_STEPS = 14
"""of every translation: about what test_2016_flickr takes"""
TUTORIAL_SIZES = {"num_source_ids": 7853, "num_target_ids": 5893}
OUR_SIZES = {"num_source_ids": 8000, "num_target_ids": 8000}
SPLIT = "test_2016_flickr"


class Contestant:
    """A way to translate: a function over sentences, and the sentences of a turn."""

    def __init__(self, name, translate, sentences):
        self.name, self._translate, self._sentences = name, translate, sentences
        self.speeds = []

    def turn(self):
        """Translate all; sentences a second."""
        began_at = time.perf_counter()
        self._translate(self._sentences)
        self.speeds.append(len(self._sentences) / (time.perf_counter() - began_at))

    @property
    def speed(self):
        """Median sentences a second."""
        return statistics.median(self.speeds)


@torch.inference_mode()
def main():
    """Time, compare, print, record."""
    options = parse(sys.argv[1:])
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    keep_memory_flat()  # as `seq2seq translate` does
    tutorial, same = tutorial_pair(load_config(["tutorial"]).model, TUTORIAL_SIZES, options.device)
    ours = forced_model(load_config(["multi30k"]).model, OUR_SIZES, options.device)
    contestants = make_contestants(tutorial, same, ours, options)
    for contestant in contestants:
        contestant.turn()
        contestant.speeds.clear()  # the first turn allocates
    for _ in range(options.turns):
        for contestant in contestants:
            contestant.turn()
    value = {
        "options": {key: str(value) if isinstance(value, Path) else value for key, value in vars(options).items()},
        "steps": NUM_STEPS,
        "left_out": [name for name in ("fp32", "bf16") if name not in precisions(options.device)],
        "rows": rows(contestants),
        "differences": differences(tutorial, same, options),
        "environment": describe_environment(sys.argv, options.device),
    }
    report(value)
    if options.run is not None:
        value["run"] = time_run(options)
    if options.record:
        path = Path("docs/speed/search.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def forced_model(config, sizes, device):
    """A model of random weights that never ends a sentence by itself."""
    model = build_model(config, **sizes).eval()
    model.output.projection.bias[EOS] = -1e4
    return model.to(device)


def tutorial_pair(config, sizes, device):
    """The tutorial's model and ours with its weights: one function."""
    same = forced_model(config, sizes, "cpu")
    tutorial = tutorial_model(config, sizes, packed=True).eval()
    copy_weights(tutorial, same)
    return tutorial.to(device), same.to(device)


def make_contestants(tutorial, same, ours, options):
    """The tutorial's loop; ours at its function, then at the sizes of the `multi30k` configuration."""
    theirs = random_sentences(options.tutorial_sentences, num_source_ids(same))
    found = [
        Contestant("tutorial's loop", lambda sentences: tutorial_greedy(tutorial, sentences, options.device), theirs)
    ]
    for label, model in (("its function", same), ("multi30k", ours)):
        batched = random_sentences(options.sentences, num_source_ids(model))
        single = random_sentences(options.single_sentences, num_source_ids(model))
        steps = {"plain": PlainSteps(model)} | {name: step_model(model, name) for name in precisions(options.device)}
        for name, step in steps.items():
            for beam_size in (1, 5):
                search = "greedy" if beam_size == 1 else f"beam {beam_size}"
                way = searcher(step, beam_size, options.batch_size, options.device)
                found.append(Contestant(f"{label}, {search}, {name}", way, batched))
            one = searcher(step, 1, 1, options.device)
            found.append(Contestant(f"{label}, one at a time, {name}", one, single))
    return found


def num_source_ids(model):
    """The size of a model's source vocabulary."""
    return model.encoder.embedding.num_embeddings


def precisions(device):
    """Precisions that the device supports in hardware; emulated bf16 is slower than all others."""
    found = ["fp32", "bf16"] if multiplies_bf16(torch.device(device)) else ["fp32"]
    return [*found, "int8"] if device == "cpu" else found


def searcher(step, beam_size, batch_size, device):
    """Our search over batches of neighbours in length."""
    options = SearchOptions(beam_size=beam_size, keep_attention=False)

    def translate(sentences):
        ordered = sorted(sentences, key=len)
        for start in range(0, len(ordered), batch_size):
            batch = collate_source(ordered[start : start + batch_size]).to(torch.device(device))
            limits = [NUM_STEPS] * len(batch.lengths_B)
            if beam_size == 1:
                greedy_search(step, batch, options, max_lengths_B=limits)
            else:
                beam_search(step, batch, options, max_lengths_B=limits)

    return translate


def tutorial_greedy(model, sentences, device):
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
            logits, hidden = model._step(previous, hidden, states, mask)
            tokens.append(logits.argmax(1).item())
        translations.append(tokens[1:])
    return translations


def random_sentences(count, num_ids):
    """Ids without EOS, in lengths like those of captions: 12 words on average."""
    generator = torch.Generator().manual_seed(2)
    lengths = torch.normal(12.0, 4.0, (count,), generator=generator).round().clamp(4, 35).int().tolist()
    return [torch.randint(4, num_ids, (length,), generator=generator).tolist() for length in lengths]


def differences(tutorial, same, options):
    """Largest difference of log-probabilities to the tutorial's model, over its own translations of 16 sentences, and
    the share of tokens that both choose."""
    sentences = random_sentences(16, num_source_ids(same))
    translations = torch.tensor(tutorial_greedy(tutorial, sentences, options.device), device=options.device)
    source = collate_source(sentences).to(torch.device(options.device))
    tgt_in = torch.cat([torch.full_like(translations[:, :1], BOS), translations[:, :-1]], dim=1)
    expected = tutorial(source.ids_BS.t(), source.lengths_B, tgt_in.t(), 1.1).log_softmax(dim=-1)
    found = {}
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


def rows(contestants):
    """Speeds and their ratios to the tutorial's loop."""
    base = contestants[0]
    return [
        {
            "name": contestant.name,
            "sentences_per_s": contestant.speed,
            "ratio": statistics.median(x / y for x, y in zip(contestant.speeds, base.speeds, strict=True)),
        }
        for contestant in contestants
    ]


def report(value):
    """The table."""
    environment, options = value["environment"], value["options"]
    print(f"{environment['device_name']}, {options['threads']} thread(s), torch {torch.__version__}")
    print(
        f"{environment['written_at']}; {NUM_STEPS} steps a sentence, batches of {options['batch_size']}, random weights"
    )
    if value["left_out"]:
        print(f"left out, as the processor only emulates it: {', '.join(value['left_out'])}")
    print(f"\n{'':36}{'sentences/s':>12}{'ms each':>10}   x tutorial's loop")
    for row in value["rows"]:
        speed = row["sentences_per_s"]
        print(f"{row['name']:36}{speed:>12,.1f}{1000 / speed:>10.2f}{row['ratio']:>20.1f}")
    print("\nat the tutorial's function, against its own model along its own translations:")
    for name, found in value["differences"].items():
        print(f"  {name}: log-probabilities to {found['log_prob']:.1e}, {found['same_tokens']:.1%} of tokens the same")


def time_run(options):
    """A trained run on real sentences, each precision: speed, BLEU, milliseconds for one sentence."""
    run = RunDir(options.run)
    sources, references = prepare_corpus(run.config()).text(SPLIT)
    measure = Measure("bleu", references)
    print(f"\n{options.run}, {SPLIT}: {len(sources)} sentences, from text to text, as the run is configured")
    found = []
    for name in precisions(options.device):
        translator = load(options.run, options.device, precision=name)
        translator.translate(sources[:100])
        row = {"precision": name}
        for beam_size in (1, 5):
            seconds = []
            for _ in range(options.turns):
                began_at = time.perf_counter()
                texts = [t.text for t in translator.translate(sources, beam_size=beam_size, keep_attention=False)]
                seconds.append(time.perf_counter() - began_at)
            score = measure.statistics(texts).score()
            row[f"beam_{beam_size}"] = {
                "sentences_per_s": len(sources) / statistics.median(seconds),
                "bleu": score.score,
                "signature": score.signature,
            }
        row["one_sentence_ms"] = 1000 * statistics.median(
            timed(translator, source) for source in sources[: options.single_sentences]
        )
        found.append(row)
        print(
            f"  {name}: greedy {row['beam_1']['sentences_per_s']:,.0f}/s, BLEU {row['beam_1']['bleu']:.2f}; beam 5 "
            f"{row['beam_5']['sentences_per_s']:,.0f}/s, BLEU {row['beam_5']['bleu']:.2f}; one sentence "
            f"{row['one_sentence_ms']:.1f} ms"
        )
    return found


def timed(translator, source):
    """Seconds for one sentence, greedy."""
    began_at = time.perf_counter()
    translator.translate([source], beam_size=1, keep_attention=False)
    return time.perf_counter() - began_at


def parse(arguments):
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_search", description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--sentences", type=int, default=256, help="of a turn, translated in batches")
    parser.add_argument("--single-sentences", type=int, default=50, help="of a turn, translated one at a time")
    parser.add_argument("--tutorial-sentences", type=int, default=20, help="of a turn, for the tutorial's loop")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--run", type=Path, help="a trained run directory, to be timed on real sentences too")
    parser.add_argument("--record", action="store_true", help="write docs/speed/search.json")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
