"""A seccomp filter for this thread and its children: system calls that are not in the list do not exist for them.

Written in classic BPF through ctypes, because the bindings of libseccomp need the library and a compiler on the host.
"""

import ctypes
import errno
import os
import platform
import struct

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH of each processor, from linux/audit.h."""
SECCOMP = {"x86_64": 317, "aarch64": 277}

# Numbers on x86_64 and aarch64, from asm/unistd_64.h and asm-generic/unistd.h. None: aarch64 has no such call.
NUMBERS = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "fstat": (5, 80), "lseek": (8, 62), "readv": (19, 65),
    "writev": (20, 66), "pread64": (17, 67), "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215),
    "brk": (12, 214), "mremap": (25, 216), "madvise": (28, 233), "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132), "setitimer": (38, 103),
    "restart_syscall": (219, 128), "exit": (60, 93), "exit_group": (231, 94), "futex": (202, 98),
    "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "getcpu": (309, 168), "membarrier": (324, 283),
    "set_robust_list": (273, 99), "rseq": (334, 293), "getpid": (39, 172), "gettid": (186, 178), "getuid": (102, 174),
    "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getrandom": (318, 278),
    "getrusage": (98, 165), "times": (100, 153), "uname": (63, 160), "sysinfo": (99, 179), "time": (201, None),
    "gettimeofday": (96, 169), "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101), "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    "epoll_wait": (232, None), "epoll_pwait": (281, 22), "epoll_pwait2": (441, 441), "epoll_ctl": (233, 21),
    "wait4": (61, 260), "waitid": (247, 95), "fcntl": (72, 25), "prctl": (157, 167), "prlimit64": (302, 261),
    "kill": (62, 129), "tgkill": (234, 131), "clone": (56, 220), "execve": (59, 221), "open": (2, None),
    "openat": (257, 56), "ioctl": (16, 29), "stat": (4, None), "lstat": (6, None), "newfstatat": (262, 79),
    "statx": (332, 291), "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439),
    "readlink": (89, None), "readlinkat": (267, 78), "getdents64": (217, 61), "getcwd": (79, 17), "dup": (32, 23),
    "dup2": (33, None), "dup3": (292, 24), "pipe2": (293, 59), "socketpair": (53, 199), "eventfd2": (290, 19),
    "epoll_create1": (291, 20), "pidfd_open": (434, 434), "set_tid_address": (218, 96), "arch_prctl": (158, None),
}  # fmt: skip

COMPUTING = (
    *("read", "write", "close", "fstat", "lseek", "readv", "writev"),
    *("mmap", "mprotect", "munmap", "brk", "mremap", "madvise"),
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "setitimer", "restart_syscall"),
    *("exit", "exit_group", "futex", "sched_yield", "sched_getaffinity", "getcpu", "membarrier", "set_robust_list"),
    *("rseq", "getpid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getrandom", "getrusage", "times"),
    *("uname", "sysinfo", "time", "gettimeofday", "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep"),
    *("poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2", "epoll_ctl"),
    *("wait4", "waitid"),
)
"""Calls that reach nothing but this process, its children, and descriptors that are already open."""
LOADING = (
    *("execve", "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "readlink", "readlinkat"),
    *("getdents64", "getcwd", "pread64", "dup", "dup2", "dup3", "pipe2", "socketpair", "eventfd2", "epoll_create1"),
    *("pidfd_open", "set_tid_address", "arch_prctl"),
)
"""Calls that start another program. Without free descriptors, the started program cannot use them for anything."""

ANY = 0xFFFFFFFF
WRITING = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC
CLONE_THREAD = 0x00010000
CLONE_NAMESPACES = 0x7E020000
FLAGS_AND_COPIES = (0, 1, 2, 3, 4, 1030)
PR_SET_NAME, PR_SET_VMA = 15, 0x53564D41
TCGETS, FIOCLEX = 0x5401, 0x5451
# fcntl and ioctl can send a signal to another process, and prlimit64 can take its descriptors.
ARGUMENTS = {
    "fcntl": ((1, ANY, FLAGS_AND_COPIES),),
    "ioctl": ((1, ANY, (TCGETS, FIOCLEX)),),
    "prctl": ((0, ANY, (PR_SET_NAME, PR_SET_VMA)),),
    "prlimit64": ((2, ANY, (0,)), (2.5, ANY, (0,))),
    "open": ((1, WRITING, (0,)),),
    "openat": ((2, WRITING, (0,)),),
}
"""The arguments with which a call is allowed: argument, mask, and the values of the masked argument.

An argument has two halves of 32 bits: 2 is the low half of the third argument, 2.5 its high half.
"""

PR_SET_NO_NEW_PRIVS, SET_MODE_FILTER, TO_ALL_THREADS = 38, 1, 1
ALLOW, KILL_PROCESS, NO_SUCH_CALL = 0x7FFF0000, 0x80000000, 0x00050000 | errno.ENOSYS
LOAD, EQUAL, AND, RETURN = 0x20, 0x15, 0x54, 0x06
"""Instructions of classic BPF: load a word of seccomp_data, compare it, mask it, return."""
OFFSET_OF_NUMBER, OFFSET_OF_ARCHITECTURE, OFFSET_OF_ARGUMENTS = 0, 4, 16


class Program(ctypes.Structure):
    """The kernel's `struct sock_fprog`."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def computing_calls(*killable):
    """Return the rules for a process that only computes. It can send signals to itself and to `killable`."""
    rules = {name: ARGUMENTS.get(name, ()) for name in (*COMPUTING, "fcntl", "prctl", "prlimit64")}
    rules["tgkill"] = ((0, ANY, (os.getpid(),)),)
    if killable:
        rules["kill"] = ((0, ANY, killable),)
    return rules


def thread_calls():
    return {"clone": ((0, CLONE_THREAD, (CLONE_THREAD,)),)}


def loading_calls():
    """Return the rules for starting another program, without new namespaces and with files only for reading."""
    rules = {name: ARGUMENTS.get(name, ()) for name in (*LOADING, "open", "openat", "ioctl")}
    return rules | {"clone": ((0, CLONE_NAMESPACES, (0,)),)}


def restrict_thread(rules, flags=0):
    """Allow this thread, and its future threads and children, only these calls. Returns why not, or an empty text."""
    architecture = platform.machine()
    if platform.system() != "Linux" or architecture not in ARCHITECTURES:
        return f"no filter is defined for {platform.system()} on {architecture}"
    code = filter_code(rules, architecture)
    program = Program(len(code) // 8, code)
    library = ctypes.CDLL(None, use_errno=True)
    call = ctypes.c_long(SECCOMP[architecture])
    if library.prctl(*map(ctypes.c_ulong, (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))) or library.syscall(
        call, ctypes.c_ulong(SET_MODE_FILTER), ctypes.c_ulong(flags), ctypes.byref(program)
    ):
        return f"the kernel refuses it: {os.strerror(ctypes.get_errno())}"
    return ""


def restrict_process(rules):
    """Allow all threads and future children of this process only these calls. Returns as `restrict_thread`."""
    return restrict_thread(rules, TO_ALL_THREADS)


def filter_code(rules, architecture):
    """Return the instructions of a filter. Calls of another architecture end the process."""
    code = [
        instruction(LOAD, OFFSET_OF_ARCHITECTURE),
        instruction(EQUAL, ARCHITECTURES[architecture], 1, 0),
        instruction(RETURN, KILL_PROCESS),
        instruction(LOAD, OFFSET_OF_NUMBER),
    ]
    column = list(ARCHITECTURES).index(architecture)
    for name, conditions in rules.items():
        number = NUMBERS[name][column]
        if number is not None:
            code += call_code(number, conditions)
    return b"".join([*code, instruction(RETURN, NO_SUCH_CALL)])


def call_code(number, conditions):
    """Return the instructions that decide about one call."""
    body = [each for condition in conditions for each in condition_code(*condition)]
    body.append(instruction(RETURN, ALLOW))
    return [instruction(EQUAL, number, 0, len(body)), *body]


def condition_code(argument, mask, values):
    """Return the instructions that refuse a call unless the masked argument has one of these values."""
    compared = [instruction(EQUAL, value, len(values) - place, 0) for place, value in enumerate(values)]
    load = instruction(LOAD, OFFSET_OF_ARGUMENTS + int(argument * 8))
    return [load, instruction(AND, mask), *compared, instruction(RETURN, NO_SUCH_CALL)]


def instruction(code, value, if_true=0, if_false=0):
    """Return one `struct sock_filter`."""
    return struct.pack("=HBBI", code, if_true, if_false, value)
