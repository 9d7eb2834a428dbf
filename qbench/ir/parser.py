"""Text back into graphs: the inverse of :mod:`qbench.ir.graph`, exact and strict.

    text      = (constant)* graph (constant)*
    graph     = "def" @name "(" [%name ":" value ("," ...)*] ")" "->" values "{" (node)* results "}"
    constant  = @name ":" value ";"
    node      = results "=" op "(" [operand ("," operand)*] ("," key "=" attribute)* ")" ";" ["//" note]
    note      = (value | "name=" string | "sources=" strings | "reason=" string) ("," ...)*
    value     = "Tensor[(" sizes ")," dtype "]" [dtype "(scale=" number(s) ", zero_point=" int(s) [axis] ")"]
    axis      = ", axis=" int [", block=" int]

Types are inferred again; those in the text must agree with them.
"""

from collections.abc import Mapping
from typing import TypeVar

from qbench.errors import nearest, shown
from qbench.ir.build import build
from qbench.ir.dtypes import DType, is_dtype
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.lexer import Cursor, Token
from qbench.ir.qparams import QParams
from qbench.ir.sizes import size_of
from qbench.ir.types import Dim, TensorType

T = TypeVar("T")
Value = tuple[TensorType, QParams | None]

_WORDS: dict[str, Attr] = {"True": True, "False": False, "None": None, "inf": float("inf"), "nan": float("nan")}
_QPARAMS = ("scale", "zero_point", "axis", "block")
_DEEPEST = 50


def parse_graph(text: str, constants: Mapping[str, Constant] | None = None) -> Graph:
    """The graph that `text` describes.

    Parameters
    ----------
    text
        What :func:`qbench.ir.graph.print_graph` gives, or the same written by hand: notes after ``//`` may be left
        out, ``#`` starts a comment.
    constants
        The arrays of all ``@`` names, of the declared types.

    Raises
    ------
    ParseError
        With line, column and the line itself.
    GraphError
        Where the text is well formed but the graph is not.
    """
    return _Parser(text, constants or {}).graph()


class _Parser(Cursor):
    def __init__(self, text: str, arrays: Mapping[str, Constant]) -> None:
        super().__init__(text)
        self.arrays = arrays
        self.constants: dict[str, Constant] = {}
        self.qparams: dict[str, QParams] = {}
        self.said: list[tuple[Token, str, Value]] = []
        self.refs: list[Token] = []

    def graph(self) -> Graph:
        self.constant_lines()
        self.take("def")
        name = self.name_of(self.take_kind("ref", "@"))
        inputs: dict[str, TensorType] = {}
        for token, (kind, qparams) in self.listed(self.input):
            value = self.name_of(token)
            if value in inputs:
                raise self.error(token, f"input {shown(value)} is given twice")
            inputs[value] = kind
            self.say(token, value, (kind, qparams), first=True)
        self.take("->")
        signature = self.one_or_listed(lambda: (self.peek, self.value()))
        self.take("{")
        nodes: list[Node] = []
        results = self.one_or_listed(self.ref)
        while self.accept("="):
            nodes.append(self.node(results))
            results = self.one_or_listed(self.ref)
        self.take("}")
        self.constant_lines()
        if self.peek.kind != "end":
            raise self.error(self.peek, "expected the end of the text or a constant such as @w: Tensor[(2, 3), int8];")
        if len(results) != len(signature):
            raise self.error(results[0] if results else self.tokens[-1], f"{len(signature)} outputs were declared")
        outputs = [self.name_of(token) for token in results]
        for value, (token, said) in zip(outputs, signature, strict=True):
            self.say(token, value, said)
        self.check_refs()
        graph = build(name, inputs, outputs, nodes, self.constants, self.qparams)
        self.check_said(graph)
        return graph

    def constant_lines(self) -> None:
        while self.peek.kind == "ref" and self.peek.text.startswith("@"):
            token = self.take_kind("ref", "@")
            name = self.name_of(token)
            self.take(":")
            value = self.value()
            self.take(";")
            if name in self.constants:
                raise self.error(token, f"constant {shown(name)} is declared twice")
            if name not in self.arrays:
                raise self.error(token, f"no array is given for constant {shown(name)}{nearest(name, self.arrays)}")
            self.constants[name] = self.arrays[name]
            self.say(token, name, value, first=True)

    def node(self, results: list[Token]) -> Node:
        if not results:
            raise self.error(self.peek, "a node must have results")
        op = self.take_kind("word").text
        inputs: list[str] = []
        attrs: dict[str, Attr] = {}
        for token, operand in self.listed(self.argument):
            if operand is None:
                if attrs:
                    raise self.error(token, "operands come before attributes")
                inputs.append(self.name_of(token))
            elif token.text in attrs:
                raise self.error(token, f"attribute {token.text} is given twice")
            else:
                attrs[token.text] = operand[0]
        self.take(";")
        outputs = tuple(self.name_of(token) for token in results)
        note = self.note(results) if self.accept("//") else {}
        name = note.get("name", outputs[0])
        return Node(
            name=self.checked(str, name),
            op=op,
            inputs=tuple(inputs),
            outputs=outputs,
            attrs=FrozenMap(attrs),
            sources=tuple(self.checked(str, source) for source in _several(note.get("sources", (name,)))),
            reason=self.checked(str, note.get("reason", "")),
        )

    def note(self, results: list[Token]) -> dict[str, Attr]:
        found: dict[str, Attr] = {}
        count = 0
        while True:
            token = self.peek
            if token.text == "Tensor":
                if count == len(results) or found:
                    raise self.error(token, f"the node has {len(results)} results, and their types come first")
                self.say(token, self.name_of(results[count]), self.value(), first=True)
                count += 1
            elif token.text in ("name", "sources", "reason") and token.text not in found:
                self.index += 1
                self.take("=")
                found[token.text] = self.attribute()
            else:
                raise self.error(token, "expected a type, name=, sources= or reason= (# starts a comment)")
            if not self.accept(","):
                break
        if count not in (0, len(results)):
            raise self.error(self.peek, f"types of {len(results)} results expected, found {count}")
        return found

    def input(self) -> tuple[Token, Value]:
        token = self.ref("%")
        self.take(":")
        return token, self.value()

    def argument(self) -> tuple[Token, tuple[Attr] | None]:
        if self.peek.kind == "ref":
            return self.ref(), None
        key = self.take_kind("word")
        self.take("=")
        return key, (self.attribute(),)

    def value(self) -> Value:
        start = self.take("Tensor")
        self.take("[")
        shape = tuple(self.listed(self.dim))
        self.take(",")
        dtype = self.take_kind("word").text
        self.take("]")
        if not is_dtype(dtype):
            raise self.error(start, f"unknown dtype {dtype}")
        kind = self.guarded(start, lambda: TensorType(shape, dtype))
        return kind, self.qparams_of(self.peek.text) if is_dtype(self.peek.text) else None

    def dim(self) -> Dim:
        start, depth = self.peek, 0
        while self.peek.kind != "end" and not (depth == 0 and self.peek.text in (",", ")")):
            depth += {"(": 1, ")": -1}.get(self.peek.text, 0)
            self.index += 1
        text = self.text[start.start : self.peek.start].strip()
        return self.guarded(start, lambda: size_of(text).dim)

    def qparams_of(self, dtype: DType) -> QParams:
        start = self.take_kind("word")
        fields: dict[str, Attr] = {}
        for token, operand in self.listed(self.argument):
            if operand is None or token.text not in _QPARAMS or token.text in fields:
                raise self.error(token, "qparams are scale, zero_point, axis and block")
            fields[token.text] = operand[0]
        scale, zero_point, axis = fields.get("scale"), fields.get("zero_point"), fields.get("axis")
        needed = ("scale", "zero_point", "axis") if isinstance(scale, tuple) else ("scale", "zero_point")
        if missing := [field for field in needed if field not in fields]:
            raise self.error(start, f"qparams need {' and '.join(missing)} here")
        real = tuple(self.checked(float, item) for item in _several(scale))
        whole = tuple(self.checked(int, item) for item in _several(zero_point))
        if axis is None and not isinstance(scale, tuple):
            return self.guarded(start, lambda: QParams(real[0], whole[0], dtype))
        along = self.checked(int, axis)
        spread = whole if isinstance(zero_point, tuple) else whole * len(real)
        block = None if fields.get("block") is None else self.checked(int, fields["block"])
        return self.guarded(start, lambda: QParams(real, spread, dtype, along, block))

    def attribute(self, depth: int = 0) -> Attr:
        token = self.peek
        if token.text == "(":
            if depth == _DEEPEST:
                raise self.error(token, f"tuples are nested more than {_DEEPEST} deep")
            return tuple(self.listed(lambda: self.attribute(depth + 1)))
        if token.kind == "string":
            self.index += 1
            return self.characters(token)
        if token.kind == "word" and token.text in _WORDS:
            self.index += 1
            return _WORDS[token.text]
        return self.number()

    def number(self) -> int | float:
        token = self.take_kind("number")
        is_whole = token.text.lstrip("-").isdigit()
        return self.guarded(token, lambda: int(token.text) if is_whole else float(token.text))

    def ref(self, sigil: str = "") -> Token:
        token = self.take_kind("ref", sigil)
        self.refs.append(token)
        return token

    def checked(self, kind: type[T], value: object) -> T:
        """`value`, which must be of that very type; the error points at the token just read."""
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise self.error(self.last, f"expected {kind.__name__}, found {shown(str(value), 40)}")
        return value  # pyright: ignore[reportReturnType] checked just above

    def say(self, token: Token, name: str, value: Value, first: bool = False) -> None:
        """Note what the text says a value is, to be compared with what the finished graph knows."""
        self.said.append((token, name, value))
        if first and value[1] is not None:
            self.qparams[name] = value[1]

    def check_refs(self) -> None:
        for token in self.refs:
            if token.text.startswith("@") != (self.name_of(token) in self.constants):
                raise self.error(token, "@ marks constants, which need a line such as @w: Tensor[(2, 3), int8];")

    def check_said(self, graph: Graph) -> None:
        for token, name, (kind, qparams) in self.said:
            if name not in graph.types:
                raise self.error(token, f"constant {shown(name)} is never used")
            if graph.types[name] != kind:
                raise self.error(token, f"{shown(name)} is {graph.types[name]}, but the text says {kind}")
            if graph.qparams.get(name) != qparams:
                raise self.error(token, f"the qparams of {shown(name)} differ from those where it is made")


def _several(value: Attr) -> tuple[Attr, ...]:
    return value if isinstance(value, tuple) else (value,)
