"""The settings of training: batches, optimizer, schedules, validation, objectives."""

from typing import Annotated, Literal

from pydantic import Field

from seq2seq_attn.config.types import (
    BeamSize,
    FilePath,
    Fraction,
    LearningRate,
    NonNegativeFloat,
    NonNegativeInt,
    NumWorkers,
    Options,
    PositiveFloat,
    PositiveInt,
    Probability,
    Section,
    Weight,
)

ImportedName = Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]


class BatchConfig(Section):
    """Batches."""

    size: PositiveInt = 128
    """The maximum number of sentence pairs or target tokens in a micro-batch."""
    unit: Literal["sentences", "tokens"] = "sentences"
    accumulate: PositiveInt = 1
    """The number of micro-batches whose gradients are summed for an update."""


class OptimizerConfig(Section):
    """The optimizer."""

    name: Literal["adam", "adamw"] = "adam"
    learning_rate: LearningRate = 1e-3
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: PositiveFloat = 1e-8
    weight_decay: NonNegativeFloat = 0.0
    """The weight decay, which is decoupled from the gradient in `adamw`."""
    clip_norm: PositiveFloat | None = 1.0
    """Gradients with a larger norm are scaled down to this norm. None means no clipping."""
    average_decay: Fraction = 0.0
    """Decay of an exponential moving average of the parameters. If it is not 0, the averaged
    parameters are validated and saved as the best model."""


class ScheduleConfig(Section):
    """The learning rate schedule: linear warm-up, then the named shape."""

    name: Literal["constant", "inverse_sqrt", "cosine", "trapezoid"] = "constant"
    warmup_updates: NonNegativeInt = 0
    final_ratio: Probability = 0.0
    """The ratio of the learning rate at the end of `cosine` and `trapezoid`."""
    cooldown: Probability = 0.2
    """The share of all updates, at the end of training, in which `trapezoid` lowers the rate."""


class TeacherForcingConfig(Section):
    """The probability that a decoder step sees the reference token. A choice is drawn per token.
    The probability changes from `start` to `end` in `num_updates` updates (Bengio et al. 2015,
    section 2.4)."""

    schedule: Literal["constant", "linear"] = "constant"
    start: Probability = 1.0
    end: Probability = 0.0
    num_updates: PositiveInt = 10_000


class ValidationConfig(Section):
    """When to validate, and how to choose the best model."""

    every_updates: PositiveInt | None = None
    """The number of updates between validations. None means one validation per epoch."""
    metric: Literal["bleu", "perplexity", "chrf", "exact", "cer", "wer"] | ImportedName = "bleu"
    """The metric by which the best model is chosen; `MODULE:CLASS` for a metric of your own."""
    patience: PositiveInt | None = None
    """The number of consecutive validations without a better score after which training stops. None
    means no early stopping."""
    beam_size: BeamSize = 1
    """The beam size of validation. 1 is greedy search. `evaluate` and `translate` use
    `search.beam_size` instead, so their scores are usually higher."""
    num_pairs: PositiveInt | None = None
    """The number of validation pairs that are translated; None means all pairs. The loss is always
    computed over all pairs."""
    num_samples: NonNegativeInt = 3
    """The number of sample translations in the log and in TensorBoard."""


class ObjectiveConfig(Section):
    """An extra loss, named after a file in `train/objectives/`. It is added to the training loss
    from `start` to `end`, which are fractions of all updates. Before `start`, after `end`, or with
    a `weight` of 0, it is only measured. `options` are the options of the objective."""

    weight: Weight = 1.0
    start: Probability = 0.0
    end: Probability = 1.0
    options: Options = {}


class TrainConfig(Section):
    """Training. It ends at `max_epochs`, `max_updates`, `max_minutes` or early stopping, whichever
    is reached first."""

    start_from: FilePath | None = None
    """A run whose best parameters initialize the model, instead of random parameters. The run was
    pretrained on other pairs or is a first stage of training. It must have the same model,
    tokenizers and vocabularies (`data.vocab_from`)."""
    max_epochs: PositiveInt | None = 10
    max_updates: PositiveInt | None = None
    max_minutes: PositiveFloat | None = None
    label_smoothing: Fraction = 0.0
    checkpoint_every_updates: PositiveInt = 500
    log_every_updates: PositiveInt = 50
    max_bad_updates: PositiveInt = 5
    """The number of consecutive updates with a non-finite loss or gradient that are skipped before
    training stops with an error."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """`auto` is bf16 on CPUs with AMX or AVX512-BF16 and on GPUs with bf16, otherwise fp32 on CPUs
    and fp16 on GPUs."""
    device: str = "auto"
    num_threads: NumWorkers | None = None
    """The number of CPU threads. None means the value of OMP_NUM_THREADS. Without this variable,
    the number is chosen at the start by the size of the model and the load of the machine. A
    resumed run keeps the number, because the last bits of sums depend on it."""
    cuda_graphs: bool = False
    """Whether each batch shape is captured as a CUDA graph and replayed on a GPU, which launches
    many small kernels at once. It cannot be combined with fp16, objectives, several sources or a
    source of vectors. It has no benefit if the teacher forcing ratio changes at every update."""
    objectives: dict[str, ObjectiveConfig] = {}
    """Extra losses by name, which are added to the translation loss."""
    batch: BatchConfig = BatchConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    teacher_forcing: TeacherForcingConfig = TeacherForcingConfig()
    validation: ValidationConfig = ValidationConfig()
