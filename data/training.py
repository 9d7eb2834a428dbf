"""The loop that trains a network, on digits distorted anew in every epoch."""

from __future__ import annotations

import numpy as np
import torch
from digits import Digits
from torch import nn
from torch.nn import functional


def distort(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Rotate, scale, shear and shift each image of a batch (n, 1, 28, 28) a little, at random."""

    def uniform(low: float, high: float) -> torch.Tensor:
        return torch.rand(len(images), generator=generator) * (high - low) + low

    angle, shear = uniform(-0.22, 0.22), uniform(-0.2, 0.2)
    wide, high = uniform(0.88, 1.12), uniform(0.88, 1.12)
    cos, sin = torch.cos(angle), torch.sin(angle)
    rows = [wide * cos, wide * (shear * cos - sin), uniform(-0.15, 0.15)]
    rows += [high * sin, high * (shear * sin + cos), uniform(-0.15, 0.15)]
    grid = functional.affine_grid(torch.stack(rows, 1).reshape(-1, 2, 3), list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


def train(network: type[nn.Module], digits: Digits, *, epochs: int, seed: int) -> dict[str, np.ndarray]:
    """Train a network for a fixed number of epochs, each on new distortions, and return its parameters by name.

    The same seed gives the same parameters on the same machine and PyTorch. Nothing but ``digits`` is looked at:
    no early stopping, no choice among runs.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # sums in one order
    generator = torch.Generator().manual_seed(seed)
    images, classes = torch.from_numpy(digits.x).reshape(-1, 1, 28, 28), torch.from_numpy(digits.y)
    batches = len(images) // 100
    model = network().train()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=epochs * batches)
    for _ in range(epochs):
        order = torch.randperm(len(images), generator=generator)
        for batch in order.chunk(batches):
            loss = functional.cross_entropy(model(distort(images[batch], generator)), classes[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return {name: value.numpy() for name, value in model.state_dict().items()}
