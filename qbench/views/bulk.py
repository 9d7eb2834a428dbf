"""What can be set for several layers at once."""

from dataclasses import dataclass
from typing import Any, get_args

from qbench.calibration.settings import describe
from qbench.quant.specs import ActivationDType, WeightDType
from qbench.views.curves import OFFERED
from qbench.views.view import View


@dataclass(frozen=True)
class BulkChoice(View):
    """A value of a setting, as a person and as a config says it; None takes an override back."""

    label: str
    value: Any


@dataclass(frozen=True)
class BulkSetting(View):
    """A setting of :class:`~qbench.quant.specs.TensorOverride`, what it is called, and what it may be."""

    key: str
    label: str
    choices: tuple[BulkChoice, ...]


@dataclass(frozen=True)
class BulkView(View):
    """The settings of activations and of weights."""

    activation: tuple[BulkSetting, ...]
    weight: tuple[BulkSetting, ...]


_DEFAULT = BulkChoice("default", None)
_CALIBRATOR = BulkSetting(
    "calibrator",
    "calibrator",
    (*(BulkChoice(describe(spec), spec.model_dump(mode="json")) for spec in OFFERED), _DEFAULT),
)
_RANGE = BulkSetting("symmetric", "range", (BulkChoice("symmetric", True), BulkChoice("asymmetric", False), _DEFAULT))
_AXIS = BulkSetting(
    "axis", "scales", (BulkChoice("per channel", "channel"), BulkChoice("per tensor", "tensor"), _DEFAULT)
)


def _dtype(names: tuple[str, ...]) -> BulkSetting:
    return BulkSetting("dtype", "type", (*(BulkChoice(name, name) for name in names), _DEFAULT))


BULK = BulkView(
    activation=(_CALIBRATOR, _dtype(get_args(ActivationDType)), _RANGE),
    weight=(_CALIBRATOR, _dtype(get_args(WeightDType)), _RANGE, _AXIS),
)
"""The same for every model."""
