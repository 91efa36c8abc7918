"""The main loop of a helper process: read a script and its inputs, evaluate it, write the result.

It is started as `python -I helper.py ENGINE` with an empty environment, so that it can import only the engine. A
request has two frames on stdin, the order and the inputs; a response is one frame on stdout. A frame has four bytes of
length, followed by JSON.
"""

import json
import os
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


def read_frame():
    """Return the next frame. Ends the process at the end of the input."""
    head = sys.stdin.buffer.read(LENGTH.size)
    if len(head) < LENGTH.size:
        sys.exit()
    return sys.stdin.buffer.read(*LENGTH.unpack(head))


def write_frame(data):
    """Send one frame."""
    sys.stdout.buffer.write(LENGTH.pack(len(data)) + data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    engine = import_module(sys.argv[1])
    lock_down(engine.MAX_DESCRIPTORS)
    engine.start()
    write_frame(b"ready")
    while True:
        write_frame(evaluate(engine, json.loads(read_frame()), read_frame()))
