"""The step behind an SSD detector."""

from qbench.errors import ModelError
from qbench.frontends.tflite.builder import Builder, Value
from qbench.frontends.tflite.source import SourceOperator
from qbench.frontends.tflite.table import converter
from qbench.ir.graph import Attr

_SCALES = ("y_scale", "x_scale", "h_scale", "w_scale")


@converter(
    "custom.TFLite_Detection_PostProcess",
    "boxes scores anchors",
    "custom max_detections max_classes_per_detection detections_per_class use_regular_nms nms_score_threshold "
    f"nms_iou_threshold num_classes {' '.join(_SCALES)} _output_quantized _support_output_type_float_in_quantized_op",
)
def detections(builder: Builder, op: SourceOperator, boxes: Value, scores: Value, anchors: Value) -> tuple[Value, ...]:
    """Boxes, classes, scores and their number; integers are dequantized first, as the runtime does."""
    wanted = ("max_detections", "num_classes", "nms_iou_threshold", "nms_score_threshold", *_SCALES)
    if missing := [name for name in wanted if name not in op.options]:
        raise ModelError(f"operator {op} lacks {', '.join(missing)}")
    most, classes, overlap, least, *scales = (_number(op, name) for name in wanted)
    attrs: dict[str, Attr] = {
        "classes": int(classes),
        "most": int(most),
        "overlap": overlap,
        "least": least,
        "scales": tuple(scales),
        "per_box": op.integer("max_classes_per_detection", 1),
        "regular": bool(op.integer("use_regular_nms")),
        "per_class": op.integer("detections_per_class", 100),
    }
    values = [builder.real(builder.filed(value)) for value in (boxes, scores, anchors)]
    return builder.emit_many("vision.detections", values, (None,) * 4, attrs, nchw=False)


def _number(op: SourceOperator, name: str) -> float:
    """Whole numbers may be stored as integers."""
    value = op.options[name]
    return float(value) if isinstance(value, int) else op.real(name)
