"""Search options: what a call says, on top of what a run is configured to do."""

from __future__ import annotations

from itertools import product

import pytest

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.errors import UsageError
from seq2seq_attn.search.options import AS_CONFIGURED, SearchOptions

CONFIGURED = SearchConfig(beam_size=7, length_penalty=0.6, max_length_ratio=3.0, max_length_extra=4, batch_size=9)


def test_nothing_said_is_as_configured() -> None:
    options = AS_CONFIGURED.over(CONFIGURED)
    assert options.model_dump(include=set(SearchConfig.model_fields)) == CONFIGURED.model_dump()
    assert (options.n_best, options.unk, options.keep_attention) == (1, "keep", True)


def test_what_a_call_says_goes_first_even_where_it_is_the_default() -> None:
    given = SearchOptions.given(beam_size=SearchConfig().beam_size, length_penalty=None, batch_size=2)
    options = given.over(CONFIGURED)
    assert (options.beam_size, options.length_penalty, options.batch_size) == (SearchConfig().beam_size, 0.6, 2)
    assert options.over(SearchConfig(beam_size=99)) == options


def test_the_limit_of_a_length_is_of_its_source() -> None:
    options = AS_CONFIGURED.over(CONFIGURED)
    assert [options.max_length(number) for number in (0, 1, 10)] == [4, 7, 34]
    unlimited = AS_CONFIGURED.over(SearchConfig(max_length_ratio=None, max_length_extra=0))
    assert [unlimited.max_length(number) for number in (0, 10)] == [1, 20]


def test_more_translations_than_hypotheses_are_refused() -> None:
    with pytest.raises(UsageError, match="n_best=3: more than beam_size=2; set a larger beam_size"):
        SearchOptions.given(n_best=3, beam_size=2)
    many = SearchOptions.given(n_best=8)  # whether that is too many, the run decides
    assert many.over(SearchConfig(beam_size=8)).n_best == 8
    with pytest.raises(UsageError, match="n_best=8: more than beam_size=7; set a larger beam_size"):
        many.over(CONFIGURED)


@pytest.mark.parametrize("option", ["temperature", "top_k", "top_p", "seed", "num_samples"])
def test_options_of_samples_are_refused_where_none_are_drawn(option: str) -> None:
    with pytest.raises(UsageError, match=rf"{option}=1(\.0)?: a beam search draws no samples"):
        SearchOptions.given(**{option: 1})
    assert getattr(SearchOptions.given(**{option: 1}, method="mbr"), option) == 1
    with pytest.raises(UsageError, match="num_samples=2: only method 'mbr' reads it"):
        SearchOptions.given(num_samples=2, method="sample")


@pytest.mark.parametrize(
    ("option", "method"),
    [*product(["beam_size", "coverage_penalty"], ["sample", "mbr"]), ("length_penalty", "mbr")],
)
def test_options_of_the_beam_are_refused_where_a_call_draws_samples(option: str, method: str) -> None:
    with pytest.raises(UsageError, match=rf"^{option}=1(\.0)?: no effect with method '{method}'; leave it out"):
        SearchOptions.given(**{option: 1}, method=method)
    configured = SearchConfig(beam_size=7, coverage_penalty=0.2)
    assert (
        SearchOptions.given(method=method).over(configured).beam_size == 7
    )  # a run's settings are no wish of the call


def test_unknown_options_are_told_by_the_options_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"^unknown search option 'bean_size'; did you mean 'beam_size'\?$"):
        SearchOptions.given(bean_size=3)
    with pytest.raises(UsageError, match=r"^unknown search option 'xyz'; the options are beam_size, .*, unk, "):
        SearchOptions.given(xyz=3)
