"""Translate the lines of all requests in batches.

Lines wait in a list. While another process translates a batch, new lines arrive for the next batch.
A thread would share Python's global lock with the HTTP server, so a process translates.
"""

import asyncio
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from starlette.exceptions import HTTPException

from seq2seq_attn.serve.worker import Answer, Pair, Served, join_answers, translate_batch
from seq2seq_attn.text.glossary import Glossary

MAX_WAITING = 100_000
"""maximum number of characters in all waiting lines"""
MAX_LINES = 200
"""maximum number of waiting lines of a request, so that other requests need not wait for a long
document"""
LINE_OVERHEAD = 20
"""number of characters that are added for each line, because even a short line takes time"""
MAX_BATCH_CHARACTERS = 8_192
"""maximum number of characters in a batch of several lines, so that other requests do not wait
long"""

log = logging.getLogger(__name__)


ResultT = TypeVar("ResultT")


class Line(NamedTuple):
    """A line that waits for its translation."""

    text: str
    kind: tuple[Pair, dict[str, Any]]
    """the languages and the options of `translate_lines`, which are equal for all lines of a
    batch"""
    result: asyncio.Future[Any]
    """the answer to the line, or None if the line could not be translated"""


class Batcher:
    """Translates lines in batches. Lines that arrive while a batch is translated wait for a later
    batch."""

    def __init__(self, pool: Executor, served: Served) -> None:
        """Use a pool with one worker process, which has loaded the runs."""
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
        glossary: Glossary = (),
    ) -> list[Answer]:
        """Return for each text at most `num_results` translations, which keep line ends and blank
        lines.

        Raises:
            HTTPException: too many lines wait, or a line could not be translated.
        """
        options = {
            "n_best": min(num_results, self._served[pair].max_results),
            "split_sentences": split_sentences,
            "glossary": glossary,
        }
        split_texts = [re.split(r"(\r\n|\r|\n)", text) for text in texts]
        loop = asyncio.get_running_loop()
        lines = []
        for piece in chain.from_iterable(split_texts):
            if piece.strip():
                lines.append(Line(piece, (pair, options), loop.create_future()))
        first_lines = [*self.waiting, *lines[:MAX_LINES]]
        size = sum(len(line.text) + LINE_OVERHEAD for line in first_lines)
        if self.waiting and size > MAX_WAITING:
            raise HTTPException(429, "too many texts are waiting; try again later")
        self.counts["seq2seq_characters_total"] += sum(map(len, texts))
        translated = []
        for start in range(0, len(lines), MAX_LINES):
            waiting = lines[start : start + MAX_LINES]
            self.waiting += waiting
            if self._worker is None or self._worker.done():
                self._worker = asyncio.create_task(self._work())
            translated += await asyncio.gather(*(line.result for line in waiting))
        results = iter(translated)
        answers = []
        for pieces in split_texts:
            parts = [next(results) if piece.strip() else Answer([piece]) for piece in pieces]
            if None in parts:
                raise HTTPException(500, "not translated")
            answers.append(join_answers(parts))
        return answers

    async def run(self, function: Callable[..., ResultT], *arguments: Any) -> ResultT:
        """Return the result of a function that the worker process calls after its present work."""
        return await asyncio.wrap_future(self._pool.submit(function, *arguments))

    async def _work(self) -> None:
        """Translate batches until no line waits."""
        while batch := self._take():
            texts = [line.text for line in batch]
            results: list[Answer | None] = [None] * len(batch)
            try:
                results = await self.run(translate_batch, *batch[0].kind, texts)
            except BrokenExecutor:
                log.error("%d lines were not translated: their process has died", len(batch))
            self.counts["seq2seq_batches_total"] += 1
            self.counts["seq2seq_lines_total"] += len(batch)
            for line, result in zip(batch, results, strict=True):
                if not line.result.done():  # cancelled if the client has hung up
                    line.result.set_result(result)

    def _take(self) -> list[Line]:
        """Remove a batch from the waiting lines and return the batch: the line that has waited
        longest, and lines of the same kind with the most similar lengths, because lines of similar
        length are fastest to translate."""
        self.waiting = [line for line in self.waiting if not line.result.done()]
        if not self.waiting:
            return []
        first = self.waiting[0]
        batch = [line for line in self.waiting if line.kind == first.kind]
        batch.sort(key=lambda line: abs(len(line.text) - len(first.text)))
        batch = batch[: self._served[first.kind[0]].batch_size]
        while len(batch) > 1 and sum(len(line.text) for line in batch) > MAX_BATCH_CHARACTERS:
            batch.pop()
        taken = {line.result for line in batch}
        self.waiting = [line for line in self.waiting if line.result not in taken]
        return batch
