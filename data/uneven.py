"""Give the channels of the CNN ranges as uneven as depthwise networks have: ``python data/uneven.py``.

A network computes the same when a relu's channel is multiplied by a positive factor and the weights that read it are
divided by it. Training leaves such factors behind in real depthwise networks, where single channels of a layer differ a
hundredfold (Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", ICCV 2019,
figure 2); here they are drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
from measure import FOLDER
from onnx import numpy_helper

OCTAVES = 3
"""Factors lie between 2^-3 and 2^3."""
STREAMS = (
    (("conv_1_norm", "conv_3_norm"), (("conv_2", 1), ("depthwise_1", 0))),
    (("depthwise_1_norm",), (("pointwise_1", 1),)),
)
"""Norms that make the same channels, and the weights that read those along an axis."""


def uneven(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """Return the network with other ranges; it computes the same but for rounding."""
    rng = np.random.default_rng(seed)
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    changed.graph.name = "mnist_uneven"
    parameters = {tensor.name: tensor for tensor in changed.graph.initializer}

    def multiply(names: Iterable[str], factors: np.ndarray) -> None:
        for name in names:
            product = numpy_helper.to_array(parameters[name]) * factors
            parameters[name].CopyFrom(numpy_helper.from_array(product.astype(np.float32), name))

    for norms, weights in STREAMS:
        channels = parameters[f"{norms[0]}.gamma"].dims[0]
        factors = 2.0 ** rng.uniform(-OCTAVES, OCTAVES, channels)
        multiply((f"{norm}.{role}" for norm in norms for role in ("gamma", "beta")), factors)
        for weight, axis in weights:
            shape = [channels if axis == each else 1 for each in range(4)]
            multiply([f"{weight}.weight"], (1 / factors).reshape(shape))
    return changed


if __name__ == "__main__":
    onnx.save(uneven(onnx.load(FOLDER / "mnist_cnn.onnx")), FOLDER / "mnist_uneven.onnx")
