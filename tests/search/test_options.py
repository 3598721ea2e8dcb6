"""Options of a search: what a call says, on top of what a run is configured to do."""

from pathlib import Path

import pytest

from seq2seq_attn.config import SearchConfig, config_from_dict, load_config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model import variants
from seq2seq_attn.model.variants import SEARCH, import_variants, packaged_variants
from seq2seq_attn.search import beam, mbr
from seq2seq_attn.search.base import find_search
from seq2seq_attn.train.check import check_config

CONFIGURED = SearchConfig(
    beam_size=7, length_penalty=0.6, max_length_ratio=3.0, max_length_extra=4, batch_size=9
)


def options(config=CONFIGURED, **values):
    return find_search(config, values)[1]


def test_the_folder_is_the_registry():
    names = packaged_variants(SEARCH)
    assert {"beam", "diverse", "greedy", "mbr", "required", "sample"} == set(names)
    for name in names:
        method, values = find_search(SearchConfig(method=name))
        assert method.__module__ == f"seq2seq_attn.search.{name}"
        assert isinstance(values, SearchConfig)


def test_what_a_call_says_goes_first_even_where_it_is_the_default():
    found = options(
        beam_size=SearchConfig().beam_size,
        length_penalty=None,
        batch_size=2,
    )
    assert (found.beam_size, found.length_penalty, found.batch_size) == (
        SearchConfig().beam_size,
        0.6,
        2,
    )


def test_the_limit_of_a_length_is_of_its_source():
    assert [options().max_length(number) for number in (0, 1, 10)] == [4, 7, 34]
    unlimited = SearchConfig(max_length_ratio=None, max_length_extra=0)
    assert [unlimited.max_length(number) for number in (0, 10)] == [1, 20]


def test_a_method_s_own_options_come_from_a_call_or_a_configuration():
    assert (
        options(
            method="diverse",
            beam_size=6,
            num_groups=3,
        ).num_groups
        == 3
    )
    configured = load_config(
        ["quickstart"], ["search.method=diverse", "search.num_groups=5"]
    ).search
    assert options(configured).num_groups == 5
    assert config_from_dict({"search": configured.model_dump()}).search == configured
    assert type(options(configured, method="beam")) is beam.Options  # without num_groups
    assert type(options(configured, method="mbr")) is mbr.Options


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"beam_size": 0}, "beam_size=0"),
        ({"unk": "drop"}, "unk='drop'"),
        ({"n_best": 8}, "beam_size=7"),
        (
            {
                "n_best": 8,
                "method": "mbr",
                "num_samples": 4,
            },
            "num_samples=4",
        ),
        ({"method": "diverse", "num_groups": 3}, "num_groups=3.*beam_size=7"),
        ({"bean_size": 3}, "search.bean_size.*beam_size"),
        ({"num_groups": 3}, "search.num_groups.*'beam'"),
        ({"method": "bean"}, "search.method='bean'.*'beam'"),
    ],
)
def test_values_outside_their_limits_and_unknown_options_are_refused(wrong, named):
    with pytest.raises(UsageError, match=named):
        options(**wrong)


@pytest.mark.parametrize(
    "setting", ["search.bean_size=3", "search.method=bean", "search.scorers={fusoin: {}}"]
)
def test_a_configuration_is_checked_before_training(setting):
    with pytest.raises(UsageError, match=setting.partition("=")[0]):
        check_config(load_config(["quickstart"], [setting]))


@pytest.mark.usefixtures("in_tmp_path")
def test_a_method_without_types_is_refused(monkeypatch):
    """`tests/cli/test_import.py` has a method of a module with its own options."""
    monkeypatch.setattr(variants, "_imported", {})
    Path("untyped.py").write_text("def search(model, source, options): ...\n")
    import_variants("untyped")
    with pytest.raises(UsageError, match="untyped"):
        options(method="untyped")
