"""Vectors with one byte per number, which determine exactly which documents cannot be among the nearest.

A vector is stored as whole numbers from -127 to 127 and a scale. Their distance from the vector is known, and with it
the greatest difference between a product with them and one with the vector. So the `count` nearest documents are always
among those whose least possible distance is not above the greatest possible one of `count` others. The caller compares
these few exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...models.vectors import COSINE, L2
from .vector_pages import VectorPage

LARGEST = 127
ROUNDING = 2.0**-24
"""The relative rounding error of a 32-bit float."""
TINY = 1e-36
"""The scale below which the codes of a vector are 0: the range of 32-bit floats has no precision there."""


@dataclass(frozen=True, slots=True)
class CompactPage:
    """Documents of an index. `errors`: the distance of each vector from its scaled codes."""

    ids: Any
    codes: Any
    scales: Any
    norms: Any
    errors: Any

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return sum(each.nbytes for each in (self.ids, self.codes, self.scales, self.norms, self.errors))


def compact(page: VectorPage) -> CompactPage:
    """Return a page with one byte per number."""
    import numpy

    matrix, norms = page.matrix, numpy.asarray(page.norms)
    scales = numpy.maximum(matrix.max(axis=1), -matrix.min(axis=1)) / LARGEST
    is_tiny = scales < TINY
    scales[is_tiny] = 1
    scaled = matrix / scales[:, None]
    whole = numpy.rint(scaled)
    codes = whole.astype("i1")
    # In units of the scale, so that no square leaves the range of 32-bit floats.
    whole -= scaled
    errors = numpy.sqrt(numpy.einsum("ij,ij->i", whole, whole).astype("f8")) * scales
    errors[is_tiny] = norms[is_tiny]
    return CompactPage(numpy.asarray(page.ids), codes, scales, norms, errors)


def bounds(page: CompactPage, query: Any, metric: str) -> tuple[Any, Any]:
    """Return the least and the greatest possible distance of each document, for L2 its square."""
    import numpy

    wide = query.astype("f8")
    length = float(numpy.linalg.norm(wide))
    # Products with a vector of the length 1 cannot exceed the range of 32-bit floats.
    direction = (wide / length if length else wide).astype("f4")
    # Not with BLAS: it would start a thread per processor for each product, and let them spin.
    products = numpy.einsum("ij,j->i", page.codes.astype("f4"), direction) * (page.scales.astype("f8") * length)
    # The sum of n products of 32-bit floats has at most n rounding errors; the scale and the norms have a few more.
    slack = length * (page.errors + (len(query) + 8) * ROUNDING * (page.norms + page.errors))
    if metric == COSINE:
        lengths = page.norms * length
        has_length = lengths > 0
        cosines = numpy.divide(products, lengths, out=numpy.zeros_like(products), where=has_length)
        slack = numpy.divide(slack, lengths, out=numpy.zeros_like(slack), where=has_length)
        return 1 - cosines - slack, 1 - cosines + slack
    if metric == L2:
        squares = page.norms**2 + length**2
        slack = 2 * slack + 8 * ROUNDING * squares
        return squares - 2 * products - slack, squares - 2 * products + slack
    return -products - slack, -products + slack


def candidates(pages: list[CompactPage], query: Any, metric: str, count: int) -> Iterator[int]:
    """Yield the ids of all documents that may be among the nearest, in no order."""
    import numpy

    if not pages:
        return
    found = [bounds(page, query, metric) for page in pages]
    least = numpy.concatenate([each[0] for each in found])
    greatest = numpy.concatenate([each[1] for each in found])
    place = min(count, len(greatest)) - 1
    limit = numpy.partition(greatest, place)[place]
    ids = numpy.concatenate([page.ids for page in pages])
    yield from ids[least <= limit].tolist()
