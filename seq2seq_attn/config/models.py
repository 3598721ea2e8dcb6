"""The settings of a run: names, types, limits and defaults. Defaults are set nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from seq2seq_attn.config.types import (
    BeamSize,
    CoveragePenalty,
    DropoutRate,
    Fraction,
    LanguageCode,
    LearningRate,
    LengthPenalty,
    LengthRatio,
    NonNegativeFloat,
    NonNegativeInt,
    NumCaptions,
    NumLayers,
    NumThreads,
    Options,
    PositiveFloat,
    PositiveInt,
    Probability,
    Seed,
    Size,
    VocabSize,
    Weight,
)


class Section(BaseModel):
    """A section of the configuration. Unknown keys are errors; values are checked on assignment too."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)


class CaptionsConfig(Section):
    """The embedded corpus (`captions/`): numbers of pairs, lengths in source tokens, the seed."""

    num_train: NumCaptions = 20_000
    num_valid: NumCaptions = 500
    num_test: NumCaptions = 1_500
    min_length: PositiveInt = 4
    max_length: PositiveInt = 30
    seed: Seed = 1


class TokenizerConfig(Section):
    """The tokenizer. `spaces` splits text that is tokenized already. `target` is that of the target side, where it
    differs; `positions` are numbers of source tokens, from 1. `vocab_size`, `joint` and `model_type` apply to
    SentencePiece only. `sentences` marks the end of each sentence of the source, so that the attention `hierarchical`
    is over the sentences of a line."""

    name: Literal["spacy", "sentencepiece", "characters", "spaces"] = "sentencepiece"
    target: Literal["characters", "spaces", "positions"] | None = None
    lowercase: bool = False
    vocab_size: VocabSize = 8_000
    joint: bool = True
    model_type: Literal["unigram", "bpe"] = "unigram"
    sentences: bool = False


class VocabConfig(Section):
    """The vocabulary: the `max_size` most frequent tokens (None: all) that occur at least `min_frequency` times."""

    max_size: PositiveInt | None = None
    min_frequency: PositiveInt = 1
    joint: bool = False


class DataConfig(Section):
    """The corpus. `train`, `valid` and each value of `test` is a prefix (`PREFIX.de`, `PREFIX.en`), a
    `[source file, target file]` pair, a `.tsv` or a `.jsonl`, each plain or .gz; they are read when `corpus` is
    `files`. Without `valid`, a tenth of the training pairs is set aside, at most 1,000.

    `source_languages` replaces `source_language` where a sentence is given in several languages at once; a prefix then
    has a file for each, a list names a file for each, and a table has a column for each. The language `vectors` is a
    source of vectors instead of text: each line names a .npy file [n, F], or FILE.npz:KEY.
    """

    corpus: Literal["multi30k", "captions", "files"] = "multi30k"
    source_language: str = "de"
    source_languages: list[LanguageCode] = []
    target_language: str = "en"
    data_dir: Path = Path("data")
    source_dir: Path | None = None
    train: str | list[str] | None = None
    valid: str | list[str] | None = None
    test: dict[str, str | list[str]] = {}
    extra: list[str | list[str]] = []
    """Texts, named like `train`, whose pairs are training pairs besides those of the corpus, for example translations
    of its sources by other runs. Pairs with a sentence of its validation or test sets are dropped and counted."""
    extra_in_vocab: bool = False
    """Whether tokenizers and vocabularies are made from the extra pairs too, which other languages or new words need;
    otherwise they are those of the corpus alone, so runs with and without extra pairs can form an ensemble."""
    max_length: PositiveInt = 100
    max_length_ratio: LengthRatio = 9.0
    stitch: dict[PositiveInt, Weight] = {}
    """Concatenate training pairs: maps K to the share of examples that are K pairs. Empty: no concatenation."""
    subword_sampling: Probability | None = None
    """Draw the subwords of the training pairs anew in each epoch, with this alpha. For a unigram model it is the
    exponent of a segmentation's probability (Kudo 2018; the smaller, the more varied), for BPE the probability that a
    merge is skipped (Provilkov et al. 2020). None: always the most probable subwords."""
    links: str | None = None
    """Word alignments of the training pairs, for objectives that learn from them: `gold` (those of the embedded
    corpus), `ibm1` (estimated from the training pairs by IBM model 1), or a file in the Pharaoh format (`0-0 1-2`), one
    line per pair, with words split at spaces and numbered from 0. None: no objective needs them."""
    tokenizer: TokenizerConfig = TokenizerConfig()
    vocab: VocabConfig = VocabConfig()
    captions: CaptionsConfig = CaptionsConfig()
    num_processes: PositiveInt | None = None
    """Processes for preparing the corpus; None: one per available CPU, or a single one for a small corpus. The result
    does not depend on it."""

    @property
    def sources(self) -> list[str]:
        """The language of each source, usually one."""
        return [*self.source_languages] or [self.source_language]

    @property
    def source_name(self) -> str:
        """The language of the source, or `de+fr+cs` for several."""
        return "+".join(self.sources)


class BatchConfig(Section):
    """A micro-batch: at most `size` sentence pairs or target tokens. An update sums the gradients of `accumulate`."""

    size: PositiveInt = 128
    unit: Literal["sentences", "tokens"] = "sentences"
    accumulate: PositiveInt = 1


class EmbeddingConfig(Section):
    """Pretrained word vectors: text files of a token and `embedding_size` numbers per line (word2vec, GloVe, fastText),
    read when training starts. `freeze`: embeddings with vectors are not trained, and types without a vector keep their
    random initialization."""

    source_vectors: Path | None = None
    target_vectors: Path | None = None
    freeze: bool = False

    def files(self) -> dict[Literal["source", "target"], Path]:
        """The file of each side that has one."""
        found: dict[Literal["source", "target"], Path | None]
        found = {"source": self.source_vectors, "target": self.target_vectors}
        return {side: path for side, path in found.items() if path is not None}


class EncoderConfig(Section):
    """The encoder; `name` is a file of `model/encoder/`, or `bigru`, `bilstm`, `reversed_gru`, which say its cell too.
    `hidden_size` is that of one direction; `cell` is a file of `model/cell/`; `options` are that variant's own."""

    name: str = "bigru"
    cell: str = "gru"
    hidden_size: Size = 256
    num_layers: NumLayers = 1
    options: Options = {}


class AttentionConfig(Section):
    """The attention; `name` is a file of `model/attention/`, `normalizer` one of `model/normalizer/`, `options` are the
    attention's own (see its docstring)."""

    name: str = "additive"
    normalizer: str = "softmax"
    options: Options = {}


class DecoderConfig(Section):
    """The decoder; `name` is a file of `model/decoder/`, `cell` one of `model/cell/`, `options` are that variant's
    own."""

    name: str = "bahdanau"
    cell: str = "gru"
    num_layers: NumLayers = 1
    options: Options = {}


class OutputConfig(Section):
    """The output; `name` is a file of `model/output/`, `options` are that variant's own."""

    name: str = "softmax"
    options: Options = {}


class DropoutConfig(Section):
    """Dropout rates. `embedding`: on embeddings, both sides; `encoder`: between encoder layers and on its states;
    `readout`: between decoder layers and on the features that the output reads; `token`: probability that the whole
    embedding of an input token is zeroed."""

    embedding: DropoutRate = 0.3
    encoder: DropoutRate = 0.3
    readout: DropoutRate = 0.3
    token: DropoutRate = 0.0


class ModelConfig(Section):
    """The model.

    `hidden_size`: width of the decoder's state; None: that of the encoder's states, which `dot` attention needs.
    `readout_size`: width of a tanh layer before the output layer (Bahdanau's deep output); None: no such layer, the
    logits are linear in [state; context; embedding], as in the tutorial. `tie_embeddings`: `target` shares the target
    embedding with the output layer; `all` also the source embedding, which needs a joint vocabulary.
    """

    embedding_size: Size = 256
    hidden_size: Size | None = 512
    readout_size: Size | None = None
    tie_embeddings: Literal["none", "target", "all"] = "none"
    embedding: EmbeddingConfig = EmbeddingConfig()
    encoder: EncoderConfig = EncoderConfig()
    attention: AttentionConfig = AttentionConfig()
    decoder: DecoderConfig = DecoderConfig()
    output: OutputConfig = OutputConfig()
    dropout: DropoutConfig = DropoutConfig()

    @model_validator(mode="before")
    @classmethod
    def _read_former_name(cls, values: Any) -> Any:
        """Read the attention `fixed` under its former name `none`. It had an option for the layout of the encoder's
        states, and the encoder's dropout also applied to the summary."""
        attention = values.get("attention") if isinstance(values, dict) else None
        if not isinstance(attention, dict) or attention.get("name") != "none":
            return values
        dropout, options = values.get("dropout"), attention.get("options")
        rate = dropout.get("encoder") if isinstance(dropout, dict) else None
        if options is None or isinstance(options, dict):
            options = {"dropout": DropoutConfig().encoder if rate is None else rate, **(options or {})}
            options.pop("forward_size", None)
        return {**values, "attention": {**attention, "name": "fixed", "options": options}}


class OptimizerConfig(Section):
    """The optimizer. `weight_decay` is decoupled for `adamw`."""

    name: Literal["adam", "adamw"] = "adam"
    learning_rate: LearningRate = 1e-3
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: PositiveFloat = 1e-8
    weight_decay: NonNegativeFloat = 0.0
    clip_norm: PositiveFloat | None = 1.0
    average_decay: Fraction = 0.0
    """Decay of an exponential moving average of the weights, which is validated and saved as the best model; 0: off."""


class ScheduleConfig(Section):
    """The learning rate schedule: linear warm-up, then the named shape. `plateau` multiplies the rate by `factor` after
    `patience` validations without a better score."""

    name: Literal["constant", "inverse_sqrt", "cosine", "plateau"] = "constant"
    warmup_updates: NonNegativeInt = 0
    final_ratio: Probability = 0.0
    factor: PositiveFloat = 0.5
    patience: NonNegativeInt = 2


class TeacherForcingConfig(Section):
    """The probability that a decoder step sees the reference token, drawn per token. It goes from `start` to `end` in
    `num_updates` updates (Bengio et al. 2015, section 2.4)."""

    schedule: Literal["constant", "linear", "exponential", "inverse_sigmoid"] = "constant"
    start: Probability = 1.0
    end: Probability = 0.0
    num_updates: PositiveInt = 10_000


class ValidationConfig(Section):
    """When to validate, and by which metric the best model is chosen. `num_pairs` limits the pairs that are translated
    (None: all); the loss is always taken over all pairs."""

    every_updates: PositiveInt | None = None
    """None: once per epoch."""
    metric: Literal["bleu", "perplexity", "exact", "cer", "wer"] = "bleu"
    patience: PositiveInt | None = None
    """Validations without a better score after which training stops; None: never."""
    beam_size: BeamSize = 1
    num_pairs: PositiveInt | None = None
    num_samples: NonNegativeInt = 3


class ObjectiveConfig(Section):
    """An extra loss, named after a file in `train/objectives/`, with its own `options`. It acts from `start` to `end`,
    shares of all updates. Outside of them, as with a `weight` of 0, it is only measured; `r_drop` and `minimum_risk`,
    which need passes of their own, are left out."""

    weight: Weight = 1.0
    start: Probability = 0.0
    end: Probability = 1.0
    options: Options = {}


class TrainConfig(Section):
    """Training. It ends at `max_epochs`, `max_updates`, `max_minutes` or early stopping, whichever comes first."""

    start_from: Path | None = None
    """A run whose best weights are the start, instead of random ones: one that was pretrained on other pairs, or a
    first stage of training. It has the same model, tokenizers and vocabularies."""
    max_epochs: PositiveInt | None = 10
    max_updates: PositiveInt | None = None
    max_minutes: PositiveFloat | None = None
    label_smoothing: Fraction = 0.0
    checkpoint_every_updates: PositiveInt = 500
    log_every_updates: PositiveInt = 50
    max_bad_steps: PositiveInt = 5
    """Consecutive updates with a non-finite loss or gradient that are skipped before training gives up."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    device: str = "auto"
    num_threads: NumThreads | None = None
    """CPU threads; None: torch's default. Recorded because the last bits of a sum depend on it."""
    cuda_graphs: bool = False
    """On a GPU, capture each batch shape as a CUDA graph and replay it, which launches many small kernels at once. Not
    with fp16 or objectives, and of no use where the teacher forcing ratio changes at every update."""
    objectives: dict[str, ObjectiveConfig] = {}
    """Extra losses by name, added to the translation's."""
    batch: BatchConfig = BatchConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    teacher_forcing: TeacherForcingConfig = TeacherForcingConfig()
    validation: ValidationConfig = ValidationConfig()


class SearchConfig(Section):
    """Translation. Hypotheses are ranked by log P / length ** `length_penalty`, with the length in target tokens
    including EOS, plus `coverage_penalty` * sum_j log min(total attention to source position j, 1). They have at most
    `max_length_ratio` * source tokens + `max_length_extra` tokens. `max_length_ratio` None: training chooses it so that
    the limit would cut none of its targets."""

    beam_size: BeamSize = 5
    length_penalty: LengthPenalty = 0.0
    coverage_penalty: CoveragePenalty = 0.0
    no_repeat_ngram: NonNegativeInt = 0
    """No sequence of this many tokens occurs twice in a translation; 0: any may."""
    max_length_ratio: LengthRatio | None = None
    max_length_extra: NonNegativeInt = 10
    batch_size: PositiveInt = 64


class Config(Section):
    """Everything that decides a run."""

    name: str = "base"
    seed: Seed = 1
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()
    search: SearchConfig = SearchConfig()
