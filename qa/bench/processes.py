"""CPU time and memory of processes, from /proc."""

import os
from contextlib import suppress
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def process_tree(pid: int) -> list[int]:
    """Return the ids of a process and its descendants."""
    children: list[str] = []
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in process_tree(int(child)))]


def cpu_seconds(root: int) -> float:
    """Return the CPU time so far of a process and its descendants, including descendants that have ended."""
    return sum(_cpu_with_ended_children(pid) for pid in process_tree(root))


def peak_mb(root: int) -> float:
    """Return the peak memory (RSS) of the largest process of a tree."""
    return max(_read_kilobytes(pid, "status", "VmHWM") for pid in process_tree(root)) / 1024


def pss_mb(root: int) -> float:
    """Return the current memory of a process and its descendants. Shared pages count once for all their users."""
    return sum(_read_kilobytes(pid, "smaps_rollup", "Pss") for pid in process_tree(root)) / 1024


def _cpu_with_ended_children(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    # User and system time of the process, and of the children that it has waited for.
    return sum(map(int, fields[11:15])) / TICKS


def _read_kilobytes(pid: int, file: str, name: str) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
    return 0
