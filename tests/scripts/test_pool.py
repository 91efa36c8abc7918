"""Helper processes for scripts: start, sharing, loss, replacement and shutdown."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conductor_app.scripts import pool as pools
from conductor_app.scripts.pool import EvaluationResult, Helper, Pool, ScriptsUnavailable

pytestmark = pytest.mark.slow
ENDLESS = "while (true);"


@pytest.fixture
def pool():
    pool = Pool(size=2)
    yield pool
    pool.close()


def is_gone(pid):
    """Return whether the process has ended and has been reaped."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def kill_and_wait(pid):
    """Kill the process and wait until it has ended; its owner has not reaped it yet."""
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def test_a_pool_starts_no_process_before_the_first_evaluation(pool):
    assert pool.idle_pids() == []


def test_a_helper_is_reused(pool):
    pool.evaluate("javascript", "1", {})
    first = pool.idle_pids()

    pool.evaluate("jq", ".", {})

    assert pool.idle_pids() == first
    assert len(first) == 1


def test_callers_share_a_few_helpers(pool):
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda n: pool.evaluate("javascript", "$.n * 2", {"n": n}), range(100)))

    assert [result.value for result in answers] == [n * 2 for n in range(100)]
    assert 1 <= len(pool.idle_pids()) <= 2


def test_a_caller_that_waits_too_long_for_a_helper_gets_an_error():
    pool = Pool(size=1, queue_seconds=0.05)
    busy = threading.Thread(target=pool.evaluate, args=("javascript", ENDLESS, {}, 0.5))
    busy.start()
    while not pool._queue._granted:
        os.sched_yield()

    with pytest.raises(ScriptsUnavailable, match=r"All 1 helper processes were busy for 0\.05 s"):
        pool.evaluate("javascript", "1", {})

    busy.join()
    pool.close()


def test_most_callers_of_an_owner_with_slow_scripts_get_an_error_soon(pool):
    with ThreadPoolExecutor(40) as threads:
        slow = [
            threads.submit(pool.evaluate, "javascript", ENDLESS, {}, 0.5, f"draft {number}", owner=1)
            for number in range(40)
        ]

    refused = [str(each.exception()) for each in slow if each.exception()]
    assert len(refused) > 20
    assert set(refused) == {"Too many scripts wait for a helper process."}


def test_endless_scripts_of_one_definition_leave_a_helper_to_others(pool):
    for _ in range(2):
        pool.evaluate("javascript", ENDLESS, {}, 0.1, "endless")

    with ThreadPoolExecutor(3) as threads:
        endless = [threads.submit(pool.evaluate, "javascript", ENDLESS, {}, 0.8, "endless") for _ in range(3)]
        values = [pool.evaluate("javascript", "$.n", {"n": n}, 4, "other").value for n in range(20)]
        has_one_ended = any(each.done() for each in endless)

    assert values == list(range(20))
    assert not has_one_ended


def test_an_interrupted_script_leaves_its_helper_alive(pool):
    pool.evaluate("javascript", "1", {})
    before = pool.idle_pids()

    assert pool.evaluate("javascript", ENDLESS, {}, 0.1).timed_out

    assert pool.idle_pids() == before


def test_a_helper_that_cannot_be_interrupted_is_killed_and_replaced(pool):
    pool.evaluate("javascript", "1", {})
    (pid,) = pool.idle_pids()

    assert pool.evaluate("javascript", "new Array(2 ** 31).join('x')", {}, 0.1).timed_out

    assert is_gone(pid)
    assert pool.evaluate("javascript", "1", {}).value == 1
    assert pool.idle_pids() != [pid]


def killing_helpers(monkeypatch, count: int) -> list[int]:
    """Kill the next helpers that are asked, as the kernel does without memory. Returns the list of their pids."""
    ask, killed = Helper.ask, []

    def ask_and_kill(helper, frames, seconds):
        if len(killed) < count:
            killed.append(helper.pid)
            os.kill(helper.pid, signal.SIGKILL)
        return ask(helper, frames, seconds)

    monkeypatch.setattr(Helper, "ask", ask_and_kill)
    return killed


def test_a_script_whose_helper_is_killed_is_evaluated_by_another_one(pool, monkeypatch):
    killed = killing_helpers(monkeypatch, 1)

    assert pool.evaluate("javascript", "6 * 7", {}) == EvaluationResult(42)

    assert is_gone(killed[0])


def test_a_script_whose_helpers_are_killed_again_fails_alone(pool, monkeypatch):
    killing_helpers(monkeypatch, 2)

    result = pool.evaluate("javascript", "6 * 7", {})

    assert result.error == "The script crashed its helper process (SIGKILL) and was stopped."
    assert pool.evaluate("javascript", "1", {}) == EvaluationResult(1)


def test_a_helper_that_died_while_idle_is_replaced(pool):
    pool.evaluate("javascript", "1", {})
    (pid,) = pool.idle_pids()
    kill_and_wait(pid)

    assert pool.evaluate("javascript", "1", {}) == EvaluationResult(1)
    assert is_gone(pid)


def test_a_script_whose_helper_was_stopped_is_evaluated_by_another_one(pool):
    pool.evaluate("javascript", "1", {})
    (pid,) = pool.idle_pids()
    os.kill(pid, signal.SIGSTOP)

    result = pool.evaluate("javascript", "1", {"a": "x" * (1 << 20)}, 0.1)

    assert result == EvaluationResult(1)
    assert is_gone(pid)


def test_a_script_that_exceeds_its_time_is_not_evaluated_again(pool, monkeypatch):
    started = []
    start = pools.start_helper
    monkeypatch.setattr(pools, "start_helper", lambda engine: started.append(engine) or start(engine))

    result = pool.evaluate("jq", "def f: f; f", {}, 0.1)

    assert result.timed_out
    assert started == ["javascript_jq"]


def test_an_exception_during_an_evaluation_leaves_no_partial_reply(pool, monkeypatch):
    pool.evaluate("javascript", "1", {})
    (pid,) = pool.idle_pids()

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            pool.evaluate("javascript", ENDLESS, {}, 2)
    finally:
        signal.signal(signal.SIGALRM, before)

    assert is_gone(pid)
    assert pool.evaluate("javascript", "2", {}).value == 2


def test_a_closed_pool_leaves_no_process_and_no_zombie(pool):
    pool.evaluate("javascript", "1", {})
    (pid,) = pool.idle_pids()

    pool.close()

    assert is_gone(pid)


def test_a_forked_process_has_helpers_of_its_own(pool):
    pool.evaluate("javascript", "1", {})
    (inherited,) = pool.idle_pids()
    reader, writer = os.pipe()

    child = os.fork()
    if not child:
        result = pool.evaluate("javascript", "1", {})
        os.write(writer, json.dumps([result.value, pool.idle_pids()]).encode())
        pool.close()
        os._exit(0)
    os.waitpid(child, 0)
    value, idle_pids = json.loads(os.read(reader, 1000))

    assert value == 1
    assert inherited not in idle_pids
    assert pool.idle_pids() == [inherited]
    assert pool.evaluate("javascript", "1", {}).value == 1


PROGRAM = """
import os, signal, sys
from conductor_app.scripts.pool import evaluate, shared_pool
assert evaluate("javascript", "1", {}).value == 1
print(*shared_pool().idle_pids(), flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ["exits", "killed"])
def test_helpers_end_with_the_process_that_owns_them(end):
    program = subprocess.run([sys.executable, "-c", PROGRAM, end], capture_output=True, text=True, check=False)

    pid, deadline = int(program.stdout), time.monotonic() + 5
    while is_running(pid) and time.monotonic() < deadline:
        os.sched_yield()
    assert not is_running(pid)


def is_running(pid):
    """Return whether the process runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_helper_that_outlives_its_owner_ends_by_its_own_alarm():
    order = json.dumps({"language": "javascript", "source": "new Array(2 ** 31).join('x')", "limit": 0.1}).encode()
    helper = pools.start_helper("javascript_jq")
    helper._send(b"".join(len(frame).to_bytes(4, "big") + frame for frame in (order, b"{}")), time.monotonic() + 1)

    assert helper._process.wait(timeout=10) == -signal.SIGALRM
    helper.kill()


def test_a_helper_inherits_no_environment_and_no_descriptors(pool):
    pool.evaluate("javascript", "1", {})
    (pid,) = pool.idle_pids()

    with open(f"/proc/{pid}/environ", "rb") as environ:
        assert environ.read().strip(b"\0") in (b"", b"LC_CTYPE=C.UTF-8")
    assert open_descriptors(pid) == ["0", "1", "2"]


def open_descriptors(pid):
    """Return the descriptors of a process, without the one by which newer versions of libffi map their own file."""
    folder = Path(f"/proc/{pid}/fd")
    return sorted(each.name for each in folder.iterdir() if not each.readlink().name.startswith("libffi.so"))


def test_replacing_helpers_leaks_no_descriptors(pool):
    pool.evaluate("javascript", "1", {})
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(3):
        kill_and_wait(*pool.idle_pids())
        pool.evaluate("javascript", "1", {})

    assert len(os.listdir("/proc/self/fd")) == before


def test_helpers_that_cannot_be_started_are_unavailable(pool, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    with pytest.raises(ScriptsUnavailable, match="could not be started: No such file"):
        pool.evaluate("javascript", "1", {})


def test_helpers_that_exit_at_once_are_unavailable(pool, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")

    with pytest.raises(ScriptsUnavailable, match="did not start: exit code 1"):
        pool.evaluate("javascript", "1", {})


def test_an_unknown_language_is_a_programming_error(pool):
    with pytest.raises(ValueError, match="unknown script language 'perl'"):
        pool.evaluate("perl", "1", {})


def test_the_process_has_one_pool():
    assert pools.shared_pool() is pools.shared_pool()
    assert pools.evaluate("javascript", "$.a", {"a": 5}).value == 5
