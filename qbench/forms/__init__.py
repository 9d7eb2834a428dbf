"""The one road into integers: how a float op with given qparams, bias, semantics and rounding becomes qnn ops.

Calibrated float graphs, files with quantizers in them, and TFLite files all ask here, each for one node and what is
fused behind it (a `Site`), and put what they get (a `Form`) in the node's place, under names of their own.
"""

from qbench.forms.families import absorbs_bias, absorbs_clamps, form_of
from qbench.forms.form import Form, Integers, Step, What
from qbench.forms.site import Arithmetic, Bias, NoForm, Operand, Site

__all__ = [
    "Arithmetic",
    "Bias",
    "Form",
    "Integers",
    "NoForm",
    "Operand",
    "Site",
    "Step",
    "What",
    "absorbs_bias",
    "absorbs_clamps",
    "form_of",
]
