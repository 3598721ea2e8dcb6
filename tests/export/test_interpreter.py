"""Exported graphs make the steps of the model, for every variant, at other sizes than those they
were traced with: run by PyTorch, by onnxruntime, and by the page's interpreter under node."""

import base64
import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import wasmtime
from onnxruntime import InferenceSession
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from seq2seq_attn.config import ModelConfig, load_config
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.export import program as program_module
from seq2seq_attn.export.model_graphs import Graphs, export_graphs
from seq2seq_attn.export.onnx import write_graphs
from seq2seq_attn.export.program import write_program
from seq2seq_attn.files import read_json
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.decoder.luong import Luong, State
from seq2seq_attn.model.encoder.base import Encoded, Encoder
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.text.vocab import BOS, EOS, PAD
from tests.report.test_web import lint, node

SCRIPT = Path(program_module.__file__).parent / "web" / "interpreter.js"
DRIVER = Path(__file__).parent / "interpreter.mjs"
NUM_IDS, NUM_STEPS = 23, 6
REFUSED = {("output", "history_pointer"): "earlier target tokens"}
SIZES = ("embedding_size=12", "hidden_size=12", "readout_size=12")
KEYS = {
    **{axis: [f"{axis}.name"] for axis in ("attention", "decoder", "encoder", "output")},
    "cell": ["encoder.cell", "decoder.cell"],
    "normalizer": ["attention.normalizer"],
}
"""the settings that name a variant"""
VARIANTS = [(axis, name) for axis in KEYS for name in packaged_variants(axis)]
SAMPLE = [("attention", "additive"), ("cell", "layer_norm_lstm"), ("output", "copy")]
"""of the default tier"""
KERNEL = SCRIPT.with_name("kernel.wasm")
TOLERANCES = {"fp32": 1e-5, "int16": 1e-3, "int8": 3e-1}


class Interpreter:
    """A node process that runs programs, one after another."""

    def __init__(self, process):
        self._process = process

    def ask(self, task):
        """The answer to a task of `interpreter.mjs`."""
        task["kernel"] = base64.b64encode(KERNEL.read_bytes()).decode("ascii")
        print(json.dumps(task), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def memory(self, program, ids_BS):
        """The tensors that the graph `prepare` makes."""
        answer = self.ask({**program, "ids": ids_BS.tolist(), "previous": []})
        assert "error" not in answer, answer
        tensors = []
        for made in answer:
            numbers = [float(number) for number in made["data"]]
            tensors.append(torch.tensor(numbers).view(made["shape"]))
        return tensors

    def steps(self, program, ids_BS, previous_TB, force=None):
        """Log-probabilities [T, B, V] and weights [T, B, S]; the message of an error."""
        task = {"ids": ids_BS.tolist(), "previous": previous_TB.tolist(), "force": force}
        answer = self.ask({**program, **task})
        if "error" in answer:
            return answer["error"]
        made = []
        for name in ("logProbs", "weights"):
            numbers = [[float(number) for number in step[name]] for step in answer]
            made.append(torch.tensor(numbers).view(len(numbers), len(ids_BS), -1))
        return made


@pytest.fixture(scope="module")
def interpreter():
    command = [node(), str(DRIVER), str(SCRIPT)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Interpreter(process)


def sources():
    """Four sentences, of which the second is shorter."""
    ids_BS = torch.randint(4, NUM_IDS, (4, 11))
    ids_BS[:, -1] = EOS
    ids_BS[1, 6:] = torch.tensor([EOS, *[PAD] * 4])
    return ids_BS


def expected_steps(model, ids_BS):
    """The previous ids [T, B], log-probabilities and weights of greedy steps."""
    memory, state = model.prepare(SourceBatch(ids_BS, (ids_BS != PAD).sum(dim=1), ids_BS))
    previous = [torch.full((len(ids_BS),), BOS)]
    log_probs = []
    weights = []
    for _ in range(NUM_STEPS):
        step = model.step(previous[-1], state, memory)
        log_probs.append(model.output.log_probs(step, memory))
        weights.append(step.weights_BS)
        previous.append(log_probs[-1].argmax(dim=1))
        state = step.state
    return torch.stack(previous[:-1]), torch.stack(log_probs), torch.stack(weights)


def graph_steps(graphs, ids_BS, previous_TB):
    """Log-probabilities and weights of the graphs, run by PyTorch."""
    memory, state = graphs.prepare.module()(ids_BS, ids_BS)
    tensors = [[leaf for leaf in leaves if leaf is not None] for leaves in (memory, state)]
    assert [*map(len, tensors)] == [len(graphs.memory), len(graphs.state)]
    step, made = graphs.step.module(), []
    for previous_B in previous_TB:
        *outputs, state = step(previous_B, memory, state)
        made.append(outputs)
    return [torch.stack(steps) for steps in zip(*made, strict=True)]


def onnx_steps(folder, ids_BS, previous_TB):
    """Log-probabilities and weights of the graphs as ONNX, run by onnxruntime."""
    prepare, step = (InferenceSession(folder / f"{name}.onnx") for name in ("prepare", "step"))
    names = [output.name for output in prepare.get_outputs()]
    inputs = {node.name: ids_BS.numpy() for node in prepare.get_inputs()}
    values = dict(zip(names, prepare.run(None, inputs), strict=True))
    made = []
    for previous_B in previous_TB:
        values["previous_ids"] = previous_B.numpy()
        outputs = step.run(None, {node.name: values[node.name] for node in step.get_inputs()})
        names = [output.name.removeprefix("next_") for output in step.get_outputs()]
        values |= dict(zip(names, outputs, strict=True))
        made.append([torch.tensor(values[name]) for name in ("log_probs", "weights")])
    return [torch.stack(steps) for steps in zip(*made, strict=True)]


def build(axis, name):
    """A small model with that variant. The encoder `embeddings` has no recurrence, so that its
    export is fast."""
    torch.manual_seed(1)
    encoder = "bidirectional" if axis == "cell" else "embeddings"
    settings = [
        *SIZES,
        "encoder.hidden_size=6",
        f"encoder.name={encoder}",
        *(f"{key}={name}" for key in KEYS[axis]),
    ]
    config = load_config((), [f"model.{setting}" for setting in settings]).model
    model = build_model(config, num_source_ids=NUM_IDS, num_target_ids=NUM_IDS).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():  # a bias, which is 0 at first
                parameter.normal_(std=0.1)
    return model


@pytest.mark.parametrize(
    ("axis", "name"),
    [
        pytest.param(
            *variant, id="-".join(variant), marks=() if variant in SAMPLE else pytest.mark.slow
        )
        for variant in VARIANTS
        if variant not in REFUSED
    ],
)
@torch.no_grad()
def test_exported_graphs_make_the_steps_of_the_model(interpreter, axis, name, tmp_path):
    model, ids_BS = build(axis, name), sources()
    graphs = export_graphs(model)
    write_graphs(graphs, tmp_path)
    for rows_BS in (ids_BS[:1], ids_BS):
        previous_TB, *expected = expected_steps(model, rows_BS)
        for steps in (
            graph_steps(graphs, rows_BS, previous_TB),
            onnx_steps(tmp_path, rows_BS, previous_TB),
        ):
            assert_close(steps, expected, rtol=0, atol=TOLERANCES["fp32"])
        for weight_format, tolerance in TOLERANCES.items():
            steps = interpreter.steps(write_program(graphs, weight_format), rows_BS, previous_TB)
            assert not isinstance(steps, str), steps
            assert_close(steps, expected, rtol=0, atol=tolerance)


class Renamed(NamedTuple):
    """A state with one name that begins another."""

    cell: Any
    attention: Any
    attentional: Any


class RenamedLuong(Luong):
    def prepare(self, encoded, source):
        memory, state = super().prepare(encoded, source)
        return memory, Renamed(*state)

    def step(self, embedded_BE, state, memory):
        step = super().step(embedded_BE, State(*state), memory)
        return step._replace(state=Renamed(*step.state))


@torch.no_grad()
def test_one_name_of_a_state_may_begin_another():
    model, ids_BS = build("decoder", "luong"), sources()
    model.decoder.__class__ = RenamedLuong
    previous_TB, *expected = expected_steps(model, ids_BS)
    assert_close(graph_steps(export_graphs(model), ids_BS, previous_TB), expected)


def test_the_kernel_is_what_its_text_compiles_to():
    assert wasmtime.wat2wasm(KERNEL.with_suffix(".wat").read_text("utf-8")) == KERNEL.read_bytes()


def test_a_step_for_one_number_of_positions_is_refused():
    model = build("attention", "additive")
    model.decoder.attention.normalizer = lambda scores_BS, mask_BS: torch.full((3, 5), 0.2)
    with pytest.raises(UsageError, match="do not translate like the model"):
        export_graphs(model)


@torch.no_grad()
def test_attention_can_be_forced(interpreter):
    model, ids_BS = build("attention", "additive"), sources()
    program = write_program(export_graphs(model), "fp32")
    forced_BS = torch.zeros(4, 11)
    forced_BS[:, 2] = 1.0
    model.decoder.attention.normalizer = lambda scores_BS, mask_BS: forced_BS
    previous_TB, *expected = expected_steps(model, ids_BS)
    steps = interpreter.steps(program, ids_BS, previous_TB, force=forced_BS.flatten().tolist())
    assert_close(steps, expected, rtol=0, atol=TOLERANCES["fp32"])
    assert (interpreter.steps(program, ids_BS, previous_TB)[0] - expected[0]).abs().max() > 1e-3


@torch.no_grad()
def test_a_tied_matrix_is_stored_once():
    settings = {
        "encoder": {"name": "embeddings", "hidden_size": 6},
        "embedding_size": 12,
        "readout_size": 12,
    }
    config = ModelConfig.model_validate({**settings, "hidden_size": 12, "tie_embeddings": "target"})
    model = build_model(config, num_source_ids=NUM_IDS, num_target_ids=NUM_IDS).eval()
    size = sum(parameter.numel() for parameter in model.parameters())
    weights = write_program(export_graphs(model), "fp32")["weights"]
    assert len(base64.b64decode(weights)) == 4 * size


def _x(ids_BS):
    """Distinct numbers between -1 and 1."""
    return torch.sin(ids_BS.float() + torch.arange(44).view(4, 11) / 50)


COMMON = {
    "pow": lambda x: [x**2, x.abs() ** x, 2.0**x, x.square(), x.sqrt()],
    "log": lambda x: [x.exp(), x.abs().log(), x.abs().log2(), x.log1p(), x.expm1(), x.log10()],
    "clamp": lambda x: [x.clamp(-0.2, 0.5), x.clamp(max=0.1), x.clamp(min=-x.abs(), max=x * x)],
    "where": lambda x: [torch.where(x > 0, x, 0.0), torch.where(x > 0, 1.0, -x)],
    "max": lambda x: [x.max(), *x.max(dim=1), torch.maximum(x, x * x), x.amax((0, 1))],
    "min": lambda x: [x.min(), *x.min(dim=0), torch.minimum(x, x * x), x.argmin(dim=1)],
    "cumsum": lambda x: [x.cumsum(1), x.cumprod(0), (x > 0).cumsum(1)],
    "sum": lambda x: [x.sum(), x.mean(), x.prod(1), x.var(1), x.std(0), x.norm(dim=1)],
    "arange": lambda x: [torch.arange(11) * x, x * torch.ones_like(x), torch.full((4, 1), 2) * x],
    "comparison": lambda x: [x > 0, x.ne(0), (x > 0) & (x < 0.5), (x > 0) | (x < -0.5), ~(x > 0)],
    "logical": lambda x: [torch.logical_and(x > 0, x < 0.5), (x > 0) ^ (x > 0.5), (x > 0).all(1)],
    "round": lambda x: [(4 * x).round(), x.floor(), x.ceil(), x.trunc(), x.sign(), x.abs(), -x],
    "divide": lambda x: [1 / x, x.rsqrt(), x % 0.3, x.fmod(0.3), (9 * x).long() // 2, x / 3],
    "nonlinear": lambda x: [F.silu(x), F.softplus(x), F.leaky_relu(x), x.tan()],
    "order": lambda x: [x.flip(1), *x.topk(3, dim=1), x.roll(2, 1), *x.sort(1)],
    "index": lambda x: [x[:, torch.tensor([3, 1])], x.tril(), F.one_hot((x > 0).long(), 3)],
    "products": lambda x: [x @ x[0], torch.ones(2, 3, 4) @ x, x.unsqueeze(1) @ x.unsqueeze(2)],
    "sizes": lambda x: [x.unflatten(0, (2, 2)), *x.chunk(2, dim=1), x.unsqueeze(0).squeeze()],
    "vector": lambda x: [
        F.normalize(x, dim=1),
        F.cosine_similarity(x, x * x),
        F.rms_norm(x, (11,)),
    ],
    "nan": lambda x: [x.sqrt().isnan(), x.sqrt().nan_to_num(0.5)],
}
"""operations of variants that users may write"""


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PyTorch's own use of its pytrees
@pytest.mark.parametrize("name", COMMON)
@torch.no_grad()
def test_common_operations_give_the_results_of_pytorch(interpreter, name):
    class Common(nn.Module):
        def forward(self, ids_BS, extended_BS):
            return COMMON[name](_x(ids_BS)), []

    ids_BS = sources()
    exported = torch.export.export(Common(), (ids_BS, ids_BS)).run_decompositions({})
    expected, _ = Common()(ids_BS, ids_BS)
    names = [f"memory_{number}" for number in range(len(expected))]
    program = write_program(Graphs(exported, exported, names, []), "fp32")
    made = interpreter.memory(program, ids_BS)
    assert len(made) == len(expected)
    for tensor, wanted in zip(made, expected, strict=True):
        assert tensor.shape == wanted.shape
        assert_close(tensor, wanted.float(), rtol=1e-4, atol=1e-5, equal_nan=True)


def test_the_list_of_operations_is_that_of_the_interpreter(interpreter):
    listed = read_json(SCRIPT.with_name("operations.json"))
    assert interpreter.ask({"lists": True}) == listed, f"run: node {DRIVER} {SCRIPT} --list"


@torch.no_grad()
@pytest.mark.parametrize("name", ["cummax", "bessel_j0"])
def test_an_operation_that_a_page_or_onnx_lacks_is_refused_at_export(tmp_path, name):
    changed = {"cummax": lambda x: x.cummax(dim=1).values, "bessel_j0": torch.special.bessel_j0}
    model = build("attention", "additive")
    plain = model.decoder.attention.normalizer
    model.decoder.attention.normalizer = lambda scores, mask: plain(changed[name](scores), mask)
    graphs = export_graphs(model)
    with pytest.raises(UsageError, match=name):
        write_program(graphs) if name == "cummax" else write_graphs(graphs, tmp_path)


class Last(Encoder):
    """The embeddings, whose summary is that of the last token by the lengths."""

    def __init__(self, embedding):
        super().__init__(embedding.embedding_dim, embedding)

    def forward(self, source):
        values_BSM = self.embedding(source.ids_BS)
        rows_B = torch.arange(source.ids_BS.shape[0])
        final_BM = values_BSM[rows_B, source.lengths_B - 1]
        return Encoded(values_BSM, source.mask_BS, final_BM, values_BSM)


@torch.no_grad()
def test_an_encoder_may_read_lengths_and_many_long_sentences_find_room(interpreter):
    model = build("attention", "additive")
    model.encoder = Last(model.encoder.embedding)
    program = write_program(export_graphs(model), "fp32")
    for ids_BS in (sources(), torch.randint(4, NUM_IDS, (60, 1000))):
        previous_TB, *expected = expected_steps(model, ids_BS)
        steps = interpreter.steps(program, ids_BS, previous_TB)
        assert_close(steps, expected, rtol=0, atol=TOLERANCES["fp32"])


@torch.no_grad()
def test_unknown_operations_and_arguments_are_named(interpreter):
    program = write_program(export_graphs(build("attention", "dot")))
    steps = partial(interpreter.steps, program, sources(), torch.full((1, 4), BOS))
    nodes = program["program"]["step"]["nodes"]
    nodes[-1][2].append("no_such_argument")
    assert "no_such_argument" in steps()
    nodes[-1][0] = "no_such_operation"
    assert "no_such_operation" in steps()


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PyTorch's own use of its pytrees
def test_an_argument_that_json_lacks_is_named():
    class Turn(nn.Module):
        def forward(self, x):
            return x * 2j

    exported = torch.export.export(Turn(), (torch.ones(2),)).run_decompositions({})
    with pytest.raises(UsageError, match="2j"):
        write_program(Graphs(exported, exported, [], []))


def test_the_linter_finds_nothing(tmp_path):
    used = tmp_path / "interpreter.js"
    used.write_text(
        f"{SCRIPT.read_text(encoding='utf-8')}\nwindow.Seq2Seq = Seq2Seq;\n", encoding="utf-8"
    )
    result = lint(used)
    assert result.returncode == 0, result.stdout
