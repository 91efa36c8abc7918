"""The isolation of helper processes by the kernel: user, system calls. An exploited engine reaches nothing."""

import json
import os
import platform
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conductor_app.scripts import pool as pools
from conductor_app.scripts.pool import Pool

pytestmark = pytest.mark.slow
ENGINES = {"javascript_jq": ("javascript", "1"), "monty": ("python", "return 1")}
SCRIPTS = Path(pools.__file__).parent


@pytest.fixture(params=ENGINES)
def processes(request):
    """Return the ids of a helper and of its interpreter, with what the helper reports about them."""
    pool = Pool(size=1)
    assert pool.evaluate(*ENGINES[request.param], {}).value == 1
    (helper,) = pool._idle[request.param]
    yield [helper.pid, *children_of(helper.pid)], helper.isolation
    pool.close()


def children_of(pid):
    children = (Path(task, "children").read_text() for task in Path(f"/proc/{pid}/task").iterdir())
    return [int(child) for child in "".join(children).split()]


def statuses(pids):
    """Return the status of each thread of the processes."""
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            lines = (task / "status").read_text().splitlines()
            yield {name: value.split() for name, _, value in (line.partition(":") for line in lines)}


def test_a_helper_reports_truthfully_whether_its_system_calls_are_filtered(processes):
    pids, isolation = processes

    for status in statuses(pids):
        assert (status["Seccomp"] == ["2"]) == (isolation.filter == "")
        assert (status["NoNewPrivs"] == ["1"]) == (isolation.filter == "")


def test_a_helper_reports_truthfully_whether_it_runs_as_another_user(processes):
    pids, isolation = processes
    user = pwd.getpwuid(os.geteuid()) if isolation.user else pwd.getpwnam("nobody")

    for status in statuses(pids):
        assert set(status["Uid"]) == {str(user.pw_uid)}
        assert isolation.user or (set(status["Gid"]) == {str(user.pw_gid)} and status["Groups"] == [])


@pytest.mark.skipif(platform.system() != "Linux", reason="seccomp is part of Linux")
@pytest.mark.parametrize("engine", ENGINES)
def test_system_calls_are_filtered_on_linux(engine):
    assert pools.probe_isolation(engine).filter == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the user")
@pytest.mark.parametrize("engine", ENGINES)
def test_helpers_of_root_run_as_another_user(engine):
    assert pools.probe_isolation(engine).user == ""


@pytest.fixture
def attempt(monkeypatch):
    """Return a function that evaluates a Python expression in a helper, as an exploited engine could."""
    monkeypatch.setattr(pools, "PROGRAM", Path(__file__).with_name("probe_helper.py"))
    helpers = {}

    def evaluate(engine, source):
        if engine not in helpers:
            helpers[engine] = pools.start_helper(engine)
            assert helpers[engine].isolation.filter == ""
        order = json.dumps({"language": "python", "source": source, "limit": 4}).encode()
        return json.loads(helpers[engine].ask((order, b"{}"), 5))

    yield evaluate
    for helper in helpers.values():
        helper.kill()


NUMBERS = {
    "x86_64": {"ptrace": 101, "process_vm_readv": 310, "io_uring_setup": 425, "bpf": 321, "memfd_create": 319},
    "aarch64": {"ptrace": 117, "process_vm_readv": 270, "io_uring_setup": 425, "bpf": 280, "memfd_create": 279},
}.get(platform.machine(), {})
PTRACE_SEIZE = 0x4206
FORBIDDEN = {
    "kill the server": "os.kill(os.getppid(), 0)",
    "kill all processes": "os.kill(-1, 0)",
    "trace the server": f"call('ptrace', {NUMBERS.get('ptrace')}, {PTRACE_SEIZE}, os.getppid(), 0, 0)",
    "read the memory of the server": f"call('read', {NUMBERS.get('process_vm_readv')}, os.getppid(), 0, 0, 0, 0, 0)",
    "limit the server": "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (0, 0))",
    "send a signal through a pipe": "fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())",
    "open a socket": "socket.socket()",
    "write a file": "os.open('/tmp/written', os.O_WRONLY | os.O_CREAT)",
    "delete a file": "os.unlink('/tmp/written')",
    "create a file in memory": f"call('memfd_create', {NUMBERS.get('memfd_create')}, 0, 0)",
    "use io_uring": f"call('io_uring_setup', {NUMBERS.get('io_uring_setup')}, 1, 0)",
    "load a program into the kernel": f"call('bpf', {NUMBERS.get('bpf')}, 0, 0, 0)",
    "change the user": "os.setuid(0)",
    "leave the process group": "os.setsid()",
}


@pytest.mark.skipif(not NUMBERS, reason="no filter is defined for this processor")
@pytest.mark.parametrize("engine", ["probe", "probe_worker"])
@pytest.mark.parametrize("source", FORBIDDEN.values(), ids=FORBIDDEN)
def test_an_exploited_engine_cannot(attempt, engine, source):
    assert "Function not implemented" in attempt(engine, source)["error"]


@pytest.mark.skipif(not NUMBERS, reason="no filter is defined for this processor")
@pytest.mark.parametrize(
    "source", ["os.open('/etc/passwd', os.O_RDONLY)", "os.fork()", "os.execv('/bin/true', ['true'])"]
)
def test_an_exploited_engine_without_interpreter_can_neither_read_files_nor_start_programs(attempt, source):
    assert "Function not implemented" in attempt("probe", source)["error"]


def test_an_engine_can_still_compute(attempt):
    assert attempt("probe", "sum(range(10 ** 6))")["value"] == "499999500000"


@pytest.mark.parametrize("engine", ENGINES)
def test_no_helper_can_read_the_key_of_the_server(engine):
    pool = Pool(size=1)
    pool.evaluate(*ENGINES[engine], {})
    (helper,) = pool.idle_pids()

    # The process that runs scripts has no descriptor free.
    pid = [helper, *children_of(helper)][-1]
    assert "Max open files            0                    0 " in Path(f"/proc/{pid}/limits").read_text()
    pool.close()


def start_as(*command):
    """Return what a helper reports that is started by `command`."""
    program = [sys.executable, "-I", str(SCRIPTS / "helper.py"), "javascript_jq"]
    found = subprocess.run([*command, *program], input=b"", capture_output=True, check=True, env={"PATH": "/usr/bin"})
    return json.loads(found.stdout[4:])


WITHOUT_SECCOMP = f"""
import os, platform, sys
sys.path.append({str(SCRIPTS / "engines")!r})
import system_call_filter as f
f.filter_code = lambda *_: b"".join([
    f.instruction(f.LOAD, f.OFFSET_OF_NUMBER),
    f.instruction(f.EQUAL, f.SECCOMP[platform.machine()], 0, 1),
    f.instruction(f.RETURN, f.NO_SUCH_CALL),
    f.instruction(f.RETURN, f.ALLOW),
])
assert f.restrict_process({{}}) == ""
os.execv({sys.executable!r}, [{sys.executable!r}, "-I", *sys.argv[1:]])
"""
"""A program that starts a helper on a kernel without the system call `seccomp`."""


def run_without_seccomp(engine, *sources):
    """Return the responses of a helper on a kernel without filters: what it reports, and its results."""
    language, _ = ENGINES[engine]
    orders = ({"language": language, "source": source, "limit": 4, "names": []} for source in sources)
    frames = [frame for order in orders for frame in (json.dumps(order).encode(), b"{}")]
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_SECCOMP, str(SCRIPTS / "helper.py"), engine],
        input=b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames),
        capture_output=True, check=True, env={},
    )  # fmt: skip
    responses, rest = [], found.stdout
    while rest:
        size = int.from_bytes(rest[:4], "big") + 4
        responses.append(json.loads(rest[4:size]))
        rest = rest[size:]
    return responses


@pytest.mark.skipif(not NUMBERS, reason="no filter is defined for this processor")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_kernel_without_filters_is_reported_and_scripts_still_run(engine):
    isolation, result = run_without_seccomp(engine, ENGINES[engine][1])

    assert isolation["filter"] == "the kernel refuses it: Function not implemented"
    assert result["value"] == 1


@pytest.mark.skipif(not NUMBERS, reason="no filter is defined for this processor")
def test_an_interpreter_without_limit_of_descriptors_evaluates_nothing():
    hog, second = run_without_seccomp("monty", "return 'a'.join(['b' * 1000] * 10 ** 6)", "return 1")[1:]

    assert "64 MB" in hog["error"]
    assert second is None


needs_setpriv = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can give up rights, by the program setpriv"
)


@needs_setpriv
def test_a_server_without_root_says_that_its_helpers_run_as_its_user():
    found = start_as("setpriv", "--reuid=65534", "--clear-groups")

    assert found == {"user": "the server does not run as root", "filter": ""}


@needs_setpriv
def test_a_server_that_could_not_kill_another_user_keeps_its_helpers_as_its_user():
    found = start_as("setpriv", "--bounding-set=-kill")

    assert found == {"user": "the server lacks the capability CAP_KILL", "filter": ""}


@needs_setpriv
def test_a_server_that_may_not_change_the_user_says_so():
    found = start_as("setpriv", "--bounding-set=-setgid")

    assert found == {"user": "the kernel refuses it: Operation not permitted", "filter": ""}
