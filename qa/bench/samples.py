"""What is measured: samples of workloads, and the arithmetic on them."""

from dataclasses import dataclass, field
from math import ceil
from statistics import median

NO_RESULT = "no result"


@dataclass
class Sample:
    """One measurement of a workload on one server in one round."""

    workload: str
    server: str
    round: int
    rate: float
    """Tasks per second; starts per second for starts; 1,000 / median latency in ms for the dispatch of one task."""
    tasks: int
    seconds: float
    is_complete: bool = True
    cpu: dict[str, float] = field(default_factory=dict)
    """CPU seconds of each part of the server. `PostgreSQL` is the database."""
    client_cpu: float = 0.0
    peak_mb: dict[str, float] = field(default_factory=dict)
    """Highest memory (PSS) of the processes of the server, and of the database."""
    latency_of: str = ""
    """What the latencies measure: a report, a start if only starts were measured, or a dispatch."""
    latency_ms: list[float] = field(default_factory=list)
    """50th and 99th percentile and the highest value."""
    counts: dict[str, float] = field(default_factory=dict)
    """What the database executed and wrote: the counters of `qa.bench.database`."""
    errors: dict[str, int] = field(default_factory=dict)
    """The number of failed requests by request and status."""

    @property
    def server_cpu(self) -> float:
        return sum(seconds for part, seconds in self.cpu.items() if part != "PostgreSQL")

    @property
    def database_cpu(self) -> float:
        return self.cpu.get("PostgreSQL", 0.0)

    @property
    def cpu_ms_per_task(self) -> float:
        """CPU milliseconds per task (or seconds per 1,000 tasks) of the server and its database."""
        return 1000 * (self.server_cpu + self.database_cpu) / max(self.tasks, 1)

    @property
    def database_cpu_ms_per_task(self) -> float:
        """The part of `cpu_ms_per_task` that the database used."""
        return 1000 * self.database_cpu / max(self.tasks, 1)


@dataclass
class Span:
    """Median and range of values."""

    values: list[float]

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def includes_one(self) -> bool:
        return min(self.values) <= 1 <= max(self.values)

    def format(self, digits: int = 0) -> str:
        if not self.values:
            return "–"
        low, middle, high = (f"{value:,.{digits}f}" for value in (min(self.values), self.median, max(self.values)))
        return middle if len(self.values) == 1 else f"{middle} ({low} … {high})"


def format_ratio(ratios: list[float], digits: int = 2) -> str:
    """Return the median of the ratios of the rounds with their range. A range that includes 1 is no result."""
    if not ratios:
        return "–"
    span = Span(ratios)
    if len(ratios) == 1:
        return f"{span.format(digits)}, one round"
    return f"{NO_RESULT} ({span.format(digits)})" if span.includes_one else f"**{span.format(digits)}**"


def percentile(values: list[float], share: float) -> float:
    """Return the smallest value that at least this share of the values do not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else 0.0


def summarize(values: list[float]) -> list[float]:
    """Return the 50th and 99th percentile and the highest value; zeros without values."""
    return [percentile(values, share) for share in (0.5, 0.99, 1.0)]
