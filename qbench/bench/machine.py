"""What a benchmark ran on."""

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from qbench.kernels.levels import current

_PACKAGES = ("qbench", "numpy", "numba", "llvmlite", "onnxruntime", "openvino", "nncf", "ai-edge-litert")


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def installed(package: str) -> str | None:
    """The version of a package that is there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def describe() -> dict[str, object]:
    """The processor, its level, and the versions of everything that is timed."""
    versions = {package: found for package in _PACKAGES if (found := installed(package))}
    return {
        "cpu": _cpu(),
        "cores": cores(),
        "level": str(current()),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": versions,
    }


def _cpu() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()
