"""Write ``fastpong/page/core.js``, the console's plain core in JavaScript, from its Python: python docs/make_core.py.

`frame`, `set_controls` and all that they call are translated statement by statement. A number is an integer below 2⁵³
in both languages, so what remains are names, floor division, and tuples. Only what the plain core uses is known here;
anything else ends with an error that shows it.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from fastpong.console import controls, plain
from fastpong.console.state import STATE
from fastpong.kernels.compile.jit import uncompiled
from fastpong.pong import SCREEN

PATH = Path(__file__).parent.parent / "fastpong" / "page" / "core.js"

HEAD = """\
// The console's plain core, from fastpong/console by `python docs/make_core.py`: do not change it here.
// `core.power_on(rom)` is a state; `core.set_controls` and `core.frame` do to it what their twins in Python do.
"use strict";

const core = (() => {
const mod = (a, b) => { const rest = a % b; return rest < 0 ? rest + b : rest; };
const divmod = (a, b) => [Math.floor(a / b), mod(a, b)];
"""

TAIL = """\
return { power_on, set_controls, frame, PADDLE_LOW, PADDLE_HIGH, PADDLE_STEP };
})();
"""

# JavaScript's operators with their precedence; those of comparisons bind more tightly than &, ^ and |.
BINARY = {
    ast.Mult: ("*", 12), ast.Add: ("+", 11), ast.Sub: ("-", 11), ast.LShift: ("<<", 10), ast.RShift: (">>", 10),
    ast.BitAnd: ("&", 7), ast.BitXor: ("^", 6), ast.BitOr: ("|", 5),
}  # fmt: skip
COMPARISONS = {
    ast.Lt: ("<", 9), ast.LtE: ("<=", 9), ast.Gt: (">", 9), ast.GtE: (">=", 9),
    ast.Eq: ("===", 8), ast.NotEq: ("!==", 8),
}  # fmt: skip
AND, OR, CONDITION, UNARY, ATOM = 4, 3, 2, 14, 20

BUILTINS = {"min": "Math.min", "max": "Math.max", "bool": "Boolean", "divmod": "divmod"}


def text() -> str:
    """Return the file."""
    constants: dict[str, Any] = {}
    functions: dict[str, str] = {}
    wanted: list[Callable[..., Any]] = [plain.frame, controls.set_controls]
    while wanted:
        function = inspect.unwrap(uncompiled(wanted.pop(0)))
        if function.__name__ not in functions:
            translator = Translator(function, constants)
            functions[function.__name__] = translator.text()
            wanted += translator.called
    numbers = {name: value for name, value in constants.items() if isinstance(value, (int, float))}
    lists = {name: value for name, value in constants.items() if name not in numbers}
    together = ", ".join(f"{name} = {value!r}" for name, value in sorted(numbers.items()))
    return "\n".join(
        [
            HEAD,
            *wrapped(f"const {together};"),
            *(line for name, value in sorted(lists.items()) for line in wrapped(f"const {name} = {literal(value)};")),
            "",
            power_on(),
            *functions.values(),
            TAIL,
        ]
    )


def wrapped(line: str) -> list[str]:
    """Break a line between words, but not beside an equals sign."""
    lines = textwrap.wrap(line.replace(" = ", "\xa0=\xa0"), 118, subsequent_indent="  ", break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


def literal(value: Any) -> str:
    """Return a list of integers; arrays are flat."""
    numbers = ", ".join(str(int(number)) for number in np.ravel(value))
    return f"[{numbers}]" if isinstance(value, tuple) else f"Int32Array.of({numbers})"


def power_on() -> str:
    """Return the function that makes a state as the console is switched on. Of the cartridge only PC comes."""
    s = np.zeros(1, STATE)[0]
    controls.power_on(s, np.zeros(2048, np.uint8))
    fields = []
    for name in STATE.names or ():
        if name == "ram":
            fields.append(f"ram: new Uint8Array({len(s.ram)})")
        elif name == "PC":
            fields.append("PC: rom[vector] | rom[vector + 1] << 8")
        elif name != "unused":
            fields.append(f"{name}: {literal(s[name]) if s[name].ndim else int(s[name])}")
    return "\n".join(
        [
            "// Switch the console on: return its state.",
            "function power_on(rom) {",
            f"  const vector = {controls.RESET_VECTOR} & rom.length - 1;",
            *textwrap.indent("\n".join(wrapped(f"return {{ {', '.join(fields)} }};")), "  ").splitlines(),
            "}\n",
        ]
    )


class Translator:
    """A function of the core in JavaScript: `text`. What it calls is in `called`; its constants go to `constants`."""

    def __init__(self, function: Callable[..., Any], constants: dict[str, Any]):
        self.globals, self.constants = inspect.getmodule(function).__dict__, constants
        self.called: list[Callable[..., Any]] = []
        node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(node, ast.FunctionDef) and not node.args.defaults
        self.node, self.arguments = node, [argument.arg for argument in node.args.args]
        stored = (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        self.variables = dict.fromkeys(name for name in stored if name not in self.arguments)

    def text(self) -> str:
        """Return the function, after the first line of its docstring."""
        docstring = (ast.get_docstring(self.node) or "").splitlines()[0]
        names = ", ".join(self.local(name) for name in self.variables)
        lines = [f"// {docstring}", f"function {self.node.name}({', '.join(map(self.local, self.arguments))}) {{"]
        lines += [f"  let {names};"] if names else []
        return "\n".join([*lines, *self.block(self.node.body[1:]), "}\n"])

    @staticmethod
    def local(name: str) -> str:
        """Return the name of a variable."""
        return "new_" if name == "new" else name  # which is a word of JavaScript's own

    def outside(self, name: str, value: Any) -> str:
        """Return the name of a constant or function of a module."""
        assert name not in self.arguments and name not in self.variables, f"{name} means two things"
        if callable(value):
            self.called.append(value)
        elif name in self.constants:
            assert np.array_equal(self.constants[name], value), f"{name} means two things"
        else:
            self.constants[name] = value
        return name

    # ---- statements ------------------------------------------------------------------------------------------------

    def block(self, body: list[ast.stmt]) -> Iterator[str]:
        """Yield the lines of some statements, indented."""
        for statement in body:
            yield from (f"  {line}" for line in self.statement(statement))

    def statement(self, node: ast.stmt) -> Iterator[str]:
        """Yield the lines of a statement."""
        e = self.expression
        match node:
            case ast.Expr(value):
                yield f"{e(value)};"
            case ast.Assign(targets, value):
                yield " = ".join(map(e, [*targets, value])) + ";"
            case ast.AugAssign(target, operator, value):
                yield f"{e(target)} {BINARY[type(operator)][0]}= {e(value)};"
            case ast.Return(value):
                yield f"return {e(value)};" if value else "return;"
            case ast.While(test, body, []):
                yield f"while ({e(test)}) {{"
                yield from self.block(body)
                yield "}"
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), limits), body, []):
                first, end = ["0", *map(e, limits)][-2:]
                yield f"for ({name} = {first}; {name} < {end}; {name}++) {{"
                yield from self.block(body)
                yield "}"
            case ast.If():
                yield from self.condition(node, "")
            case _:
                raise NotImplementedError(ast.unparse(node))

    def condition(self, node: ast.If, before: str) -> Iterator[str]:
        """Yield the lines of an ``if`` with all its branches."""
        yield f"{before}if ({self.expression(node.test)}) {{"
        yield from self.block(node.body)
        match node.orelse:
            case []:
                yield "}"
            case [ast.If() as other]:
                yield from self.condition(other, "} else ")
            case other:
                yield "} else {"
                yield from self.block(other)
                yield "}"

    # ---- expressions -----------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr, above: int = 0) -> str:
        """Return an expression, in parentheses if it binds less tightly than what is above it."""
        code, own = self.with_precedence(node)
        return f"({code})" if own < above else code

    def with_precedence(self, node: ast.expr) -> tuple[str, int]:
        """Return an expression, and how tightly it binds."""
        e = self.expression
        match node:
            case ast.Constant(value):
                return str(value).lower(), ATOM
            case ast.Name(name):
                local = name in self.arguments or name in self.variables
                return (self.local(name) if local else self.outside(name, self.globals[name])), ATOM
            case ast.Attribute(ast.Name(module), name) if isinstance(self.globals.get(module), ModuleType):
                return self.outside(name, getattr(self.globals[module], name)), ATOM
            case ast.Attribute(value, name):
                return f"{e(value, ATOM)}.{name}", ATOM
            case ast.Subscript(ast.Name(name) as value, ast.Tuple([row, column])):
                width = SCREEN[1] if name == "screen" else self.globals[name].shape[1]
                return f"{e(value)}[{e(row, 12)} * {width} + {e(column, 11)}]", ATOM
            case ast.Subscript(value, index):
                return f"{e(value, ATOM)}[{e(index)}]", ATOM
            case ast.Tuple(elements):
                return f"[{', '.join(map(e, elements))}]", ATOM
            case ast.Call(ast.Name("int"), [argument]):
                return self.integer(argument)
            case ast.Call(ast.Name("len"), [argument]):
                return f"{e(argument, ATOM)}.length", ATOM
            case ast.Call(ast.Name(name), arguments) if name in BUILTINS:
                return f"{BUILTINS[name]}({', '.join(map(e, arguments))})", ATOM
            case ast.Call(function, arguments, []):
                return f"{e(function, ATOM)}({', '.join(map(e, arguments))})", ATOM
            case ast.BinOp(left, ast.Mod(), right):
                return f"mod({e(left)}, {e(right)})", ATOM
            case ast.BinOp(left, ast.FloorDiv(), right):
                return f"Math.floor({e(left, 12)} / {e(right, 13)})", ATOM
            case ast.BinOp(left, operator, right):
                sign, own = BINARY[type(operator)]
                return f"{e(left, own)} {sign} {e(right, own + 1)}", own
            case ast.UnaryOp(ast.Not(), operand):
                return f"!{e(operand, UNARY)}", UNARY
            case ast.UnaryOp(ast.USub(), ast.Constant(value)):
                return f"-{value!r}", UNARY
            case ast.UnaryOp(ast.USub(), operand):  # -x would be -0 of 0, which is a float
                return f"0 - {e(operand, 12)}", 11
            case ast.BoolOp(operator, values):
                sign, own = ("&&", AND) if isinstance(operator, ast.And) else ("||", OR)
                return f" {sign} ".join(e(value, own) for value in values), own
            case ast.Compare(left, [ast.In()], [right]):
                return f"{e(right, ATOM)}.includes({e(left)})", ATOM
            case ast.Compare(left, operators, rights):
                pairs = zip([left, *rights[:-1]], operators, rights, strict=True)
                parts = [self.comparison(*pair) for pair in pairs]
                return " && ".join(code for code, _ in parts), AND if len(parts) > 1 else parts[0][1]
            case ast.IfExp(test, body, orelse):
                return f"{e(test, OR)} ? {e(body, OR)} : {e(orelse, CONDITION)}", CONDITION
            case _:
                raise NotImplementedError(ast.unparse(node))

    def comparison(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> tuple[str, int]:
        """Return one comparison, and how tightly it binds."""
        sign, own = COMPARISONS[type(operator)]
        return f"{self.expression(left, own + 1)} {sign} {self.expression(right, own + 1)}", own

    def integer(self, node: ast.expr) -> tuple[str, int]:
        """Return an integer; it is one already unless there is a float in it."""
        names = (self.globals.get(n.id) if isinstance(n, ast.Name) else None for n in ast.walk(node))
        floats = any(isinstance(n, float) for n in names)
        return (f"Math.trunc({self.expression(node)})", ATOM) if floats else self.with_precedence(node)


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
