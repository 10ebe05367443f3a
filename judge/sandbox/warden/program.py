"""Drops privileges in the process of a solution, then runs the program as ``__main__``."""

from __future__ import annotations

import atexit
import fcntl
import gc
import io
import os
import resource
import signal
import sys
import threading
import types
from typing import Any

from judge.sandbox.warden import filter as call_filter
from judge.sandbox.warden import kernel

_NOT_STARTED = 125  # exit code, if the program could not be started
_FIRST_PARKED = 10  # above every descriptor that the program is given
_LAST_DESCRIPTOR = 1 << 20


def become_solution(
    request: dict[str, Any], source: bytes, pipes: tuple[int, int, int], user: int | None
) -> None:
    """Turns this forked process into the solution and never returns.

    Args:
        request: the run's header.
        source: the program text as UTF-8.
        pipes: descriptors for standard output, standard error, and the report. The report is one
            byte ``.`` if the program can start, or the reason why it cannot; then ``c`` if the
            program does not compile. It is closed before the program runs.
        user: id to run as; None to keep the current one, in a separate process namespace.
    """
    out, err, report = pipes
    try:
        os.setsid()
        _wire(out, err, report)
        _bound(request["limits"], request["spare_processes"])
        _give_up_privileges(user)
        os.chdir(request["folder"])
        _set_environment(request)
        os.write(3, b".")
    except BaseException as error:  # noqa: BLE001 - any exception is reported to the warden
        os.write(3, f"{type(error).__name__}: {error}".encode())
        os._exit(_NOT_STARTED)
    name = request["program_name"]
    try:
        code = compile(source.decode("utf-8", "surrogatepass"), name, "exec", dont_inherit=True)
    except BaseException as error:  # noqa: BLE001 - hostile source can raise more than SyntaxError
        os.write(3, b"c")
        _show(error.with_traceback(None))
        _finish_output()
        os._exit(1)
    os.close(3)
    os._exit(_run(code, name))


def _wire(out: int, err: int, report: int) -> None:
    """Makes descriptors 0 to 2 the solution's and 3 the report, and closes all others."""
    nothing = os.open("/dev/null", os.O_RDONLY)
    sources = (nothing, out, err, report)
    # first moves them to high numbers, so that they do not collide, then to the final ones
    parked = [fcntl.fcntl(fd, fcntl.F_DUPFD, _FIRST_PARKED) for fd in sources]
    for number, fd in enumerate(parked):
        os.dup2(fd, number, inheritable=True)
    os.closerange(len(parked), _LAST_DESCRIPTOR)


def _bound(limits: dict[str, Any], spare_processes: int | None) -> None:
    """Sets rlimits; ``spare_processes`` is how many the warden has itself, or None for no limit."""
    # The warden ends a program at its limit. The kernel's limit is higher, and only applies if the
    # warden fails: the kernel counts ticks, up to 5 % more than was measured on a busy machine, and
    # a program that the kernel ends would not be reported as over its time limit.
    cpu_s = int(limits["cpu_s"] * 1.25) + 2
    bounds = [
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NOFILE, 512, 512),
        (resource.RLIMIT_CPU, cpu_s, cpu_s + 1),
        (resource.RLIMIT_MEMLOCK, 65536, 65536),
        (resource.RLIMIT_MSGQUEUE, 0, 0),
    ]
    if spare_processes is not None:
        processes = int(limits["processes"]) + spare_processes
        bounds.append((resource.RLIMIT_NPROC, processes, processes))
    for kind, soft, hard in bounds:
        ceiling = resource.getrlimit(kind)[1]
        most = hard if ceiling == resource.RLIM_INFINITY else min(hard, ceiling)
        resource.setrlimit(kind, (min(soft, most), most))


def _give_up_privileges(user: int | None) -> None:
    kernel.forbid_inspection(forbid=False)  # or else it would not own its files in /proc
    with open(
        "/proc/self/oom_score_adj", "w"
    ) as file:  # the kernel kills this process before the warden
        file.write("1000")
    kernel.drop_capabilities(bounding_only=True)  # needs a capability that is lost with the user id
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    kernel.drop_capabilities()
    kernel.forbid_inspection()
    kernel.forbid_new_privileges()
    kernel.install_filter(call_filter.assemble())
    left = kernel.privileges_left()
    if left:
        raise PermissionError(f"privileges could not be given up: {left}")


def _set_environment(request: dict[str, Any]) -> None:
    os.environ.clear()
    os.environ.update(request["environment"])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.set_wakeup_fd(-1)
    sys.argv = [request["program_name"]]
    sys.path.insert(0, os.path.dirname(request["program_name"]))
    for name in [name for name in sys.modules if name.split(".")[0] == "judge"]:
        del sys.modules[name]
    sys.stdin = sys.__stdin__ = _text(0, "r", "strict")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _text(1, "w", "strict")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _text(2, "w", "backslashreplace")  # type: ignore[misc]


def _text(fd: int, mode: str, errors: str) -> io.TextIOWrapper:
    stream = open(fd, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115 - stays open
    assert isinstance(stream, io.TextIOWrapper)
    return stream


def _run(program: types.CodeType, name: str) -> int:
    """Runs the program as the interpreter runs a script, and returns its exit code."""
    main = types.ModuleType("__main__")
    main.__dict__.update({"__file__": name, "__builtins__": __builtins__, "__cached__": None})
    sys.modules["__main__"] = main
    code = 0
    try:
        exec(program, main.__dict__)  # noqa: S102 - the purpose of this function
    except SystemExit as request:
        code = _exit_code(request)
    except BaseException as error:  # noqa: BLE001 - every exception of a solution is a fact
        _show(error)
        code = 1
    return max(code, _wind_up(main))


def _exit_code(request: SystemExit) -> int:
    if request.code is None:
        return 0
    if isinstance(request.code, int):
        return request.code & 0xFF
    _complain(f"{request.code}\n")
    return 1


def _show(error: BaseException) -> None:
    traceback = error.__traceback__
    own = traceback.tb_next if traceback is not None else None  # the first frame is this module's
    try:
        sys.excepthook(type(error), error.with_traceback(own), own)
    except BaseException:  # noqa: BLE001 - a broken hook of the solution's own
        _complain(f"{type(error).__name__}\n")


def _complain(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001, S110 - the solution may have replaced or closed it
        pass


def _wind_up(main: types.ModuleType) -> int:
    """Ends threads, runs exit handlers and closes open files as the interpreter would.

    Returns:
        120 if standard output could not be flushed, like the interpreter; otherwise 0.
    """
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - as the interpreter ends
        atexit._run_exitfuncs()  # noqa: SLF001 - as the interpreter ends
        main.__dict__.clear()
        gc.collect()
        _finish_output()
    except BaseException:  # noqa: BLE001 - a solution can break each of these
        return 120
    return 0


def _finish_output() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if stream is not None and not stream.closed:
            stream.flush()
