"""The two networks in PyTorch.

Modules are named as the nodes of the ONNX files (see graphs.py), so that parameters carry the same names in both.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional


class Mlp(nn.Module):
    """Dense 784-512-512-10 with relu between; returns logits. Dropout while training, as Keras' example has it."""

    def __init__(self) -> None:
        super().__init__()
        for number, (inputs, units) in enumerate(pairwise((784, 512, 512, 10)), start=1):
            setattr(self, f"dense_{number}", nn.Linear(inputs, units))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        h = images.flatten(1)
        h = functional.dropout(functional.relu(self.dense_1(h)), 0.2, self.training)
        h = functional.dropout(functional.relu(self.dense_2(h)), 0.2, self.training)
        return self.dense_3(h)


class Cnn(nn.Module):
    """A residual block, a depthwise-separable block and two branches, each convolution with batch norm; logits."""

    def __init__(self) -> None:
        super().__init__()
        shapes = {  # name: inputs, outputs, kernel, stride, groups
            "conv_1": (1, 16, 3, 1, 1),
            "conv_2": (16, 16, 3, 1, 1),
            "conv_3": (16, 16, 3, 1, 1),
            "depthwise_1": (16, 16, 3, 2, 16),
            "pointwise_1": (16, 48, 1, 1, 1),
            "branch_1": (48, 32, 1, 1, 1),
            "branch_2": (48, 32, 3, 1, 1),
        }
        for name, (inputs, outputs, kernel, stride, groups) in shapes.items():
            conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
            setattr(self, name, conv)
            setattr(self, f"{name}_norm", nn.BatchNorm2d(outputs))
        self.dense = nn.Linear(64, 10)

    def _block(self, name: str, h: torch.Tensor) -> torch.Tensor:
        return self.get_submodule(f"{name}_norm")(self.get_submodule(name)(h))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        relu = functional.relu
        h = functional.max_pool2d(relu(self._block("conv_1", images)), 2)
        h = relu(self._block("conv_3", relu(self._block("conv_2", h))) + h)
        h = relu(self._block("pointwise_1", relu(self._block("depthwise_1", h))))
        h = torch.cat([relu(self._block(branch, h)) for branch in ("branch_1", "branch_2")], 1)
        return self.dense(h.mean((2, 3)))
