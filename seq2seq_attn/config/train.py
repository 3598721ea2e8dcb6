"""The settings of training: batches, optimizer, schedules, validation, objectives."""

from typing import Literal

from seq2seq_attn.config.types import (
    BeamSize,
    FilePath,
    Fraction,
    LearningRate,
    NonNegativeFloat,
    NonNegativeInt,
    NumThreads,
    Options,
    PositiveFloat,
    PositiveInt,
    Probability,
    Section,
    Weight,
)


class BatchConfig(Section):
    """Batches."""

    size: PositiveInt = 128
    """Sentence pairs or target tokens of a micro-batch, at most."""
    unit: Literal["sentences", "tokens"] = "sentences"
    accumulate: PositiveInt = 1
    """Micro-batches whose gradients an update sums."""


class OptimizerConfig(Section):
    """The optimizer."""

    name: Literal["adam", "adamw"] = "adam"
    learning_rate: LearningRate = 1e-3
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: PositiveFloat = 1e-8
    weight_decay: NonNegativeFloat = 0.0
    """Decoupled for `adamw`."""
    clip_norm: PositiveFloat | None = 1.0
    """Gradients with a larger norm are scaled down to it. None: no clipping."""
    average_decay: Fraction = 0.0
    """Decay of an exponential moving average of the weights, which is validated and saved as the
    best model; 0: off."""


class ScheduleConfig(Section):
    """The learning rate schedule: linear warm-up, then the named shape."""

    name: Literal["constant", "inverse_sqrt", "cosine", "trapezoid", "plateau"] = "constant"
    warmup_updates: NonNegativeInt = 0
    final_ratio: Probability = 0.0
    """`cosine` and `trapezoid` end at this ratio of the rate."""
    cooldown: Probability = 0.2
    """The share of all updates, the last ones, in which `trapezoid` falls."""
    factor: PositiveFloat = 0.5
    """`plateau` multiplies the rate by it."""
    patience: NonNegativeInt = 2
    """Validations in a row without a better score that `plateau` tolerates."""


class TeacherForcingConfig(Section):
    """The probability that a decoder step sees the reference token, drawn per token. It goes from
    `start` to `end` in `num_updates` updates (Bengio et al. 2015, section 2.4)."""

    schedule: Literal["constant", "linear", "exponential", "inverse_sigmoid"] = "constant"
    start: Probability = 1.0
    end: Probability = 0.0
    num_updates: PositiveInt = 10_000


class ValidationConfig(Section):
    """When to validate, and how the best model is chosen."""

    every_updates: PositiveInt | None = None
    """None: once per epoch."""
    metric: Literal["bleu", "perplexity", "chrf", "exact", "cer", "wer"] = "bleu"
    """The metric by which the best model is chosen."""
    patience: PositiveInt | None = None
    """Validations without a better score after which training stops; None: never."""
    beam_size: BeamSize = 1
    num_pairs: PositiveInt | None = None
    """Pairs that are translated; the loss is always taken over all pairs. None: all."""
    num_samples: NonNegativeInt = 3
    """Sample translations in the log and in TensorBoard."""


class ObjectiveConfig(Section):
    """An extra loss, named after a file in `train/objectives/`, with its own `options`. It acts
    from `start` to `end`, given as fractions of all updates. Outside of them, as with a `weight` of
    0, it is only measured."""

    weight: Weight = 1.0
    start: Probability = 0.0
    end: Probability = 1.0
    options: Options = {}


class TrainConfig(Section):
    """Training. It ends at `max_epochs`, `max_updates`, `max_minutes` or early stopping, whichever
    comes first."""

    start_from: FilePath | None = None
    """A run whose best weights are the start, instead of random ones: one that was pretrained on
    other pairs, or a first stage of training. It has the same model, tokenizers and vocabularies
    (`data.vocab_from`)."""
    max_epochs: PositiveInt | None = 10
    max_updates: PositiveInt | None = None
    max_minutes: PositiveFloat | None = None
    label_smoothing: Fraction = 0.0
    checkpoint_every_updates: PositiveInt = 500
    log_every_updates: PositiveInt = 50
    max_bad_updates: PositiveInt = 5
    """Consecutive updates with a non-finite loss or gradient that are skipped before training gives
    up."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    device: str = "auto"
    num_threads: NumThreads | None = None
    """CPU threads; None: as OMP_NUM_THREADS says, else chosen at the start by the size of the model
    and the load of the machine. A resume keeps the chosen number, because the last bits of sums
    depend on it."""
    cuda_graphs: bool = False
    """On a GPU, capture each batch shape as a CUDA graph and replay it, which launches many small
    kernels at once. Not with fp16, objectives, several sources or a source of vectors; of no use
    where the teacher forcing ratio changes at every update."""
    objectives: dict[str, ObjectiveConfig] = {}
    """Extra losses by name, added to the translation's."""
    batch: BatchConfig = BatchConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    teacher_forcing: TeacherForcingConfig = TeacherForcingConfig()
    validation: ValidationConfig = ValidationConfig()
