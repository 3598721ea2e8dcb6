"""Validation: perplexity, the sample translations, and the mode of the model afterwards."""

import re
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.runtime.signals import StopRequest
from seq2seq_attn.train.distributed import ALONE
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.validate import Validator
from seq2seq_attn.translate.translator import Translator
from tests.train.runs import events


@pytest.fixture
def parts(toy_config):
    """What a `Validator` is built from."""
    config = toy_config("train.validation.num_samples=3", "search.batch_size=5")
    model = SimpleNamespace(has_attention=True, copies_source=False)
    updater = SimpleNamespace(
        model=model, device=torch.device("cpu"), precision="fp32", group=ALONE
    )
    return prepare_corpus(config), config, updater


def test_a_validation_of_a_model_whose_tokens_are_all_equally_probable(parts):
    """Perplexity is per target token with the end of sentence, and samples are spread over the
    split."""
    prepared, config, updater = parts
    num_target_ids = len(prepared.target_vocab)
    model = build_model(
        config.model, num_source_ids=len(prepared.source_vocab), num_target_ids=num_target_ids
    )
    with torch.no_grad():
        model.output.projection.weight.zero_()
        model.output.projection.bias.zero_()
    updater.model = model
    validation = Validator(*parts, StopRequest()).validate()
    assert validation.scores["perplexity"] == pytest.approx(num_target_ids, rel=1e-5)
    sources, references = prepared.text("valid")
    assert len(sources) == 24
    expected = [(sources[i], references[i]) for i in (0, 8, 16)]
    assert [(sample["source"], sample["reference"]) for sample in validation.samples] == expected
    stop = StopRequest()
    stop.signal_number = signal.SIGINT
    assert Validator(*parts, stop).validate() is None


def test_out_of_memory_names_what_to_lower(parts, monkeypatch):
    def fail(*args, **kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory")

    validator = Validator(*parts, StopRequest())
    parts[2].model = torch.nn.Identity()
    monkeypatch.setattr(Translator, "__init__", fail)
    with pytest.raises(UserError, match=r"search\.batch_size=5 .*search\.batch_size=2"):
        validator.validate()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["search.unk=copy", "model.attention.name=fixed"], "unk"),
        (["search.method=diverse", "search.num_groups=5"], "num_groups=5"),  # of a beam of 1
        (["search.scorers={fusion: {run: missing}}"], "missing"),
    ],
)
def test_a_search_that_cannot_translate_is_refused_before_a_run_is_written(
    toy_config, in_tmp_path, settings, message
):
    with pytest.raises(UserError, match=message):
        train(toy_config(*settings))
    assert not [*Path("runs").glob("*")]


def test_only_the_best_translation_is_validated(train_toy):
    run = train_toy("search.n_best=3", "train.max_updates=1")
    assert "bleu" in run.load_best().values


@pytest.mark.parametrize(
    ("target", "is_warned"), [("Ein Hund rennt hier", False), ("红色的球", True)]
)
def test_a_bleu_of_few_targets_is_warned_about(parts, monkeypatch, caplog, target, is_warned):
    sources, _ = parts[0].text("valid")
    monkeypatch.setattr(PreparedCorpus, "text", lambda *_: (sources, [target] * len(sources)))
    Validator(*parts, StopRequest())
    assert ("train.validation.metric=chrf" in caplog.text) == is_warned


def peak_mib():
    """The peak of this process's memory since the last call."""
    status = Path("/proc/self/status").read_text()
    Path("/proc/self/clear_refs").write_text("5")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_line_of_a_thousand_tokens_takes_little_more_memory(train_toy, toy_corpus, tmp_path):
    peaks = []
    for number, line in enumerate(["", "Hund" + " Hund" * 199]):
        for language in ("de", "en"):
            text = (toy_corpus / f"valid.{language}").read_text()
            if line:
                text = f"{line}\n{text}"
            (tmp_path / f"valid.{language}").write_text(text)
        settings = [
            "model.embedding_size=512",
            "model.hidden_size=512",
            "model.encoder.hidden_size=512",
            f"data.data_dir={tmp_path}",
            f"data.valid={tmp_path / 'valid'}",
            "train.max_updates=1",
            "train.validation.num_pairs=8",
        ]
        peak_mib()
        run = train_toy(*settings, name=f"{number}")
        peaks.append(peak_mib())
        [validation] = events(run, "validation")
        if line:
            assert validation["samples"][0]["source"] == line
    assert peaks[1] - peaks[0] < 400
