"""The house as its imports draw it: contracts in pyproject.toml say which floor is above which; here, no circles."""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp


def test_no_module_imports_itself_by_a_detour() -> None:
    """Imports for type checkers and those inside of functions count too; CycleError shows the circle."""
    house = grimp.build_graph("qbench", cache_dir=None)
    imports = {module: house.find_modules_directly_imported_by(module) for module in house.modules}
    assert len(imports) > 300
    TopologicalSorter(imports).prepare()
