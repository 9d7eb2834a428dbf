"""One file per family of ops: how its steps become instructions. Importing this package finds them all."""

from importlib import import_module
from pkgutil import walk_packages

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)
