"""The ops: importing this package fills `qbench.ir.op.OPS` with every declaration, one folder for each dialect."""

from importlib import import_module
from pkgutil import walk_packages

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)
