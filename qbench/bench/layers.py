"""Layers with random weights, written as ONNX: what the networks of the benchmark are put together from."""

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

_OPSET, _IR_VERSION = 17, 8
_GAIN = {"Relu": 2.0, "Clip": 2.0, None: 1.0}  # what keeps the variance of activations: half of it dies in a relu


class Layers:
    """Collects the nodes of an image classifier, each named as its output; every method returns that name.

    Weights are random, with batch norm folded into them, and of a size that keeps activations from dying or growing:
    quantizing the network loses about what it loses on a trained one.

    Parameters
    ----------
    name
        Of the network; it also decides the weights, which are the same every time.
    size
        Height and width of the image ``x``, of shape (N, 3, size, size).
    """

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size = name, size
        self._random = np.random.default_rng(list(name.encode()))
        self._channels = {"x": 3}
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def channels(self, value: str) -> int:
        """Number of channels of a value."""
        return self._channels[value]

    def conv(
        self,
        x: str,
        outputs: int,
        kernel: int | tuple[int, int],
        stride: int = 1,
        *,
        pad: bool = True,
        groups: int = 1,
        activation: str | None = "Relu",
        gain: float = 1.0,
    ) -> str:
        """A convolution with bias; `pad` keeps the size at stride 1, "Clip" is relu6, `gain` scales its weights."""
        height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
        fan_in = self.channels(x) // groups * height * width
        weight = self._normal(outputs, self.channels(x) // groups, height, width)
        weight *= gain * np.sqrt(_GAIN[activation] / fan_in)
        edges = [height // 2, width // 2] * 2 if pad else [0] * 4
        attributes: dict[str, Any] = {
            "kernel_shape": [height, width],
            "strides": [stride, stride],
            "pads": edges,
            "group": groups,
        }
        y = self._node("Conv", outputs, x, *self._parameters(weight), **attributes)
        if activation is None:
            return y
        limits = (0, 6) if activation == "Clip" else ()
        return self._node(activation, outputs, y, *(self._constant(f"{i}", np.float32(i)) for i in limits))

    def max_pool(self, x: str, *, pad: bool = False) -> str:
        """The largest of 3x3, every second row and column."""
        return self._node("MaxPool", self.channels(x), x, kernel_shape=[3, 3], strides=[2, 2], pads=[int(pad)] * 4)

    def avg_pool(self, x: str) -> str:
        """The mean of 3x3, zeros around the image counted."""
        window: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}
        return self._node("AveragePool", self.channels(x), x, **window)

    def add(self, x: str, y: str, *, relu: bool) -> str:
        """The sum of two branches."""
        total = self._node("Add", self.channels(x), x, y)
        return self._node("Relu", self.channels(x), total) if relu else total

    def concat(self, *values: str) -> str:
        """The channels of all values."""
        return self._node("Concat", sum(map(self.channels, values)), *values, axis=1)

    def classifier(self, x: str) -> onnx.ModelProto:
        """Mean over the image and a dense layer; the finished model, whose output is ``logits``."""
        inputs, classes = self.channels(x), 1000
        flat = self._node("Flatten", inputs, self._node("GlobalAveragePool", inputs, x), axis=1)
        weight = self._normal(classes, inputs) * np.float32(2 / np.sqrt(inputs))
        self._node("Gemm", classes, flat, *self._parameters(weight), output="logits", transB=1)
        image = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("N", 3, self.size, self.size))
        logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ("N", classes))
        graph = helper.make_graph(self._nodes, self.name, [image], [logits], self._constants)
        opset = helper.make_opsetid("", _OPSET)
        return helper.make_model(graph, producer_name="qbench", ir_version=_IR_VERSION, opset_imports=[opset])

    def _node(self, op: str, channels: int, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        name = output or f"{op.lower()}_{len(self._nodes) + 1}"
        self._nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        self._channels[name] = channels
        return name

    def _parameters(self, weight: NDArray[np.float32]) -> tuple[str, str]:
        stem = f"layer_{len(self._nodes) + 1}"
        bias = self._normal(len(weight)) * np.float32(0.1)
        return self._constant(f"{stem}.weight", weight), self._constant(f"{stem}.bias", bias)

    def _constant(self, name: str, value: NDArray[np.float32] | np.float32) -> str:
        if all(constant.name != name for constant in self._constants):
            self._constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _normal(self, *shape: int) -> NDArray[np.float32]:
        return self._random.standard_normal(shape, np.float32)
