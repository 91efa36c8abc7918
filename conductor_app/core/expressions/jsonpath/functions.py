"""The functions that a path may call, as Jayway 2.4 has them."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

from ..java_text import java_text
from .comparisons import is_number
from .reading import ABSENT, NoAnswer, Reading


@dataclass(frozen=True)
class FunctionCall:
    """`.name(arguments)`: a function of each value found."""

    name: str
    arguments: tuple[Any, ...] = ()
    is_definite: ClassVar[bool] = True

    def step(self, hits: list[Any], reading: Reading) -> list[Any]:
        """Return the result of the function for every value.

        Raises:
            NoAnswer: when it has no result for one, which ends the evaluation.
        """
        if self.name not in FUNCTIONS:
            raise NoAnswer
        function = FUNCTIONS[self.name]
        if len(hits) > 1:
            reading.visit(sum(len(hit) for hit in hits if isinstance(hit, list)))
        return [function(hit, [argument.value(hit, reading) for argument in self.arguments]) for hit in hits]


def length(value: Any, arguments: list[Any]) -> int | None:
    """Return the number of elements or members. Jayway 2.4 returns null for a text."""
    return len(value) if isinstance(value, list | dict) else None


def minimum(value: Any, arguments: list[Any]) -> float:
    """Return the smallest number of a list."""
    return min(_numbers(value))


def maximum(value: Any, arguments: list[Any]) -> float:
    """Return the greatest number of a list."""
    return max(_numbers(value))


def total(value: Any, arguments: list[Any]) -> float:
    """Return the sum of the numbers of a list."""
    return sum(_numbers(value), 0.0)


def average(value: Any, arguments: list[Any]) -> float:
    """Return the mean of the numbers of a list."""
    numbers = _numbers(value)
    return sum(numbers, 0.0) / len(numbers)


def deviation(value: Any, arguments: list[Any]) -> float:
    """Return the standard deviation of the numbers of a list."""
    numbers = _numbers(value)
    count, whole = len(numbers), sum(numbers)
    # Jayway's own formula, whose last digits clients may have written down.
    variance = sum(number * number for number in numbers) / count - whole * whole / count / count
    return sqrt(max(variance, 0.0))


def concat(value: Any, arguments: list[Any]) -> str:
    """Return the texts of a list and the arguments as one text."""
    own = [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
    return "".join(own + [text for argument in arguments for text in _texts(argument)])


def append(value: Any, arguments: list[Any]) -> Any:
    """Return the list with the arguments appended."""
    return value + [argument for argument in arguments if argument is not ABSENT] if isinstance(value, list) else value


def _numbers(value: Any) -> list[float]:
    numbers = [number for number in value if is_number(number)] if isinstance(value, list) else []
    if not numbers:
        raise NoAnswer
    try:
        return [float(number) for number in numbers]
    except OverflowError:
        raise NoAnswer from None


def _texts(argument: Any) -> list[str]:
    """Return the texts that concat takes of an argument: texts, and all elements of a list.

    A number is ignored, as in Java.
    """
    if isinstance(argument, list):
        return [java_text(item) for item in argument if item is not None]
    return [argument] if isinstance(argument, str) else []


FUNCTIONS = {
    "min": minimum,
    "max": maximum,
    "sum": total,
    "avg": average,
    "stddev": deviation,
    "length": length,
    "size": length,
    "concat": concat,
    "append": append,
}
