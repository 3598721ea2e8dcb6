"""Translation speed: the loop of the PyTorch attention tutorial, written anew here, against ours;
greedy and beam."""

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from scripts.laboratory.benchmarks.measure import CPU, build_parser, publish
from scripts.laboratory.benchmarks.train import Sizes
from scripts.laboratory.benchmarks.tutorial import TutorialModel
from scripts.laboratory.harness import turns
from scripts.laboratory.harness.records import Record
from scripts.laboratory.harness.runs import describe_run
from scripts.laboratory.harness.turns import Contestant, paired_ratio, take_turns
from seq2seq_attn import load
from seq2seq_attn.config import ModelConfig, SearchConfig, load_config
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run import Run
from seq2seq_attn.runtime.device import Precision
from seq2seq_attn.runtime.memory import keep_memory_flat
from seq2seq_attn.search.base import SearchSource, StepModel, find_search
from seq2seq_attn.search.steps import PlainSteps, step_model
from seq2seq_attn.text.vocab import BOS, EOS
from seq2seq_attn.translate.translator import Translator

NUM_STEPS = 14
"""of every translation: about what test_2016_flickr takes"""
PREPARED_SIZES = {"tutorial": Sizes(7853, 5893), "multi30k": Sizes(5485, 3964)}
"""of the vocabularies of the prepared corpora"""
SPLIT = "test_2016_flickr"
BATCH_SIZES = (64, 256, 1024)
Sentences = list[list[int]]
"""ids without EOS"""


class Amount(NamedTuple):
    """How much is translated: turns, and sentences per turn."""

    turns: int = 5
    batch_size: int = 64
    sentences: int = 256
    single_sentences: int = 50
    tutorial_sentences: int = 20


QUICK = Amount(turns=1, batch_size=4, sentences=8, single_sentences=2, tutorial_sentences=2)


def main(arguments: Sequence[str]) -> None:
    parser = build_parser("search", __doc__)
    parser.add_argument(
        "--run", type=Path, help="a trained run directory, to be timed on real sentences too"
    )
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    keep_memory_flat()  # as `seq2seq translate` does
    amount = QUICK if options.quick else Amount()
    configs = {name: load_config([name]).model for name in PREPARED_SIZES}
    record = measure(configs, PREPARED_SIZES, amount, CPU)
    record["options"] |= {"threads": 1, "run": options.run and options.run.name}
    if options.run is not None:
        name = Run(options.run).config.name
        record["run"] = {
            "name": name,
            **describe_run(options.run),
            "rows": time_run(options.run, amount),
        }
    publish(record, options.record)


@torch.inference_mode()
def measure(
    configs: dict[str, ModelConfig], sizes: dict[str, Sizes], amount: Amount, device: torch.device
) -> Record:
    """Random weights and a forced number of steps: speeds, ratios to the tutorial's loop,
    differences to its model."""
    torch.manual_seed(1)
    ours = forced_model(configs["multi30k"], sizes["multi30k"]).to(device)
    same = forced_model(configs["tutorial"], sizes["tutorial"])
    tutorial = TutorialModel(configs["tutorial"], **sizes["tutorial"]._asdict(), packed=True).eval()
    tutorial.copy_weights(same)
    tutorial, same = tutorial.to(device), same.to(device)
    num_ids = sizes["tutorial"].num_source_ids
    theirs = random_sentences(amount.tutorial_sentences, num_ids)
    base = contestant(
        "tutorial's loop", partial(tutorial_greedy, tutorial, device=device), theirs, device
    )
    contestants = [
        base,
        *our_contestants("its function", same, num_ids, amount, device),
        *our_contestants("multi30k", ours, sizes["multi30k"].num_source_ids, amount, device),
    ]
    take_turns(contestants, amount.turns, warm_up=1)  # the first turn allocates
    rows = []
    for one in contestants:
        ratio = paired_ratio(one.speeds, base.speeds)
        speed = {"name": one.name, "sentences_per_s": one.speed}
        rows.append({**speed, "ratio": ratio.value, "interval": [ratio.low, ratio.high]})
    sentences = random_sentences(16, num_ids)
    return {
        "options": {**amount._asdict(), "device": device.type},
        "steps": NUM_STEPS,
        "rows": rows,
        "differences": differences(tutorial, same, sentences, device),
    }


def forced_model(config: ModelConfig, sizes: Sizes) -> Seq2Seq:
    """A model of random weights that never ends a sentence by itself."""
    model = build_model(config, **sizes._asdict()).eval()
    model.get_parameter("output.projection.bias")[EOS] = -1e4
    return model


def contestant(
    name: str, translate: Callable[[Sentences], object], sentences: Sentences, device: torch.device
) -> Contestant:
    """A way to translate the same sentences in each turn."""

    def work(_: int) -> float:
        translate(sentences)
        return len(sentences)

    return Contestant(name, work, device=device)


def our_contestants(
    label: str, model: Seq2Seq, num_source_ids: int, amount: Amount, device: torch.device
) -> Iterator[Contestant]:
    """Greedy and beam search in batches, and one sentence at a time, in each precision."""
    batched = random_sentences(amount.sentences, num_source_ids)
    single = random_sentences(amount.single_sentences, num_source_ids)
    steps: dict[str, StepModel[Any]] = {"plain": PlainSteps(model)}
    steps |= {name: step_model(model, name) for name in precisions(device)}
    for name, step in steps.items():
        for beam_size, search in ((1, "greedy"), (5, "beam 5")):
            translate = searcher(step, beam_size, amount.batch_size, device)
            yield contestant(f"{label}, {search}, {name}", translate, batched, device)
        yield contestant(
            f"{label}, one at a time, {name}", searcher(step, 1, 1, device), single, device
        )


def precisions(device: torch.device) -> list[Precision]:
    """Precisions that the device supports in hardware; products in int8 are for CPUs."""
    return [*turns.precisions(device), "int8"] if device.type == "cpu" else turns.precisions(device)


def searcher(
    step: StepModel[Any], beam_size: int, batch_size: int, device: torch.device
) -> Callable[[Sentences], None]:
    """Our search over batches of neighbors in length."""
    search, options = find_search(SearchConfig(beam_size=beam_size))

    def translate(sentences: Sentences) -> None:
        ordered = sorted(sentences, key=len)
        for start in range(0, len(ordered), batch_size):
            batch = collate_source(ordered[start : start + batch_size]).to(device)
            search(
                step,
                SearchSource(batch, [NUM_STEPS] * len(batch.lengths_B), keeps_weights=False),
                options,
            )

    return translate


def tutorial_greedy(model: TutorialModel, sentences: Sentences, device: torch.device) -> Sentences:
    """One sentence after another, one token after another, each looked at before the next, as the
    tutorial does."""
    translations = []
    for ids in sentences:
        source_SB = torch.tensor([*ids, EOS], device=device).unsqueeze(1)
        states_BSM, hidden_BH = model.encode(source_SB)
        mask_BS = (source_SB != 0).t()
        tokens = [BOS]
        while len(tokens) <= NUM_STEPS:
            previous_B = torch.tensor([tokens[-1]], device=device)
            logits_BV, hidden_BH = model.step(previous_B, hidden_BH, states_BSM, mask_BS)
            tokens.append(int(logits_BV.argmax(1).item()))
        translations.append(tokens[1:])
    return translations


def random_sentences(count: int, num_ids: int) -> Sentences:
    """Ids without EOS, in lengths like those of captions: 12 words on average."""
    generator = torch.Generator().manual_seed(2)
    lengths = (
        torch.normal(12.0, 4.0, (count,), generator=generator).round().clamp(4, 35).int().tolist()
    )
    return [
        torch.randint(4, num_ids, (length,), generator=generator).tolist() for length in lengths
    ]


def differences(
    tutorial: TutorialModel, same: Seq2Seq, sentences: Sentences, device: torch.device
) -> Record:
    """Largest difference of log-probabilities to the tutorial's model, over its own translations,
    and the share of tokens that both choose."""
    tgt_out_BT = torch.tensor(tutorial_greedy(tutorial, sentences, device), device=device)
    source = collate_source(sentences).to(device)
    tgt_in_BT = torch.cat([torch.full_like(tgt_out_BT[:, :1], BOS), tgt_out_BT[:, :-1]], dim=1)
    expected_TBV = tutorial(source.ids_BS.t(), source.lengths_B, tgt_in_BT.t(), 1.1).log_softmax(
        dim=-1
    )
    is_likely_TBV = expected_TBV > -100.0  # EOS, which is forced away, has -10,000
    differences_by_precision: Record = {}
    for name in precisions(device):
        step = step_model(same, name)
        state, log_probs = step.start(source, 1), []
        for ids_B in tgt_in_BT.t():
            tokens, state = step.step(ids_B, state)
            log_probs.append(tokens.log_probs())
        ours_TBV = torch.stack(log_probs)
        differences_by_precision[name] = {
            "log_prob": (ours_TBV - expected_TBV)[is_likely_TBV].abs().max().item(),
            "same_tokens": (ours_TBV.argmax(-1) == expected_TBV.argmax(-1)).float().mean().item(),
        }
    return differences_by_precision


def time_run(run: Path, amount: Amount) -> list[Record]:
    """A trained run on real sentences, each precision: speed, BLEU, milliseconds for one
    sentence."""
    sources, references = prepare_corpus(Run(run).config).text(SPLIT)
    rows = []
    for name in precisions(CPU):
        translator = load(run, "cpu", precision=name)
        by_beam = {
            f"beam_{size}": time_translator(
                translator, sources, references, amount.turns, beam_size=size
            )
            for size in (1, 5)
        }
        singles = (
            time_once(translator, [source], beam_size=1)[0]
            for source in sources[: amount.single_sentences]
        )
        rows.append(
            {"precision": name, **by_beam, "one_sentence_ms": 1000 * statistics.median(singles)}
        )
    return rows


def time_batches(run: Path, num_turns: int, device: torch.device) -> list[Record]:
    """A trained run on real sentences, in batches of several sizes: sentences per second and
    BLEU."""
    sources, references = prepare_corpus(Run(run).config).text(SPLIT if device != CPU else "valid")
    rows = []
    for precision in turns.precisions(device):
        translator = load(run, str(device), precision=precision)
        for beam_size, batch_size in itertools.product(
            (1, 5), BATCH_SIZES if device != CPU else (4,)
        ):
            options = {"beam_size": beam_size, "batch_size": batch_size}
            timed = time_translator(translator, sources, references, num_turns, **options)
            rows.append({"precision": precision, **options, **timed})
    return rows


def time_translator(
    translator: Translator,
    sources: Sequence[str],
    references: list[str],
    num_turns: int,
    **options: Any,
) -> Record:
    """Sentences per second from text to text, and BLEU. The first turn, which allocates memory, is
    not counted."""
    seconds = [time_once(translator, sources, **options) for _ in range(1 + num_turns)]
    bleu = Measure("bleu", references).statistics(seconds[-1][1])
    speed = len(sources) / statistics.median(each for each, _ in seconds[1:])
    return {"sentences_per_s": speed, "bleu": bleu.score().score, "signature": bleu.signature}


def time_once(
    translator: Translator, sources: Sequence[str], **options: Any
) -> tuple[float, list[str]]:
    """Seconds for all sentences, and their translations."""
    began_at = time.perf_counter()
    translations = translator.translate(sources, keep_attention=False, **options)
    return time.perf_counter() - began_at, [translation.text for translation in translations]
