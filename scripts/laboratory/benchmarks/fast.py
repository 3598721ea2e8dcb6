"""The gain of each piece of speed code, switched off in paired turns with everything on; one
thread, CPU time."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest import mock

import torch

from scripts.laboratory.benchmarks.measure import CPU, build_parser, publish
from scripts.laboratory.benchmarks.train import Sizes, our_update, our_updater, updates_over
from scripts.laboratory.harness.turns import Contestant, paired_ratio, precisions, take_turns
from seq2seq_attn.config import SearchConfig, load_config
from seq2seq_attn.data.batch import collate, collate_source
from seq2seq_attn.model import speed
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.fast import product
from seq2seq_attn.runtime.device import Precision
from seq2seq_attn.runtime.memory import reuse_large_blocks
from seq2seq_attn.search.base import SearchSource, find_search
from seq2seq_attn.search.steps import step_model

NUM_TYPES = {"quickstart": 1_933, "multi30k": 3_964, "tutorial": 5_893}
"""target types of the prepared corpora"""
NUM_STEPS = 14
"""of every translation: about what test_2016_flickr takes"""
BASE = "everything on"
Work = Callable[[int], float]
Way = Callable[[], AbstractContextManager[Any]]
IN_TRAINING: dict[str, Way] = {
    BASE: nullcontext,
    "hand-written unroll": lambda: speed.without(["unroll"]),
    "loss that makes its own gradient": lambda: speed.without(["cross_entropy"]),
    "all of these": speed.plain,
}
IN_SEARCH: dict[str, Way] = {
    BASE: nullcontext,
    "prepared steps": lambda: speed.without(["steps"]),
    "packed products": lambda: mock.patch.object(product, "_has_packed_layout", return_value=False),
}


def main(arguments: Sequence[str]) -> None:
    options = build_parser("fast", __doc__).parse_args(arguments)
    torch.set_num_threads(1)
    reuse_large_blocks()
    num_turns, num_sentences = (1, 4) if options.quick else (9, 128)
    rows = {}
    for name in ["quickstart"] if options.quick else NUM_TYPES:
        for precision in precisions(CPU):
            rows[f"training {name}, {precision}"] = gains(
                training(name, precision, num_sentences), num_turns
            )
    for output in ("output/softmax", "output/lexical"):
        for beam_size, label in ((1, "greedy"), (5, "beam 5")):
            row = f"translating multi30k with {output}, {label}, fp32"
            rows[row] = gains(searching(beam_size, output, min(num_sentences, 64)), num_turns)
    publish({"turns": num_turns, "rows": rows}, options.record)


def training(name: str, precision: Precision, num_sentences: int) -> dict[str, Work]:
    """An update with everything on, and without each piece."""
    config = load_config([name])
    num_types = NUM_TYPES[name]
    size = min(config.train.batch.size, num_sentences)
    sentences = random_sentences(size, num_types)
    updater = our_updater(config, Sizes(num_types, num_types), precision)
    batch = collate(sentences, sentences, range(size))
    update = updates_over([batch], our_update(updater, config.train.teacher_forcing.start))

    def without(way: Way) -> Work:
        def work(number: int) -> float:
            with way():
                return update(number)

        return work

    return {piece: without(way) for piece, way in IN_TRAINING.items()}


def searching(beam_size: int, overlay: str, num_sentences: int) -> dict[str, Work]:
    """A batch of sentences, in a fixed number of steps."""
    config = load_config(["multi30k", overlay])
    num_types = NUM_TYPES["multi30k"]
    model = build_model(config.model, num_source_ids=num_types, num_target_ids=num_types)
    source = collate_source(random_sentences(num_sentences, num_types))
    batch = SearchSource(source, [NUM_STEPS] * num_sentences, keeps_weights=False)
    search, options = find_search(SearchConfig(beam_size=beam_size))

    def without(way: Way) -> Work:
        with torch.inference_mode(), way():
            step = step_model(model.eval())

        def work(_: int) -> float:
            search(step, batch, options)
            return num_sentences

        return work

    return {piece: without(way) for piece, way in IN_SEARCH.items()}


def random_sentences(count: int, num_ids: int) -> list[list[int]]:
    """Ids without EOS, in lengths like those of captions: 12 words on average."""
    generator = torch.Generator().manual_seed(2)
    lengths = torch.normal(12.0, 4.0, (count,), generator=generator).round().clamp(4, 35).int()
    sentences = []
    for length in lengths.tolist():
        sentences.append(torch.randint(4, num_ids, (length,), generator=generator).tolist())
    return sentences


def gains(works: Mapping[str, Work], num_turns: int) -> dict[str, float]:
    """Speed with everything on over speed without each piece, from paired turns, in CPU time."""
    contestants = {
        name: Contestant(name, work, clock=time.process_time) for name, work in works.items()
    }
    take_turns(list(contestants.values()), num_turns, warm_up=2)
    base = contestants.pop(BASE)
    return {
        name: round(paired_ratio(base.speeds, one.speeds).value, 3)
        for name, one in contestants.items()
    }
