"""What runs in a helper process: reads a program and its inputs, evaluates, writes the answer, again and again.

Started as `python -I helper.py` with an empty environment, so it can import nothing of ours. Each question is two
frames on stdin, the order and the inputs, both JSON after four bytes of length; each answer is one frame on stdout.
"""

import json
import os
import re
import resource
import signal
import struct
import sys
from functools import lru_cache
from pathlib import Path

import jq
import quickjs

LENGTH = struct.Struct(">I")
ADDRESS_SPACE = 600 << 20
SCRIPT_MEMORY = 64 << 20
SCRIPT_STACK = 512 << 10
LARGEST_RESULT = 10 << 20
DEEPEST_RESULT = 200
LOG_LINES, LOG_LINE_LENGTH = 100, 1000
OUT_OF_MEMORY = "The script used more than 64 MB of memory and was stopped."
TOO_LARGE = "The script's result is larger than 10 MB."
SANDBOX = Path(__file__).with_name("sandbox.js").read_text(encoding="utf-8")


def answered(value=None, error=None, timed_out=False, logs=()):
    """The answer as JSON text."""
    return json.dumps({"value": value, "error": error, "timed_out": timed_out, "logs": list(logs)})


def javascript(source, inputs, limit):
    """The completion value of a script, in a context of its own whose `$` is the inputs."""
    context = quickjs.Context()
    context.set_memory_limit(SCRIPT_MEMORY)
    context.set_max_stack_size(SCRIPT_STACK)
    run = context.eval(SANDBOX)(DEEPEST_RESULT, LOG_LINES, LOG_LINE_LENGTH, OUT_OF_MEMORY)
    context.set_time_limit(limit)
    try:
        return run(json.dumps(source), inputs)
    except quickjs.JSException as error:
        return cut_short(error, run)


def cut_short(error, run):
    """The answer when not even the sandbox could catch the error: time or memory is used up."""
    try:
        logs = json.loads(run())["logs"]
    except (quickjs.JSException, MemoryError):
        logs = ()
    said = str(error).partition("\n")[0]
    if said == "InternalError: interrupted":
        return answered(timed_out=True, logs=logs)
    if said in ("InternalError: out of memory", "null"):
        return answered(error=OUT_OF_MEMORY, logs=logs)
    return answered(error=f"The script's result could not be written: {said[:1000]}", logs=logs)


@lru_cache(maxsize=1000)
def compiled(source):
    """A jq program ready to run; compiling costs a hundred times what running does."""
    return jq.compile(source)


def transform(source, inputs, limit):
    """All values that a jq program makes of its input."""
    values, size = [], 0
    try:
        for value in compiled(source).input_text(inputs):
            values.append(json.dumps(value))
            size += len(values[-1])
            if size > LARGEST_RESULT:
                return answered(error=TOO_LARGE)
    except RecursionError:
        return answered(error=f"The result is nested deeper than {DEEPEST_RESULT} levels.")
    except ValueError as error:
        return answered(error=first_line(error))
    return '{"value": [' + ", ".join(values) + "]}"


def first_line(error):
    """What jq says before it draws pictures."""
    return re.sub(r"^jq: error: ", "", str(error).strip().partition("\n")[0])[:2000]


LANGUAGES = {"javascript": javascript, "jq": transform}


def evaluate(order, inputs):
    """One answer, as bytes no longer than a result may be."""
    try:
        # The kernel's own alarm ends what no engine can interrupt, should nobody be left to kill this process.
        signal.setitimer(signal.ITIMER_REAL, order["limit"] + 1)
        answer = LANGUAGES[order["language"]](order["source"], inputs.decode("ascii"), order["limit"]).encode()
        return answer if len(answer) <= LARGEST_RESULT else answered(error=TOO_LARGE).encode()
    except MemoryError:
        return answered(error=OUT_OF_MEMORY).encode()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def lock_down():
    """From here on: bounded memory, no core files, no new files, default signals, shallow results."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    # Python adds LC_CTYPE to an empty environment, and jq shows the environment to whoever asks.
    os.environ.clear()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # json.dumps counts its depth against this limit; the rest pays for our own few frames.
    sys.setrecursionlimit(DEEPEST_RESULT + 30)


def read_frame():
    """The next frame; the other end's silence ends the process."""
    head = sys.stdin.buffer.read(LENGTH.size)
    if len(head) < LENGTH.size:
        sys.exit()
    return sys.stdin.buffer.read(*LENGTH.unpack(head))


def write_frame(data):
    """Send one frame."""
    sys.stdout.buffer.write(LENGTH.pack(len(data)) + data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    lock_down()
    write_frame(b"ready")
    while True:
        write_frame(evaluate(json.loads(read_frame()), read_frame()))
