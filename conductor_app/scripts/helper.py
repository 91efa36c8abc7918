"""The main loop of a helper process: read a script and its inputs, evaluate it, write the result.

It is started as `python -I helper.py ENGINE` with an empty environment, so that it can import only the engine. A
request has two frames on stdin, the order and the inputs; a response is one frame on stdout. A frame has four bytes of
length, followed by JSON. The first response is the isolation of the process: for each kind, why it is off, or an empty
text.
"""

import json
import os
import pwd
import resource
import signal
import struct
import sys
from importlib import import_module
from pathlib import Path

# At the end of the path, so that no module of this project hides one of a library.
sys.path.append(str(Path(__file__).with_name("engines")))
results = import_module("results")

LENGTH = struct.Struct(">I")
ADDRESS_SPACE = 600 << 20
USER = "nobody"
CAP_KILL = 5


def evaluate(engine, order, inputs):
    """Return one result as bytes, within the size limit."""
    try:
        # The alarm of the kernel ends this process if an engine cannot interrupt the script and the parent is gone.
        signal.setitimer(signal.ITIMER_REAL, order["limit"] + 1)
        answer = engine.LANGUAGES[order["language"]](order, inputs.decode("ascii")).encode()
        return (
            answer
            if len(answer) <= results.MAX_RESULT_SIZE
            else results.answer_document(error=results.TOO_LARGE).encode()
        )
    except MemoryError:
        return results.answer_document(error=results.OUT_OF_MEMORY).encode()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def lock_down(descriptors):
    """Restrict this process: limited memory, few or no new descriptors, default signals, shallow results."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    # Python adds LC_CTYPE to an empty environment, and jq programs can read the environment.
    os.environ.clear()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # The depth of json.dumps counts against this limit. The other 30 are for the frames of this module.
    sys.setrecursionlimit(results.MAX_RESULT_DEPTH + 30)


def change_user(name, program):
    """Give up all rights of root. Returns why this is impossible, or an empty text.

    `program`: the file that the engine starts, or None. A server without CAP_KILL could not end the helper of another
    user.
    """
    if os.geteuid():
        return "the server does not run as root"
    try:
        user = pwd.getpwnam(name)
        if not has_capability(CAP_KILL):
            return "the server lacks the capability CAP_KILL"
        if program and not can_execute(user, program):
            return f"{name} cannot execute {program}"
        os.setgroups([])
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    except KeyError:
        return f"there is no user {name}"
    except OSError as error:
        return f"the kernel refuses it: {error.strerror}"
    return ""


def can_execute(user, program):
    """Return True if this user can execute a program. Its group is not considered."""
    os.seteuid(user.pw_uid)
    try:
        return os.access(program, os.X_OK, effective_ids=True)
    finally:
        os.seteuid(0)


def has_capability(number):
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) >> number & 1)


def read_frame():
    """Return the next frame. Ends the process at the end of the input."""
    head = sys.stdin.buffer.read(LENGTH.size)
    if len(head) < LENGTH.size:
        sys.exit()
    return sys.stdin.buffer.read(*LENGTH.unpack(head))


def write_frame(data):
    sys.stdout.buffer.write(LENGTH.pack(len(data)) + data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    engine = import_module(sys.argv[1])
    user = change_user(USER, engine.PROGRAM)
    lock_down(engine.MAX_DESCRIPTORS)
    write_frame(json.dumps({"user": user, "filter": engine.start()}).encode())
    while True:
        write_frame(evaluate(engine, json.loads(read_frame()), read_frame()))
