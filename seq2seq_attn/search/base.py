"""The contracts of search methods and scorers, of the models that a search reads, and of the
hypotheses that it returns.

A search method is a file of this folder, or a module named by `--import`, with a function

    search(model: StepModel, source: SearchSource, options: SearchConfig) -> list[list[Hypothesis]]

The function returns at least one hypothesis per sentence, best first. A method that adds options
annotates the third parameter with a subclass of `SearchConfig` that defines them.

A scorer changes the scores that rank the next tokens:

    total(y_1 ... y_t) = total(y_1 ... y_t-1) + rescore(log p(. | y_<t, x))[y_t]

Scorers stack: the first scorer reads the model's log-probabilities, and each further scorer reads
the scores of the scorer before it. A search keeps the hypotheses with the highest totals. The
`log_prob` of a hypothesis stays the model's log-probability; its `score` is computed from the
total.

A row is a hypothesis that the search extends. A search has the same number of rows for each
sentence, for example one for each slot of a beam.

Shapes: B sentences, K rows of a sentence, R = B * K rows in search, S source positions, V target
vocabulary, J candidates of a row, T target positions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
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
    """The log-probabilities of the next token of each row, and the attention of the step."""

    @property
    def weights_RS(self) -> Tensor | None:
        """The attention weights of the step.

        They are None for a model without attention over source positions, such as a model with a
        fixed vector.
        """
        ...

    def top(
        self, num_candidates: int, *, forbidden: Sequence[int] = (), stride: int = 1
    ) -> tuple[Tensor, Tensor]:
        """Return `log_probs_RJ` (float32) and `ids_RJ` of the most probable tokens, best first.

        Ties are broken by the lower id.

        Args:
            num_candidates: the maximum number of tokens per row; J = min(num_candidates, V).
            forbidden: ids that are not returned.
            stride: a stride of K returns tokens for rows 0, K, 2 K, ... only.
        """
        ...

    def log_probs(self) -> Tensor:
        """Return `log_probs_RV` (float32) of all tokens.

        The shape is [R, V + S] for a model whose output copies source positions.
        """
        ...


class StepModel(Protocol[StateT]):
    """A translation model that makes one decoder step at a time, as a search needs it.

    Rows of a sentence are adjacent: row r belongs to sentence r // K.
    """

    def start(self, source: SourceBatch, rows_per_sentence: int) -> StateT:
        """Encode B sentences and return the state before the first step.

        The state has R = B * `rows_per_sentence` rows.
        """
        ...

    def step(self, prev_ids_R: Tensor, state: StateT) -> tuple[NextTokens, StateT]:
        """Read the previous token of each row (BOS at first), and return the next tokens and the
        next state."""
        ...

    def reorder(self, state: StateT, index_R: Tensor) -> StateT:
        """Return the state whose row i is the old row `index_R[i]`.

        Whole sentences may be removed. A sentence that stays in the batch has K rows, each selected
        from the old rows of the same sentence.
        """
        ...


class TokenScores(NamedTuple):
    """`NextTokens` that are stored as the log-probabilities of all tokens."""

    log_probs_RV: Tensor
    weights_RS: Tensor | None

    def top(
        self, num_candidates: int, *, forbidden: Sequence[int] = (), stride: int = 1
    ) -> tuple[Tensor, Tensor]:
        log_probs_RV = self.log_probs_RV[::stride]
        if forbidden:
            log_probs_RV = forbid_tokens_(log_probs_RV.clone(), forbidden)
        return top_tokens(log_probs_RV, num_candidates)

    def log_probs(self) -> Tensor:
        return self.log_probs_RV


class Hypothesis(NamedTuple):
    """A translation of a sentence, as ids of target tokens."""

    ids: list[int]
    """target tokens without BOS and EOS; ids from the target vocabulary's size on are copies of
    source positions"""
    log_prob: float
    """sum of the model's log-probabilities of the tokens in nats, with EOS if the hypothesis is
    finished"""
    score: float
    """the score that ranks hypotheses (`beam.py`)"""
    is_finished: bool
    """whether the hypothesis ended with EOS"""
    is_cut: bool
    """whether the length limit cut this hypothesis, or another hypothesis with a higher score"""
    weights_TS: npt.NDArray[np.float32] | None
    """attention weights of each step over the sentence's source positions, with EOS and without
    padding; rows sum to 1 if the attention is a distribution. A finished hypothesis has a row for
    EOS: T = len(ids) + 1"""


class SearchSource(NamedTuple):
    """The sentences of a search, with limits and prefixes of their hypotheses."""

    batch: SourceBatch
    max_lengths_B: Sequence[int]
    """maximum number of tokens of a sentence's hypotheses, EOS included, at least 1"""
    prefixes: Sequence[Sequence[int]] = ()
    """for each sentence, the ids that its hypotheses begin with; () if no sentence has a prefix.
    Ids of source positions count as UNK if the model copies no source tokens"""
    scorers: Sequence[Scorer] = ()
    """the scorers of the search; the first reads the model's log-probabilities"""
    keeps_weights: bool = True
    """whether the search returns the attention weights of hypotheses"""
    continuing: Sequence[int] = ()
    """ids of tokens that continue a word, which must not follow a required word"""
    to_ids: Callable[[str], list[int]] = lambda text: []
    """returns the target ids of a text"""
    to_text: Callable[[int, Hypothesis], str] = lambda sentence, hypothesis: ""
    """returns the text of a hypothesis; `sentence` is the index of its sentence in the batch"""


class Scorer(ABC):
    """Changes the scores of the next tokens.

    A scorer keeps nothing on `self` between steps. Its state holds a row for each row of the search
    (`model/layers.py`).
    """

    def start(self, source: SearchSource, rows_per_sentence: int) -> Any:
        """Return the state before the first step."""
        return None

    def read_weights(self, weights_RS: Tensor | None, state: Any) -> Any:
        """Return the state after reading the attention weights of the step, before `rescore`. They
        are None for a model without attention over source positions."""
        return state

    @abstractmethod
    def rescore(self, scores_RV: Tensor, tokens_RT: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Return new scores of the next tokens, float32, and the next state.

        A score of -inf excludes a token. No score may be above 0, because a beam ends when no
        hypothesis can reach a higher total than its finished hypotheses.

        Args:
            scores_RV: scores of the next tokens, which must not be changed in place.
            tokens_RT: the tokens of each row so far, without BOS.
            state: the state before this step.
        """

    def reorder(self, state: Any, index_R: Tensor) -> Any:
        """Return the state whose row i is the old row `index_R[i]`."""
        return select_rows(state, index_R)


Search = Callable[[StepModel[Any], SearchSource, Any], list[list[Hypothesis]]]


def find_search(
    config: SearchConfig, options: Mapping[str, object] | None = None
) -> tuple[Search, SearchConfig]:
    """Return the search method and its options.

    Values of `options` that are not None take precedence over values of `config`.

    Raises:
        UsageError: a method or option is unknown, or a value is outside its limits.
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
    if name != config.method:  # options that only the configured method has are left out
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
