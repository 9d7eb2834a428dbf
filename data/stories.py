"""A decoder of short stories, with a cache as exporters write one, and windows of them: ``python data/stories.py``.

The stories are made by the sentences below, and nobody else wrote any of them. The decoder is a small llama: RMSNorm in
primitives, SiLU, two layers, a cache of keys and values. Before training one channel of the residual stream is made
large at the first word of every story, as training leaves it in large models; so it stays.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import torch
from graphs import Writer
from onnx import TensorProto, helper
from torch import nn
from torch.nn import functional

FOLDER = Path(__file__).parent
SEED, STEPS, BATCH = 11, 700, 24
WIDTH, HEADS, HIDDEN, LAYERS, WINDOW = 48, 4, 128, 2, 40
OUTLIER, LARGE = 7, 48.0
COUNTS = {"train": 3000, "calibration": 24, "evaluation": 48}

NAMES = ["anna", "ben", "clara", "david", "emma", "finn"]
KINDS = ["old", "small", "brave", "clever", "tired", "hungry", "happy", "quiet"]
WHO = ["fox", "bear", "owl", "mouse", "rabbit", "goat", "frog", "crow"]
WHAT = ["lamp", "key", "boat", "apple", "drum", "letter", "kite", "stone"]
WHERE = ["forest", "garden", "river", "tower", "cellar", "meadow", "harbour", "cave"]
ENDS = ["laughed", "sang", "slept", "danced", "smiled", "waved"]


def story(rng: np.random.Generator) -> list[str]:
    """Words of one story: who is in it, and what is found, comes back further on."""

    def one(words: list[str]) -> str:
        return words[int(rng.integers(len(words)))]

    name, who, what, where = one(NAMES), one(WHO), one(WHAT), one(WHERE)
    text = f"once {name} met a {one(KINDS)} {who} in the {where} . "
    text += f"the {who} had lost a {one(KINDS)} {what} . "
    if rng.random() < 0.5:
        text += f"{name} looked in the {one(WHERE)} but found only a {one(WHAT)} . "
    text += f"then {name} found the {what} in the {one(WHERE)} and gave it to the {who} . "
    text += f"the {who} {one(ENDS)} and {name} {one(ENDS)} . end"
    return text.split()


OTHERS = ["once", "met", "a", "in", "the", ".", "had", "lost", "looked", "but", "found", "only", "then", "and", "gave"]
WORDS = sorted({*NAMES, *KINDS, *WHO, *WHAT, *WHERE, *ENDS, *OTHERS, "it", "to", "end"})


def windows(count: int, rng: np.random.Generator) -> np.ndarray:
    """Ids of words, int64 (count, WINDOW): stories one behind the other, each window from the beginning of one."""
    number = {word: at for at, word in enumerate(WORDS)}
    rows = []
    for _ in range(count):
        words = list[str]()
        while len(words) < WINDOW:
            words += story(rng)
        rows.append([number[word] for word in words[:WINDOW]])
    return np.array(rows, np.int64)


class Decoder(nn.Module):
    """The network, trained on whole windows."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(len(WORDS), WIDTH), nn.Embedding(2 * WINDOW, WIDTH)
        self.norms = nn.ParameterList([nn.Parameter(torch.ones(WIDTH)) for _ in range(2 * LAYERS + 1)])
        self.dense = nn.ModuleDict()
        for layer in range(LAYERS):
            for name in "qkvo":
                self.dense[f"{name}{layer}"] = nn.Linear(WIDTH, WIDTH, bias=False)
            self.dense[f"gate{layer}"] = nn.Linear(WIDTH, HIDDEN, bias=False)
            self.dense[f"up{layer}"] = nn.Linear(WIDTH, HIDDEN, bias=False)
            self.dense[f"down{layer}"] = nn.Linear(HIDDEN, WIDTH, bias=False)
        self.dense["head"] = nn.Linear(WIDTH, len(WORDS), bias=False)
        with torch.no_grad():
            self.words.weight *= 0.5
            self.places.weight *= 0.1
            self.places.weight[0, OUTLIER] = LARGE

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        length = ids.shape[1]
        x = self.words(ids) + self.places(torch.arange(length))
        for layer in range(LAYERS):
            h = self.norm(x, 2 * layer)
            q, k, v = (self.dense[f"{n}{layer}"](h).unflatten(2, (HEADS, -1)).transpose(1, 2) for n in "qkv")
            h = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.dense[f"o{layer}"](h.transpose(1, 2).flatten(2))
            h = self.norm(x, 2 * layer + 1)
            h = functional.silu(self.dense[f"gate{layer}"](h)) * self.dense[f"up{layer}"](h)
            x = x + self.dense[f"down{layer}"](h)
        return self.dense["head"](self.norm(x, 2 * LAYERS))

    def norm(self, x: torch.Tensor, number: int) -> torch.Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.norms[number]


def trained(ids: np.ndarray) -> Decoder:
    """A fixed number of steps, with no look at the other parts."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    model, rows = Decoder(), torch.from_numpy(ids)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, STEPS)
    for step in range(STEPS):
        batch = rows[(step * BATCH) % len(rows) :][:BATCH]
        scores = model(batch[:, :-1])
        loss = functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


def exported(model: Decoder) -> onnx.ModelProto:
    """One step with a cache: more ids behind those whose keys and values are known."""
    writer, size = Writer("stories_decoder"), WIDTH // HEADS

    def constant(name: str, *values: float, dtype: type = np.int64) -> str:
        return writer.parameter(name, np.array(values[0] if len(values) == 1 else values, dtype))

    def dense(name: str, h: str) -> str:
        weight = model.dense[name].weight.detach().numpy().T
        return writer.node("MatMul", name, h, writer.parameter(f"{name}.weight", weight))

    def norm(name: str, x: str, number: int) -> str:
        square = writer.node("Mul", f"{name}.square", x, x)
        mean = writer.node("ReduceMean", f"{name}.mean", square, axes=[-1], keepdims=1)
        root = writer.node("Sqrt", f"{name}.root", writer.node("Add", f"{name}.more", mean, epsilon))
        scale = writer.parameter(f"{name}.scale", model.norms[number].detach().numpy())
        return writer.node("Mul", name, writer.node("Div", f"{name}.unit", x, root), scale)

    epsilon, scaling = (
        constant("epsilon", 1e-5, dtype=np.float32),
        constant("scaling", math.sqrt(size), dtype=np.float32),
    )
    split, join = constant("heads", 1, -1, HEADS, size), constant("width", 1, -1, WIDTH)
    zero, one, two = constant("zero", 0), constant("one", 1), writer.parameter("axis.keys", np.array([2], np.int64))
    words = writer.node("Gather", "words", writer.parameter("words.table", model.words.weight.detach().numpy()), "ids")
    places = writer.parameter("places.table", model.places.weight.detach().numpy())
    x = writer.node("Add", "embedded", words, writer.node("Gather", "places", places, "position_ids"))
    mask = ""
    for layer in range(LAYERS):
        h = norm(f"norm_q{layer}", x, 2 * layer)
        heads = {}
        for name in "qkv":
            rows = writer.node("Reshape", f"{name}{layer}.rows", dense(f"{name}{layer}", h), split)
            heads[name] = writer.node("Transpose", f"{name}{layer}.heads", rows, perm=[0, 2, 1, 3])
        for name, what in (("k", "key"), ("v", "value")):
            past, whole = f"past_key_values.{layer}.{what}", f"present.{layer}.{what}"
            heads[name] = writer.node("Concat", f"join_{name}{layer}", past, heads[name], output=whole, axis=2)
        if not mask:
            length = writer.node("Gather", "length", writer.node("Shape", "sizes", heads["k"]), constant("axis", 2))
            known = writer.node("Range", "known", zero, length, one)
            rows = writer.node("Unsqueeze", "rows", "position_ids", two)
            later = writer.node("Greater", "later", known, rows)
            hidden, seen = constant("hidden", -1e9, dtype=np.float32), constant("seen", 0.0, dtype=np.float32)
            mask = writer.node("Where", "mask", later, hidden, seen)
        turned = writer.node("Transpose", f"k{layer}.turned", heads["k"], perm=[0, 1, 3, 2])
        scores = writer.node("Div", f"scores{layer}", writer.node("MatMul", f"qk{layer}", heads["q"], turned), scaling)
        chances = writer.node("Softmax", f"softmax{layer}", writer.node("Add", f"masked{layer}", scores, mask), axis=-1)
        h = writer.node(
            "Transpose", f"av{layer}.rows", writer.node("MatMul", f"av{layer}", chances, heads["v"]), perm=[0, 2, 1, 3]
        )
        h = dense(f"o{layer}", writer.node("Reshape", f"av{layer}.joined", h, join))
        x = writer.node("Add", f"attended{layer}", x, h)
        h = norm(f"norm_ffn{layer}", x, 2 * layer + 1)
        gate = dense(f"gate{layer}", h)
        gate = writer.node("Mul", f"silu{layer}", gate, writer.node("Sigmoid", f"sigmoid{layer}", gate))
        h = dense(f"down{layer}", writer.node("Mul", f"gated{layer}", gate, dense(f"up{layer}", h)))
        x = writer.node("Add", f"residual{layer}", x, h)
    head = writer.parameter("head.weight", model.dense["head"].weight.detach().numpy().T)
    writer.node("MatMul", "head", norm("norm", x, 2 * LAYERS), head, output="logits")

    def value(name: str, kind: int, *shape: int | str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    kept = [f"{layer}.{what}" for layer in range(LAYERS) for what in ("key", "value")]
    given = [value(name, TensorProto.INT64, 1, "S") for name in ("ids", "position_ids")]
    given += [value(f"past_key_values.{name}", TensorProto.FLOAT, 1, HEADS, "P", size) for name in kept]
    made = [value("logits", TensorProto.FLOAT, 1, "S", len(WORDS))]
    made += [value(f"present.{name}", TensorProto.FLOAT, 1, HEADS, "T", size) for name in kept]
    return writer.model(given, made)


def main() -> None:
    rng = np.random.default_rng(SEED)
    parts = {name: windows(count, rng) for name, count in COUNTS.items()}
    model = trained(parts["train"])
    onnx.save(exported(model), FOLDER / "stories_decoder.onnx")
    np.savez_compressed(
        FOLDER / "stories.npz",
        words=np.array(WORDS),
        **{name: parts[name].astype(np.uint8) for name in ("calibration", "evaluation")},
    )


if __name__ == "__main__":
    main()
