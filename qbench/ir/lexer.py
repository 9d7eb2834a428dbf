"""The tokens of the IR's text, and errors that point at them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from qbench.errors import GraphError, ParseError, QParamsError, shown
from qbench.ir.graph import BARE, SHORT

T = TypeVar("T")

_STRING = r'"(?:[^"\\\n]++|\\.)*+"'
_TOKEN = re.compile(
    rf"""
      (?P<short>{re.escape(SHORT)}|\.\.)
    | (?P<skip>\s+|\#[^\n]*)
    | (?P<ref>[%@](?:{BARE}|{_STRING}))
    | (?P<string>{_STRING})
    | (?P<number>-?\d+(?:\.(?!\.)\d*)?(?:[eE][+-]?\d+)?|-inf\b)
    | (?P<word>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
    | (?P<mark>->|//|[(){{}}\[\],:;=*+-])
    """,
    re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(r'\\(?:u\{([0-9a-f]{1,6})\}|(["\\nrt]))|\\')
_PLAIN = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_CONTEXT = 60


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text: what kind it is, its characters, and where it starts."""

    kind: str
    text: str
    start: int


class Cursor:
    """A place in a text that moves token by token."""

    def __init__(self, text: str) -> None:
        self.text: str = text
        self.tokens: list[Token] = tokens_of(text)
        self.index: int = 0

    def name_of(self, token: Token) -> str:
        """The name that a reference such as ``%x`` or ``@"a b"`` stands for."""
        return self.characters(token, 2) if '"' in token.text else token.text[1:]

    def characters(self, token: Token, opening: int = 1) -> str:
        """What a string literal stands for, without its first `opening` characters and the last quote."""

        def plain(match: re.Match[str]) -> str:
            code = int(match[1], 16) if match[1] else 0x110000
            if match[2]:
                return _PLAIN[match[2]]
            if code > 0x10FFFF:
                raise error_at(self.text, token.start + opening + match.start(), "unknown escape in a string")
            return chr(code)

        return _ESCAPE.sub(plain, token.text[opening:-1])

    def guarded(self, token: Token, make: Callable[[], T]) -> T:
        """What `make` gives; an error of values becomes a ParseError at `token`."""
        try:
            return make()
        except (GraphError, QParamsError, ValueError, OverflowError) as error:
            raise self.error(token, str(error)) from None

    def listed(self, item: Callable[[], T]) -> list[T]:
        """``( item, item )``, with an optional comma at the end."""
        self.take("(")
        items: list[T] = []
        while not self.accept(")"):
            items.append(item())
            if not self.accept(","):
                self.take(")")
                break
        return items

    def one_or_listed(self, item: Callable[[], T]) -> list[T]:
        """One item, or several in parentheses."""
        return self.listed(item) if self.peek.text == "(" else [item()]

    @property
    def peek(self) -> Token:
        """The token to be read next."""
        return self.tokens[self.index]

    @property
    def last(self) -> Token:
        """The token read last."""
        return self.tokens[self.index - 1]

    def accept(self, mark: str) -> bool:
        """Read `mark` if it stands here; whether it did."""
        found = self.peek.text == mark and self.peek.kind != "string"
        self.index += found
        return found

    def take(self, mark: str) -> Token:
        """Read `mark`, which must stand here."""
        token = self.peek
        if not self.accept(mark):
            raise self.error(token, f"expected {mark!r}, found {_seen(token)}")
        return token

    def take_kind(self, kind: str, sigil: str = "") -> Token:
        """Read a token of that kind, which must stand here."""
        token = self.peek
        if token.kind != kind or not token.text.startswith(sigil):
            wanted = {"ref": f"a name such as {sigil or '%'}x", "word": "a word", "number": "a value"}[kind]
            raise self.error(token, f"expected {wanted}, found {_seen(token)}")
        self.index += 1
        return token

    def error(self, token: Token, message: str) -> ParseError:
        """A ParseError that points at `token`."""
        return error_at(self.text, token.start, message)


def tokens_of(text: str) -> list[Token]:
    """All tokens, closed by one of kind ``end``; blanks and ``#`` comments are left out."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise error_at(text, position, f"unexpected character {text[position]!r}")
        kind = match.lastgroup or ""
        if kind == "short":
            raise error_at(
                text, position, "this is the short form, for reading only; print_graph(graph) gives the exact text"
            )
        if kind != "skip":
            tokens.append(Token(kind, match[0], position))
        position = match.end()
    tokens.append(Token("end", "", len(text)))
    return tokens


def _seen(token: Token) -> str:
    return shown(token.text, 40) if token.text else "the end of the text"


def error_at(text: str, position: int, message: str) -> ParseError:
    """A ParseError with line and column (from 1), and the line itself with a caret under the place."""
    line = text.count("\n", 0, position) + 1
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    column = position - start
    left = max(start, position - _CONTEXT)
    excerpt = text[left : min(len(text) if end < 0 else end, position + _CONTEXT)]
    visible = "".join(c if c.isprintable() else "." for c in excerpt)
    return ParseError(f"line {line}, column {column + 1}: {message}\n  {visible}\n  {' ' * (position - left)}^")
