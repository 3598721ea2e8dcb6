"""The contracts of search methods and scorers, the models that they read, and the hypotheses that a
search returns.

A method is a file of this folder, or of a module named by `--import`, with a function

    search(model: StepModel, source: SearchSource, options: SearchConfig) -> list[list[Hypothesis]]

that returns hypotheses per sentence, best first, at least one each. A method with options of its
own annotates the third parameter with a subclass of `SearchConfig` that has them.

A scorer changes what ranks the next tokens:

    total(y_1 ... y_t) = total(y_1 ... y_t-1) + rescore(log p(. | y_<t, x))[y_t]

Scorers stack: each reads the scores of the one before it, the first the model's log-probabilities.
A search keeps the hypotheses with the highest totals. A hypothesis's `log_prob` stays the model's,
its `score` comes from its total.

Shapes: B sentences, K rows (beams) of a sentence, R = B * K rows in search, S source positions, V
target vocabulary, J candidates of a row, T target positions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError
from torch import Tensor

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.config.explain import explain
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.layers import forbid_tokens_, select_rows, top_tokens
from seq2seq_attn.model.variants import SEARCH, find_build, read_parameters

StateT = TypeVar("StateT")


class NextTokens(Protocol):
    """Probabilities of the next token of each row."""

    @property
    def weights_RS(self) -> Tensor | None:
        """The attention of the step; None for models without attention over source positions, such
        as those with a fixed vector."""
        ...

    def top(
        self, num_candidates: int, *, forbidden: Sequence[int] = (), stride: int = 1
    ) -> tuple[Tensor, Tensor]:
        """`log_probs_RJ` (float32) and `ids_RJ` of the most probable tokens that are not forbidden,
        best first, ties by the lower id; J = min(num_candidates, V). `stride` = K: only for rows 0,
        K, 2 K, ..."""
        ...

    def log_probs(self) -> Tensor:
        """`log_probs_RV` of all tokens, float32; [R, V + S] with an output that copies source
        positions."""
        ...


class StepModel(Protocol[StateT]):
    """The interface that search needs from a translation model: one decoder step at a time. Rows of
    a sentence are adjacent: row r belongs to sentence r // K."""

    def start(self, source: SourceBatch, rows_per_sentence: int) -> StateT:
        """Encode B sentences and give the state before the first step, with R = B *
        `rows_per_sentence` rows."""
        ...

    def step(self, prev_ids_R: Tensor, state: StateT) -> tuple[NextTokens, StateT]:
        """One step after the previous tokens (BOS at first)."""
        ...

    def reorder(self, state: StateT, index_R: Tensor) -> StateT:
        """The state whose row i is the old row `index_R[i]`. Whole sentences may be removed. A
        sentence that stays has K rows, each selected from its own old rows."""
        ...


class TokenScores:
    """`NextTokens` with all log-probabilities."""

    def __init__(self, log_probs_RV: Tensor, weights_RS: Tensor | None) -> None:
        self._log_probs_RV = log_probs_RV
        self.weights_RS = weights_RS

    def top(
        self, num_candidates: int, *, forbidden: Sequence[int] = (), stride: int = 1
    ) -> tuple[Tensor, Tensor]:
        log_probs_RV = self._log_probs_RV[::stride]
        if forbidden:
            log_probs_RV = forbid_tokens_(log_probs_RV.clone(), forbidden)
        return top_tokens(log_probs_RV, num_candidates)

    def log_probs(self) -> Tensor:
        return self._log_probs_RV


@dataclass(frozen=True)
class Hypothesis:
    """A translation of a sentence, as ids."""

    ids: list[int]
    """target tokens without BOS and EOS; ids from the target vocabulary's size on are copies of
    source positions"""
    log_prob: float
    """sum of the model's log-probabilities of the tokens in nats, with EOS if the hypothesis is
    finished"""
    score: float
    """the score that ranks hypotheses (`beam.py`)"""
    is_finished: bool
    """it ended with EOS"""
    is_cut: bool
    """the length limit cut this hypothesis, or another hypothesis with a higher score"""
    weights_TS: npt.NDArray[np.float32] | None
    """attention of each step, including the EOS step (T = len(ids) + 1 if finished), over the
    sentence's source positions (EOS included, no padding); rows sum to 1"""


class SearchSource(NamedTuple):
    """The sentences of a search. A method that needs no text leaves `to_ids` and `to_text`
    alone."""

    batch: SourceBatch
    max_lengths_B: Sequence[int]
    """maximum number of tokens of a sentence's hypotheses, EOS included, at least 1"""
    prefixes: Sequence[Sequence[int]] = ()
    """ids that each sentence's hypotheses begin with; empty: no prefixes. Ids of source positions
    count as UNK if the model copies no source tokens"""
    scorers: Sequence[Scorer] = ()
    """in the order in which they stack"""
    keeps_weights: bool = True
    """whether hypotheses come with attention weights"""
    to_ids: Callable[[str], list[int]] = lambda text: []
    """the target ids of a text"""
    to_text: Callable[[int, Hypothesis], str] = lambda sentence, hypothesis: ""
    """the text of a hypothesis of the sentence with that index in the batch"""


class Scorer(ABC):
    """Keeps nothing on `self` between steps; its state holds a row for each row of the search
    (`model/layers.py`)."""

    def start(self, source: SearchSource, rows_per_sentence: int) -> Any:
        """The state before the first step."""
        return None

    @abstractmethod
    def rescore(self, scores_RV: Tensor, tokens_RT: Tensor, state: Any) -> tuple[Tensor, Any]:
        """New scores of the next tokens, float32, and the next state. `tokens_RT` are the tokens so
        far, without BOS.

        -inf excludes a token. No score may be above 0: a beam ends when no total can rise above
        those of its finished hypotheses. `scores_RV` is not changed in place.
        """

    def reorder(self, state: Any, index_R: Tensor) -> Any:
        """As `StepModel.reorder`."""
        return select_rows(state, index_R)


Search = Callable[[StepModel[Any], SearchSource, Any], list[list[Hypothesis]]]


def find_search(
    config: SearchConfig, options: Mapping[str, object] | None = None
) -> tuple[Search, SearchConfig]:
    """The search method and its options: those of `config`, with those of `options` that are not
    None on top.

    Raises:
        UsageError: an unknown method or option, or a value outside its limits.
    """
    options = {name: value for name, value in (options or {}).items() if value is not None}
    name = str(options.get("method", config.method))
    search: Search = find_build(SEARCH, name, function="search")
    kinds = [parameter.annotation for parameter in read_parameters(search).values()]
    kind = kinds[-1] if len(kinds) == 3 else None
    if not (isinstance(kind, type) and issubclass(kind, SearchConfig)):
        raise UsageError(
            f"search.method={name!r}: expected a function of a model, a source and options, the "
            "last annotated as SearchConfig or a subclass that is known at run time"
        )
    configured = config.model_dump(exclude_unset=True)
    if name != config.method:  # without the former method's own options
        configured = {key: value for key, value in configured.items() if key in kind.model_fields}
    values = {**configured, **options}
    for key in values:
        if key not in kind.model_fields:
            raise UsageError(
                f"search.{key}: not an option of method {name!r}; its options are "
                f"{', '.join(kind.model_fields)}"
            )
    try:
        return search, kind.model_validate(values)
    except ValidationError as error:
        raise UsageError(explain(error, values)) from None
