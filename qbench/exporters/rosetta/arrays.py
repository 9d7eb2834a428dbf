"""Scales as arrays, the way a PyTorch ``state_dict`` has them: ``NAME.scale``, ``NAME.zero_point``; and ``NAME.bits``.

A zero point has the signedness of the tensor's integers.
"""

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from qbench.errors import ConfigError, shown
from qbench.exporters.rosetta.facts import Facts, bits_of, override
from qbench.ir.dtypes import integer_range
from qbench.ir.op import Array
from qbench.quant.specs import TensorOverride


def write_npz(facts: Facts) -> bytes:
    """The arrays as ``numpy.load`` reads them."""
    file = io.BytesIO()
    np.savez(file, **_arrays(facts))  # pyright: ignore[reportArgumentType] names are the keywords
    return file.getvalue()


def read_npz(data: bytes) -> Facts:
    """What an npz says; ConfigError where it is none."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return _facts(dict(arrays))
    except (ValueError, OSError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise ConfigError(f"not an npz of arrays: {error}") from error


def write_safetensors(facts: Facts) -> bytes:
    """The arrays as ``safetensors.torch.load`` reads them."""
    return safetensors.numpy.save(_arrays(facts))


def read_safetensors(data: bytes) -> Facts:
    """What a safetensors file says; ConfigError where it is none."""
    try:
        return _facts(safetensors.numpy.load(data))
    except (safetensors.SafetensorError, ValueError) as error:
        raise ConfigError(f"not a safetensors file: {error}") from error


def _arrays(facts: Facts) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for name, said in {**facts.activations, **facts.weights}.items():
        low = integer_range(said.dtype or "int8")[0]
        found[f"{name}.scale"] = np.asarray(said.scale, np.float32)
        found[f"{name}.zero_point"] = np.asarray(said.zero_point, np.int32 if low else np.uint32)
        found[f"{name}.bits"] = np.asarray(bits_of(said), np.uint8)
    return found


def _facts(arrays: Mapping[str, Any]) -> Facts:
    found: dict[str, TensorOverride] = {}
    for key, scale in arrays.items():
        name, _, what = key.rpartition(".")
        if what not in ("scale", "zero_point", "bits"):
            raise ConfigError(f"{shown(key)} is neither NAME.scale, NAME.zero_point nor NAME.bits")
        if what == "scale":
            zero_point = arrays.get(f"{name}.zero_point", np.zeros(np.shape(scale), np.int32))
            dtype = f"{'u' if zero_point.dtype.kind == 'u' else ''}int{int(arrays.get(f'{name}.bits', 8))}"
            found[name] = override(scale.ravel(), zero_point.ravel(), dtype, per_channel=scale.ndim > 0)
    return Facts(activations=found)
