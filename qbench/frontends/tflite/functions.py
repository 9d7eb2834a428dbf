"""What a file keeps in more than one function: named parts, branches, which both run, loops, and states of streams."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from qbench.errors import ModelError, shown
from qbench.frontends.tflite.source import ABSENT, Array, SourceModel, SourceOperator

_LOG = logging.getLogger(__name__)

FUNCTION_OPTIONS = {
    "CALL_ONCE": ("init_subgraph_index",),
    "IF": ("then_subgraph_index", "else_subgraph_index"),
    "STABLEHLO_COMPOSITE": ("decomposition_subgraph_index",),
    "WHILE": ("cond_subgraph_index", "body_subgraph_index"),
}
"""The operators that name other functions, and the options that do."""

SILENT = frozenset({"CALL_ONCE", "ASSIGN_VARIABLE"})
"""Operators that make no tensor."""


def flattened(functions: Sequence[SourceModel]) -> SourceModel:
    """The first function of a file with all that it asks of the others.

    A composite is what it is made of. Both branches of an IF run, and their results are chosen from. A variable, which
    the model reads as its last run has left it, becomes an input and an output; one that nothing assigns, the constant
    that it is at first. Loops stay, and the functions that they name.

    Parameters
    ----------
    functions
        All of the file; no name of a tensor stands in two of them.

    Raises
    ------
    ModelError
        A function that the first one does not use (which of them is wanted?), or that is used twice.
    """
    main = functions[0]
    starts = [op for op in main.operators if op.op == "CALL_ONCE"]
    joined = _Branches(functions).joined()
    return _without_variables(joined, _first_values([functions[_index(op, functions)] for op in starts]))


class _Branches:
    """The functions of a file joined into one list of tensors."""

    def __init__(self, functions: Sequence[SourceModel]) -> None:
        self.functions, self.used = functions, {0}
        self.tensors, self.operators = [*functions[0].tensors], list[SourceOperator]()

    def joined(self) -> SourceModel:
        main = self.functions[0]
        self._take(main.operators, {})
        unused = len(self.functions) - len(self.used)
        if unused:
            raise ModelError(
                f"the model has {len(self.functions)} subgraphs, {unused} of which the first does not use; qbench reads"
                " models with one function: export the one that is wanted"
            )
        operators, functions = tuple(self.operators), tuple(self.functions)
        return replace(main, tensors=tuple(self.tensors), operators=operators, functions=functions)

    def _take(self, operators: Sequence[SourceOperator], place: Mapping[int, int]) -> None:
        for op in operators:
            known = _renumbered(op, place)
            if op.op == "IF":
                self._choose(known)
                continue
            if op.op == "STABLEHLO_COMPOSITE":
                self._called(known, FUNCTION_OPTIONS[op.op][0], known.inputs, known.output_numbers)
                continue
            self._keep(op)
            self.operators.append(known)

    def _keep(self, op: SourceOperator) -> None:
        """Use the functions that an operator names as they are, and those that they name."""
        for option in FUNCTION_OPTIONS.get(op.op, ()):
            for inner in self._use(op, option).operators:
                self._keep(inner)

    def _choose(self, op: SourceOperator) -> None:
        if not op.inputs:
            raise ModelError(f"operator {op} has no condition")
        condition, *given = op.inputs
        branches = [self._called(op, option, given) for option in FUNCTION_OPTIONS["IF"]]
        for number, name, *results in zip(op.output_numbers, op.outputs, *branches, strict=True):
            chosen = SourceOperator(name, "SELECT_V2", (condition, *results), (number,), (name,), "", {})
            self.operators.append(chosen)

    def _called(self, op: SourceOperator, option: str, given: Sequence[int], made: Sequence[int] = ()) -> list[int]:
        """The numbers of what a function makes of some tensors, once its operators stand behind those before.

        `made` are numbers for its results, where they have some already.
        """
        function = self._use(op, option)
        if len(function.inputs) != len(given) or len(function.outputs) != len(op.outputs):
            raise ModelError(f"operator {op}: its function takes or makes another number of tensors than it")
        place = {number: len(self.tensors) + number for number in range(len(function.tensors))}
        place |= dict(zip(function.outputs, made, strict=bool(made)))
        place |= dict(zip(function.inputs, given, strict=True))
        self.tensors += function.tensors
        self._take(function.operators, place)
        return [place[number] for number in function.outputs]

    def _use(self, op: SourceOperator, option: str) -> SourceModel:
        index = _index(op, self.functions, option)
        if index in self.used:
            raise ModelError(f"operator {op} uses subgraph {index}, which is in use already")
        self.used.add(index)
        return self.functions[index]


def _index(op: SourceOperator, functions: Sequence[SourceModel], option: str = "init_subgraph_index") -> int:
    index = op.integer(option)
    if not 0 <= index < len(functions):
        raise ModelError(f"operator {op} refers to subgraph {index} of {len(functions)}")
    return index


def _renumbered(op: SourceOperator, place: Mapping[int, int]) -> SourceOperator:
    if not place:
        return op
    inputs = tuple(place.get(number, number) for number in op.inputs)
    return replace(op, inputs=inputs, output_numbers=tuple(place.get(number, number) for number in op.output_numbers))


def _first_values(functions: Sequence[SourceModel]) -> dict[str, Array]:
    """What variables hold before the first run, where that is a constant."""
    values = dict[str, Array]()
    for function in functions:
        handles = _Handles()
        for op in function.operators:
            variable = handles.of(op)
            value = _assigned(op) if op.op == "ASSIGN_VARIABLE" else ABSENT
            array = None if value == ABSENT else function.tensors[value].array
            if variable is not None and array is not None:
                values[variable] = array
    return values


class _Handles:
    """Which variable each tensor stands for that an operator names one by."""

    def __init__(self) -> None:
        self.names = dict[int, str]()

    def of(self, op: SourceOperator) -> str | None:
        """The variable that an operator names, reads or assigns; None for all others."""
        if op.op == "VAR_HANDLE":
            name = "/".join(str(op.options[key]) for key in ("container", "shared_name") if op.options.get(key))
            self.names[op.output_numbers[0]] = name
            return name
        if op.op not in ("READ_VARIABLE", "ASSIGN_VARIABLE"):
            return None
        handle = op.inputs[0] if op.inputs else ABSENT
        if handle not in self.names:
            raise ModelError(f"operator {op} reads or assigns a variable that no VAR_HANDLE names")
        return self.names[handle]


@dataclass
class _State:
    """A variable in the course of a run: what it held at first, and now."""

    first: int | None
    now: int


def _without_variables(source: SourceModel, values: Mapping[str, Array]) -> SourceModel:
    handles, states, same = _Handles(), dict[str, _State](), dict[int, int]()
    operators = list[SourceOperator]()
    for op in source.operators:
        variable = handles.of(op)
        if op.op == "READ_VARIABLE" and variable is not None:
            made = op.output_numbers[0]
            state = states.setdefault(variable, _State(made, made))
            if state.now != made:
                same[made] = state.now
        elif op.op == "ASSIGN_VARIABLE" and variable is not None:
            value = _assigned(op)
            value = same.get(value, value)
            states.setdefault(variable, _State(None, value)).now = value
        elif variable is None and op.op != "CALL_ONCE":
            operators.append(_renumbered(op, same))
    return _opened(replace(source, operators=tuple(operators)), states, same, values)


def _assigned(op: SourceOperator) -> int:
    if len(op.inputs) != 2:
        raise ModelError(f"operator {op} has {len(op.inputs)} inputs, not 2")
    return op.inputs[1]


def _opened(
    source: SourceModel, states: Mapping[str, _State], same: Mapping[int, int], values: Mapping[str, Array]
) -> SourceModel:
    """States that are read and changed as inputs and outputs, those that are only read as constants."""
    tensors, inputs = [*source.tensors], [*source.inputs]
    outputs = [same.get(number, number) for number in source.outputs]
    for variable, state in states.items():
        if state.first is None:
            continue
        if state.first != state.now:
            inputs.append(state.first)
            outputs += [] if state.now in outputs else [state.now]
            told = (shown(variable), tensors[state.first], tensors[state.now])
            _LOG.warning("variable %s comes in as input %s and goes out as output %s", *told)
        elif variable in values:
            tensors[state.first] = replace(tensors[state.first], array=values[variable])
        else:
            raise ModelError(f"variable {shown(variable)} is read, but nothing assigns it")
    return replace(source, tensors=tuple(tensors), inputs=tuple(inputs), outputs=tuple(outputs))
