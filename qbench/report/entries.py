"""What a report consists of: a layer's numbers, the output's, the time that a run takes."""

from dataclasses import dataclass

Number = float | tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class Flip:
    """A sample that the quantized model puts into another class than the float model does.

    Parameters
    ----------
    sample
        Its index in the data that the report is of; see :meth:`qbench.session.session.Session.sample`.
    float_class, quantized_class
        What the two models predict.
    label
        The right class, where it is known.
    """

    sample: int
    float_class: int
    quantized_class: int
    label: int | None = None


@dataclass(frozen=True, slots=True)
class Latency:
    """How long one run takes on this machine: medians.

    Parameters
    ----------
    quantized_ms, float_ms
        Of the integer model and of the float model, in milliseconds.
    threads, samples
        That take part in a run, and that a run is given.
    """

    quantized_ms: float
    float_ms: float
    threads: int
    samples: int


@dataclass(frozen=True, slots=True)
class Unlike:
    """A tensor whose values lie beyond what calibration data said of it.

    Parameters
    ----------
    tensor
        Of the prepared float graph.
    clipped
        Fraction of its values that the encoding cannot say.
    reaches, calibrated
        Where it lies furthest beyond: its extreme value, and that of the calibration data on that side.
    """

    tensor: str
    clipped: float
    reaches: float
    calibrated: float


@dataclass(frozen=True, kw_only=True)
class LayerReport:
    """One node of the prepared float graph, and what quantization did to it.

    Parameters
    ----------
    name, op, tensor
        The node, its op, and its (first) output.
    runs_as
        int8, uint8, int16, int32, float16 or float32: what a MAC op reads, what any other op makes; int32 also stands
        for indices, sizes and truth values.
    reason
        Why it stays in float; None where it does not.
    sqnr_db
        Signal of the float model's value over the difference to the quantized model's value there (the error of all
        layers before included), in dB; infinite where they are equal, None where there is nothing to compare. A node in
        the middle of a fused group is compared by its accumulator, or by the group's output where it has none.
    own_sqnr_db
        The same for the error that the layer makes itself: computed in integers, against the float layer on the same
        inputs, those of the float model rounded to their encodings. Rounding and clipping an input is charged to the
        layer that makes it. Measured on a few samples; None where it was not.
    inherited_sqnr_db
        Signal of the float model's value over the rest of the error: that which comes from the layers before.
    clipped
        Fraction of the float model's elements that lie outside of what the encoding can say; None without encoding.
    encoded
        The tensor whose encoding the layer has: the output of its fused group, which is what an override of the layer
        changes. None where that is not quantized.
    threshold, scale, zero_point, bits, calibrator
        That encoding; tuples where it is per axis.
    chosen_by
        Which part of the config chose it: ``default: mse``, ``rule 2: ...``, ``override: threshold``.
    weight, weight_scale, weight_sqnr_db, weight_worst_channel_db
        The constant that a MAC op multiplies by, its scale, the SQNR of the rounded weights alone, and that of the
        channel (index of axis 0) where it is lowest.
    macs
        Multiply-accumulates per sample.
    shape
        Of the layer's output; a symbol stands for the number of samples.
    ms
        What its step takes in one run, in milliseconds: that of a fused group at its first node. None where it was not
        measured (see :meth:`qbench.session.session.Session.latency`), or is part of another layer's.
    """

    name: str
    op: str
    tensor: str
    runs_as: str
    encoded: str | None = None
    reason: str | None = None
    sqnr_db: float | None = None
    clipped: float | None = None
    threshold: Number = None
    scale: Number = None
    zero_point: int | tuple[int, ...] | None = None
    bits: int | None = None
    calibrator: str | None = None
    chosen_by: str | None = None
    weight: str | None = None
    weight_scale: Number = None
    weight_sqnr_db: float | None = None
    weight_worst_channel_db: float | None = None
    macs: int = 0
    shape: tuple[int | str, ...] = ()
    own_sqnr_db: float | None = None
    inherited_sqnr_db: float | None = None
    ms: float | None = None


@dataclass(frozen=True)
class SampleLoss:
    """The signal-to-noise ratio of one sample's output, in dB."""

    sample: int
    sqnr_db: float


@dataclass(frozen=True, kw_only=True)
class OutputLoss:
    """How far one output of real numbers is from the float model's.

    Parameters
    ----------
    name
        Of the output.
    sqnr_db
        As for a layer, over all elements of all samples.
    cosine
        Of the angle between both as vectors, over all samples: 1 where they point the same way. None for zeros.
    worst
        The samples that lose most, the worst first; those that lose nothing are left out.
    found_db
        The same as `sqnr_db` where something is found: of an output that says what is where, each place counts by how
        likely either model finds something there, boxes and scores apart (the lower of both), and in scores twice the
        noise will do, as a search and the default count it. None for all others.
    texts_alike
        Share of the texts that both models read alike, of a recognizer of text lines; None for all others.
    nats_lost
        Divergence (Kullback and Leibler) of a usual choice between classes from the float model's; None where the
        output is no choice, or a text.
    varies_db
        As `sqnr_db`, of an output of a few numbers for each sample: the error of each number beside its variance over
        samples, or of each sample beside that of its numbers, or of an exponential the errors of logarithms beside
        their variance (the lowest of all). None where `sqnr_db` says as much or next to nothing is lost, and for all
        others.
    """

    name: str
    sqnr_db: float | None
    cosine: float | None
    worst: tuple[SampleLoss, ...] = ()
    found_db: float | None = None
    texts_alike: float | None = None
    nats_lost: float | None = None
    varies_db: float | None = None


@dataclass(frozen=True, kw_only=True)
class OutputReport:
    """What comes out at the end.

    Parameters
    ----------
    sqnr_db
        As for a layer; the lowest where the model has several outputs.
    agreement
        Fraction of predictions (argmax of the first output along its class axis) that equal the float model's.
    top1_float, top1
        Fraction of right predictions of the float and the quantized model; None without labels.
    samples
        How many samples were evaluated.
    data
        "evaluation", or "calibration" where the session has no evaluation data (which flatters the result); "probe"
        where it is a small part of those.
    flipped
        How many predictions differ from the float model's; None where the output is no choice between classes.
    flips
        The first of the samples whose prediction differs, where a sample has one prediction.
    losses
        What each output of real numbers loses, and in which samples most.
    latency
        How long the model takes, where that was measured.
    metric_name, metric_float, metric
        The user's metric, and what it says of the float and of the quantized model; None where there is none.
    """

    sqnr_db: float | None
    agreement: float | None
    top1_float: float | None = None
    top1: float | None = None
    samples: int = 0
    data: str = "evaluation"
    flipped: int | None = None
    flips: tuple[Flip, ...] = ()
    losses: tuple[OutputLoss, ...] = ()
    latency: Latency | None = None
    metric_name: str | None = None
    metric_float: float | None = None
    metric: float | None = None
