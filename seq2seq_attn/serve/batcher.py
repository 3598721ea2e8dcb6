"""The lines of all requests wait in one list. A process translates them in batches: while a batch
is translated, new lines arrive for the next batch. A process is used because a thread would share
Python's global lock with the HTTP server."""

import asyncio
import logging
import re
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor
from itertools import chain
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException

from seq2seq_attn.errors import UserError
from seq2seq_attn.serve.worker import (
    Answer,
    Pair,
    Served,
    check_glossary,
    detect,
    join_answers,
    translate_batch,
)
from seq2seq_attn.text.glossary import Glossary

MAX_WAITING = 100_000
"""maximum number of characters in all waiting lines"""
LINE_OVERHEAD = 20
"""number of characters that is added for each line, because a line of one letter also takes time"""
MAX_BATCH_CHARACTERS = 8_192
"""maximum number of characters in a batch of several lines, so that other requests do not wait
long"""

log = logging.getLogger(__name__)


class Line(NamedTuple):
    """A line that waits for its translation."""

    text: str
    pair: Pair
    num_results: int
    split_sentences: str
    glossary: Glossary
    result: asyncio.Future[Any]


class Batcher:
    """Translates lines in batches. Lines that arrive while a batch is translated wait for a later
    batch."""

    def __init__(self, pool: Executor, served: Served) -> None:
        """Use a pool with one worker, which has loaded the runs."""
        self._pool = pool
        self._served = served
        self.waiting: list[Line] = []
        self.counts: dict[str, float] = defaultdict(float)
        self._worker: asyncio.Task[None] | None = None

    async def translate(
        self,
        pair: Pair,
        texts: Sequence[str],
        num_results: int = 1,
        split_sentences: str = "auto",
        *,
        glossary: Glossary = (),
    ) -> list[Answer]:
        """Translate the lines of each text into at most `num_results` texts. Line ends and blank
        lines are kept. Raises HTTPException: too many lines wait, or a line could not be
        translated."""
        num_results = min(num_results, self._served.max_results[pair])
        split = [re.split(r"(\r\n|\r|\n)", text) for text in texts]
        loop = asyncio.get_running_loop()
        lines = []
        for text in chain.from_iterable(split):
            if text.strip():
                future = loop.create_future()
                lines.append(Line(text, pair, num_results, split_sentences, glossary, future))
        size = sum(len(line.text) + LINE_OVERHEAD for line in [*self.waiting, *lines])
        if self.waiting and size > MAX_WAITING:
            raise HTTPException(429, "too many texts are waiting; try again later")
        self.counts["seq2seq_characters_total"] += sum(map(len, texts))
        self.waiting += lines
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        translations = await asyncio.gather(*(line.result for line in lines))
        if None in translations:
            raise HTTPException(500, "not translated")
        rest = iter(translations)
        answers = []
        for pieces in split:
            parts = [next(rest) if piece.strip() else Answer([piece]) for piece in pieces]
            answers.append(join_answers(parts))
        return answers

    async def detect(self, texts: Sequence[str], pairs: Sequence[Pair]) -> dict[str, float]:
        """Detect the source language of texts. The worker does this after the batch that it is
        translating."""
        return await asyncio.wrap_future(self._pool.submit(detect, "\n".join(texts)[:1_000], pairs))

    async def check_glossary(self, pair: Pair, glossary: Glossary) -> None:
        """Raise UserError if the pair is not served or its run cannot require a term."""
        if pair not in self._served.batch_sizes:
            raise UserError(f"{' to '.join(pair)}: not served")
        reason = await asyncio.wrap_future(self._pool.submit(check_glossary, pair, glossary))
        if reason:
            raise UserError(reason)

    async def _work(self) -> None:
        """Translate batches until no line waits."""
        while True:
            batch = self._take()
            if not batch:
                return
            texts = [line.text for line in batch]
            results: list[Any] = [None] * len(batch)
            try:
                submitted = self._pool.submit(translate_batch, *batch[0][1:5], texts)
                results = await asyncio.wrap_future(submitted)
            except BrokenExecutor:
                log.error("%d lines were not translated: their process has died", len(batch))
            self.counts["seq2seq_batches_total"] += 1
            self.counts["seq2seq_lines_total"] += len(batch)
            for line, result in zip(batch, results, strict=True):
                if not line.result.done():  # the result is done if the client hung up
                    line.result.set_result(result)

    def _take(self) -> list[Line]:
        """Take a batch from the waiting lines: the line that has waited longest, and lines of the
        same kind whose lengths are nearest to it. Lines of similar length are fastest to
        translate."""
        self.waiting = [line for line in self.waiting if not line.result.done()]
        if not self.waiting:
            return []
        first = self.waiting[0]
        batch = [line for line in self.waiting if line[1:5] == first[1:5]]
        batch.sort(key=lambda line: abs(len(line.text) - len(first.text)))
        del batch[self._served.batch_sizes[first.pair] :]
        while len(batch) > 1 and sum(len(line.text) for line in batch) > MAX_BATCH_CHARACTERS:
            batch.pop()
        taken = {id(line) for line in batch}
        self.waiting = [line for line in self.waiting if id(line) not in taken]
        return batch
