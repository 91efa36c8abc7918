"""Random scripts in JavaScript and inputs for them: most are valid, and some are changed until they are not."""

import json
from random import Random
from typing import Any

PATHS = [
    *["$", "$.n", "$.f", "$.t", "$.u", "$.yes", "$.no", "$.none", "$.missing", "$.o", "$.o.a", "$.o['b']", "$.l"],
    *["$.l[0]", "$.l[1]", "$.l[9]", "$.l.length", "$.t.length", "$.o.length", "$.o.a.b", "$['o'].c[1]", "$.o[1]"],
    *["$.o?.a", "$.none?.a.b", "$.missing?.['x']", "$.t[0]", "$.l[$.n]", "$.o[$.t]", "$.toString", "$.big", "$.l['1']"],
]  # fmt: skip
COMMON = ["$.n", "$.yes", "$.none", "$.missing", "$.o.a", "$.s", "$.i", "1", "2", "'a'", "'b'", "true", "null", "''"]
LITERALS = [
    *["0", "1", "2", "3.5", "0.1", "100", "007", "1e3", "5.", ".5", "9007199254740993", "-1", "-0", "true", "false"],
    *["null", "undefined", "'a'", '"b"', "''", "'5'", "' 5 '", "'é'", "'😀'", "'it\\'s'", "'\\n'", "'\\x41'", "'abc'"],
    *["'Infinity'", "NaN", "`a`", "/a/", "'0x10'", "'true'", "'.get('"],
]  # fmt: skip
BINARY_OPERATORS = ["==", "===", "!=", "!==", "<", ">", "<=", ">=", "+", "-", "*", "/", "%", "&&", "||"]
OPERATORS = [*BINARY_OPERATORS, "+", "+", "??", "&", "|", "**", ",", "in", "<<"]
JSON_VALUES = [
    *[None, True, False, 0, 1, -1, 2, 5, 5.0, 0.5, -2.5, 0.1, 1e-7, 1e21, 2**53, 2**53 - 1, 2**63, -0.0, 3.0e10],
    *["", "a", "b", "5", "05", " 5", "-5", "1.5", "abc", "Infinity", "true", "é", "😀", "length", "x" * 30, "\u2028"],
]
MARKS = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ";",
    ",",
    ".",
    "?",
    ":",
    "=",
    "!",
    "\n",
    " ",
    "//",
    "/*",
    "*/",
    "=>",
    "if",
    "var",
]


def random_inputs(random: Random) -> dict[str, Any]:
    """Return inputs with values for most of the names that scripts read."""
    inputs: dict[str, Any] = {name: random_value(random) for name in ("n", "f", "t", "u", "big")}
    inputs |= {"yes": True, "no": False, "none": None, "s": "abc", "i": random.randrange(4)}
    inputs["o"] = {name: random_value(random) for name in random.sample(["a", "b", "c", "1", "x", "get"], 4)}
    inputs["l"] = [random_value(random) for _ in range(random.randrange(4))]
    return inputs


def random_value(random: Random, depth: int = 0) -> Any:
    """Return a JSON value, usually a scalar."""
    if depth < 3 and random.random() < 0.15:
        return [random_value(random, depth + 1) for _ in range(random.randrange(3))]
    if depth < 3 and random.random() < 0.15:
        names = random.sample(["a", "b", "c", "10", "2", "constructor", "é"], random.randrange(4))
        return {name: random_value(random, depth + 1) for name in names}
    return random.choice(JSON_VALUES)


class ScriptWriter:
    """Writer of one random script."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def script(self) -> str:
        """Return the source of a script."""
        source = self._random.choice([self._expression, self._condition])()
        return self._changed(source) if self._random.random() < 0.15 else source

    def _condition(self) -> str:
        end = self._random.choice([";", "", " ;\n"])
        return f"if ({self._expression(1)}) {{ true{end} }} else {{ false{end} }}{end}"

    def _expression(self, depth: int = 0) -> str:
        choose = self._random.random()
        if depth > 3 or choose < 0.25:
            return self._operand()
        inner = [self._expression(depth + 1) for _ in range(3)]
        if choose < 0.65:
            operator = self._random.choice(BINARY_OPERATORS if self._random.random() < 0.97 else OPERATORS)
            return f"{inner[0]} {operator} {inner[1]}"
        if choose < 0.67:
            return f"{inner[0]} ? {inner[1]} : {inner[2]}"
        if choose < 0.8:
            return f"({inner[0]})"
        if choose < 0.9:
            return self._random.choice(["!", "!", "-", "+", "!!", "- -", "--", "typeof "]) + inner[0]
        if choose < 0.98:
            return f"({inner[0]} {self._random.choice(BINARY_OPERATORS)} {inner[1]})"
        if choose < 0.99:
            return self._random.choice(["[]", f"[{inner[0]}]", f"[{inner[0]}, {inner[1]},]"])
        return f"({{ a: {inner[0]}, 'b c': {inner[1]}, {self._random.choice(['d', 'if', 'a', '2'])}: {inner[2]} }})"

    def _operand(self) -> str:
        choose = self._random.random()
        return self._random.choice(COMMON if choose < 0.6 else PATHS if choose < 0.85 else LITERALS)

    def _changed(self, source: str) -> str:
        """Return the source with a part removed, repeated or inserted."""
        start = self._random.randrange(len(source) + 1)
        end = min(start + self._random.randrange(4), len(source))
        part = self._random.choice(["", source[start:end] * 2, self._random.choice([*MARKS, *OPERATORS, *LITERALS])])
        return source[:start] + part + source[end:]


def random_script(seed: int) -> tuple[str, dict[str, Any]]:
    """Return a script and inputs for it."""
    random = Random(seed)
    inputs = random_inputs(random)
    # Inputs come from JSON text.
    return ScriptWriter(random).script(), json.loads(json.dumps(inputs))
