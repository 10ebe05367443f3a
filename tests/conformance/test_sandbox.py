"""What every sandbox must do, however it works: one file, run for each backend.

What a further way of a backend does otherwise is run there too; see ``tests/conformance/ways.py``.
"""

from __future__ import annotations

import signal
import struct
import textwrap
import time
from dataclasses import replace

import pytest

from judge.core.limits import MIB, Limits
from judge.errors import SandboxError
from judge.files.packed_folder import unpacked
from judge.sandbox.contract import (
    OutputStatus,
    RunRequest,
    RunResult,
    RunStatus,
    Sandbox,
    SandboxSession,
)
from tests.conformance.attack_corpus import LIMITS
from tests.conformance.ways import APART, MEASURED, SERVICES, run_in

INPUT = "/mnt/data/input/1_7_input.xlsx"
OUTPUT = "/mnt/data/output/1_7_output.xlsx"


def run(
    session: SandboxSession,
    program: str,
    *,
    limits: Limits = LIMITS,
    files: dict[str, bytes] | None = None,
    collect: str | None = OUTPUT,
) -> RunResult:
    content = {INPUT: b"input"} if files is None else files
    return session.run(RunRequest(textwrap.dedent(program), content, collect, limits))


# ---- what a run brings back


@run_in(APART)
def test_output_is_collected_from_the_given_path(session: SandboxSession) -> None:
    result = run(session, f"open({OUTPUT!r}, 'wb').write(open({INPUT!r}, 'rb').read() * 2)")
    assert (result.status, result.output_status) == (RunStatus.OK, OutputStatus.COLLECTED)
    assert result.output == b"inputinput"
    assert result.output_bytes == 10
    assert (result.exit_code, result.signal, result.survivors) == (0, None, 0)


def test_a_large_input_and_output_go_through(session: SandboxSession) -> None:
    content = bytes(range(256)) * 4096 * 16
    assert len(content) == LIMITS.output_bytes
    program = f"open({OUTPUT!r}, 'wb').write(open({INPUT!r}, 'rb').read())"
    result = run(session, program, files={INPUT: content})
    assert result.output == content


def test_the_pinned_packages_are_there(session: SandboxSession, sandbox: Sandbox) -> None:
    result = run(
        session,
        """
        import numpy, openpyxl, pandas, xlsxwriter, python_calamine, matplotlib
        for module in (numpy, openpyxl, pandas, xlsxwriter, matplotlib):
            print(module.__name__, module.__version__)
        """,
    )
    assert result.status is RunStatus.OK, result.stderr
    said = dict(line.split() for line in result.stdout.decode().splitlines())
    assert said == {name: sandbox.info.packages[name] for name in said}


def test_programs_draw_without_a_display(session: SandboxSession) -> None:
    result = run(
        session,
        f"""
        import matplotlib.pyplot as plt
        from PIL import Image
        plt.plot([1, 4, 2])
        plt.show()
        plt.savefig({OUTPUT!r}, format="png")
        with Image.open({OUTPUT!r}) as drawn:
            print(drawn.format, drawn.size)
        """,
    )
    assert result.status is RunStatus.OK, result.stderr
    assert result.stdout == b"PNG (640, 480)\n"
    assert result.stderr == b""
    assert (result.output or b"").startswith(b"\x89PNG")


def test_engines_are_not_for_solutions(session: SandboxSession) -> None:
    for name in ("ironcalc", "formualizer", "formulas"):
        assert b"ModuleNotFoundError" in run(session, f"import {name}").stderr


@run_in(APART)
def test_program_runs_as_main_script(session: SandboxSession) -> None:
    result = run(
        session,
        """
        import os, sys
        print(__name__, __file__, sys.argv)
        print(open(__file__).read().count("argv"))
        print(sys.modules["__main__"].__file__)
        open("relative.txt", "w").write("x")
        open(os.path.expanduser("~/home.txt"), "w").write("x")
        print(any(name.split(".")[0] == "judge" for name in sys.modules))
        print(sys.stdin.read() == "")
        """,
    )
    path = "/mnt/data/solution.py"
    assert result.stdout.decode().splitlines() == [
        f"__main__ {path} ['{path}']",
        "2",
        path,
        "False",
        "True",
    ]
    assert result.stderr == b""


def test_traceback_shows_the_source_line(session: SandboxSession) -> None:
    result = run(session, "def broken():\n    return {}['key']  # here\nbroken()\n")
    assert (result.status, result.exit_code) == (RunStatus.EXITED, 1)
    lines = result.stderr.decode().splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert '  File "/mnt/data/solution.py", line 3, in <module>' in lines
    assert "    return {}['key']  # here" in lines
    assert lines[-1] == "KeyError: 'key'"
    assert not any("judge" in line for line in lines)


@pytest.mark.parametrize("program", ["x = (1,\n", "print('a')\n\0", "return 1", "await x"])
def test_a_program_that_does_not_compile_does_not_run(
    session: SandboxSession, program: str
) -> None:
    result = run(session, "print('ran')\n" + program)
    assert (result.status, result.exit_code) == (RunStatus.COMPILE_ERROR, 1)
    assert result.stdout == b""
    assert result.stderr.rstrip()


def test_a_compile_error_is_shown_as_usual(session: SandboxSession) -> None:
    result = run(session, "x = (1,\n")
    assert b"SyntaxError" in result.stderr
    assert b'File "/mnt/data/solution.py", line 1' in result.stderr


def test_a_feigned_compile_error_is_a_runtime_error(session: SandboxSession) -> None:
    result = run(session, "import os\ntry: os.write(3, b'c')\nexcept OSError: pass\nexec('x = (')")
    assert (result.status, result.exit_code) == (RunStatus.EXITED, 1)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("raise SystemExit", 0),
        ("import sys; sys.exit(3)", 3),
        ("import sys; sys.exit('why')", 1),
        ("import os; os._exit(137)", 137),
        ("raise SystemExit(None)", 0),
    ],
)
def test_exit_codes(session: SandboxSession, statement: str, code: int) -> None:
    result = run(session, statement)
    assert result.exit_code == code
    assert result.status is (RunStatus.OK if code == 0 else RunStatus.EXITED)


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("import ctypes; ctypes.string_at(0)", signal.SIGSEGV),
        ("import os; os.abort()", signal.SIGABRT),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", signal.SIGKILL),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", signal.SIGTERM),
    ],
)
def test_signals_that_no_limit_explains(
    session: SandboxSession, statement: str, number: int
) -> None:
    result = run(session, statement)
    assert (result.status, result.signal) == (RunStatus.SIGNALED, number)


def test_files_that_a_script_leaves_open_are_written(session: SandboxSession) -> None:
    program = f"""
    import atexit, threading, time
    file = open({OUTPUT!r}, "w")
    file.write("unflushed")
    atexit.register(lambda: print("exit handler"))
    threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
    print("main")
    """
    result = run(session, program)
    assert result.output == b"unflushed"
    assert result.stdout == b"main\nthread\nexit handler\n"


def test_surrogates_and_non_ascii_text(session: SandboxSession) -> None:
    result = run(session, "print('Größe 表')\nimport sys; print('\\ud800', file=sys.stderr)")
    assert result.stdout.decode() == "Größe 表\n"
    assert result.stderr == b"\\ud800\n"


# ---- limits


@run_in(APART)
def test_wall_limit_kills_everything(session: SandboxSession) -> None:
    limits = replace(LIMITS, wall_s=2)
    result = run(
        session,
        """
        import os, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                time.sleep(1000)
        time.sleep(1000)
        """,
        limits=limits,
    )
    assert result.status is RunStatus.WALL_LIMIT
    assert 2 <= result.wall_s < 500  # the program's own wish is 1000
    assert result.survivors == 3
    assert result.cpu_s < 0.5


def test_a_program_that_stops_itself_reaches_the_wall_limit(session: SandboxSession) -> None:
    limits = replace(LIMITS, wall_s=0.3)
    result = run(session, "import os; os.kill(os.getpid(), 19)", limits=limits)
    assert result.status is RunStatus.WALL_LIMIT


@run_in(MEASURED)
def test_cpu_limit(session: SandboxSession) -> None:
    result = run(session, "while True: pass", limits=replace(LIMITS, cpu_s=0.5))
    assert result.status is RunStatus.CPU_LIMIT
    assert 0.5 <= result.cpu_s < LIMITS.cpu_s


@run_in(MEASURED)
def test_cpu_limit_counts_children(session: SandboxSession) -> None:
    program = """
    import os, signal, time
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    while True:
        if os.fork() == 0:
            end = time.process_time() + 0.2
            while time.process_time() < end: pass
            os._exit(0)
        time.sleep(0.21)
    """
    result = run(session, program, limits=replace(LIMITS, cpu_s=0.6, wall_s=60))
    assert result.status is RunStatus.CPU_LIMIT


@run_in(MEASURED)
def test_cpu_time_is_measured(session: SandboxSession) -> None:
    program = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    result = run(session, program)
    assert result.status is RunStatus.OK
    assert 0.25 <= result.cpu_s < 1


@run_in(MEASURED)
def test_memory_limit(session: SandboxSession) -> None:
    program = """
    kept = []
    while True:
        kept.append(b"x" * 2**20)
    """
    result = run(session, program)
    assert result.status is RunStatus.MEMORY_LIMIT
    assert result.peak_memory_bytes is not None
    assert result.peak_memory_bytes > 128 * MIB


@run_in(MEASURED)
def test_memory_limit_in_a_child_is_noticed(session: SandboxSession) -> None:
    program = """
    import os
    child = os.fork()
    if child == 0:
        kept = []
        while True:
            kept.append(b"x" * 2**20)
    os.waitpid(child, 0)
    """
    result = run(session, program)
    assert result.status is RunStatus.MEMORY_LIMIT


@run_in(MEASURED)
def test_memory_within_the_limit_is_fine(session: SandboxSession) -> None:
    result = run(session, "x = b'x' * (200 * 2**20)")
    assert result.status is RunStatus.OK
    assert result.peak_memory_bytes is not None
    assert 200 * MIB <= result.peak_memory_bytes < LIMITS.memory_bytes


@run_in(MEASURED)
def test_processes_are_bounded(session: SandboxSession) -> None:
    program = """
    import os, time
    made = 0
    try:
        while made < 200:
            if os.fork() == 0:
                time.sleep(100)
            made += 1
    except BlockingIOError:
        pass
    print(made)
    """
    result = run(session, program)
    made = int(result.stdout)
    assert LIMITS.processes // 2 <= made <= LIMITS.processes
    assert result.survivors == made


@run_in(APART)
def test_disk_is_bounded(session: SandboxSession) -> None:
    program = """
    with open("/tmp/big", "wb") as file:
        while True:
            file.write(b"x" * 2**20)
    """
    result = run(session, program)
    assert result.status is RunStatus.DISK_LIMIT
    assert b"No space left on device" in result.stderr
    assert run(session, "open('/tmp/x', 'w').write('y')").status is RunStatus.OK


def test_a_full_disk_is_noticed_even_if_the_program_ignores_it(session: SandboxSession) -> None:
    program = """
    try:
        with open("/tmp/big", "wb") as file:
            while True:
                file.write(b"x" * 2**20)
    except OSError:
        pass
    """
    result = run(session, program)
    assert (result.status, result.exit_code) == (RunStatus.DISK_LIMIT, 0)


@run_in(APART)
def test_inodes_are_bounded(session: SandboxSession) -> None:
    program = """
    import os
    for number in range(100_000):
        os.close(os.open(f"/tmp/{number}", os.O_CREAT | os.O_WRONLY))
    """
    result = run(session, program)
    assert result.status is RunStatus.DISK_LIMIT


def test_console_floods_are_bounded_and_counted(session: SandboxSession) -> None:
    limits = replace(LIMITS, console_bytes=1000)
    program = """
    import os, sys
    sys.stdout.write("start" + "o" * 5_000_000)
    sys.stderr.write("e" * 5_000_000 + "end")
    """
    result = run(session, program, limits=limits)
    assert result.status is RunStatus.OK
    assert (len(result.stdout), result.stdout_bytes) == (1000, 5_000_005)
    assert (len(result.stderr), result.stderr_bytes) == (1000, 5_000_003)
    assert result.stdout.startswith(b"start")
    assert result.stderr.endswith(b"end")


# ---- what stands at the output path


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("pass", OutputStatus.MISSING),
        (f"import os; os.mkdir({OUTPUT!r})", OutputStatus.NOT_A_FILE),
        (f"import os; os.symlink('/etc/passwd', {OUTPUT!r})", OutputStatus.LINK),
        (f"import os; os.symlink('../input/1_7_input.xlsx', {OUTPUT!r})", OutputStatus.LINK),
        (f"import os; os.link({INPUT!r}, {OUTPUT!r})", OutputStatus.LINK),
        (f"import os; os.mkfifo({OUTPUT!r})", OutputStatus.SPECIAL),
        (
            f"import socket; socket.socket(socket.AF_UNIX).bind({OUTPUT!r})",
            OutputStatus.SPECIAL,
        ),
        (
            """
            import os
            os.rmdir('/mnt/data/output')
            os.symlink('/tmp', '/mnt/data/output')
            open('/tmp/1_7_output.xlsx', 'w').write('x')
            """,
            OutputStatus.LINK,
        ),
        ("import shutil; shutil.rmtree('/mnt/data/output')", OutputStatus.MISSING),
        (f"open({OUTPUT!r}, 'wb').write(bytes(17 * 2**20))", OutputStatus.TOO_LARGE),
        (f"open({OUTPUT!r}, 'wb').truncate(10 * 2**30)", OutputStatus.TOO_LARGE),
    ],
)
def test_only_a_plain_file_is_collected(
    session: SandboxSession, program: str, status: OutputStatus
) -> None:
    result = run(session, program)
    assert result.status is RunStatus.OK, result.stderr
    assert (result.output_status, result.output) == (status, None)


@run_in(APART)
def test_an_unreadable_output_is_the_solutions_fault(session: SandboxSession) -> None:
    program = f"import os; open({OUTPUT!r}, 'w').write('x'); os.chmod({OUTPUT!r}, 0)"
    assert run(session, program).output == b"x"


def test_output_of_a_failed_run_is_collected_too(session: SandboxSession) -> None:
    result = run(session, f"open({OUTPUT!r}, 'w').write('x')\nraise ValueError")
    assert (result.status, result.output) == (RunStatus.EXITED, b"x")


def test_a_folder_is_collected_with_its_regular_files(session: SandboxSession) -> None:
    program = """
        import os
        os.chdir('/mnt/data/work')
        os.makedirs('b/c')
        open('b/c/new.txt', 'w').write('new')
        os.remove('old.txt')
        os.symlink('/etc/passwd', 'b/link')
    """
    given = {"/mnt/data/work/old.txt": b"old", "/mnt/data/work/a/kept.txt": b"kept"}
    result = run(session, program, files=given, collect="/mnt/data/work/")
    assert (result.status, result.output_status) == (RunStatus.OK, OutputStatus.COLLECTED)
    assert unpacked(result.output or b"") == {"a/kept.txt": b"kept", "b/c/new.txt": b"new"}


def test_nothing_is_collected_if_nothing_is_requested(session: SandboxSession) -> None:
    result = run(session, f"open({OUTPUT!r}.replace('output/', ''), 'w')", collect=None)
    assert (result.output_status, result.output) == (OutputStatus.MISSING, None)


# ---- what a solution cannot reach


@run_in(APART)
def test_no_network(session: SandboxSession) -> None:
    program = """
    import socket
    for family, address in ((socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET6, ("::2", 53))):
        try:
            socket.create_connection(address[:2], timeout=2)
            print("reached")
        except OSError:
            pass
    try:
        socket.getaddrinfo("example.org", 443)
        print("resolved")
    except OSError:
        pass
    for family in (17, 40, 16, 38):  # packet, vsock, netlink, kernel crypto
        try:
            socket.socket(family, socket.SOCK_DGRAM)
            print("family", family)
        except OSError:
            pass
    """
    result = run(session, program)
    assert (result.status, result.stdout) == (RunStatus.OK, b"")


@run_in(APART)
def test_no_privileges(session: SandboxSession) -> None:
    program = """
    import os
    print(os.getuid() != 0 and os.geteuid() != 0, set(os.getgroups()) <= {os.getgid()})
    for line in open("/proc/self/status"):
        if line.split(":")[0] in ("CapPrm", "CapEff", "NoNewPrivs", "Seccomp"):
            print(*line.split())
    """
    said = run(session, program).stdout.decode().splitlines()
    assert said == [
        "True True",
        "CapPrm: 0000000000000000",
        "CapEff: 0000000000000000",
        "NoNewPrivs: 1",
        "Seccomp: 2",
    ]


@run_in(APART)
def test_only_its_own_descriptors_are_open(session: SandboxSession) -> None:
    result = run(session, "import os; print(sorted(os.listdir('/proc/self/fd'), key=int))")
    assert result.stdout == b"['0', '1', '2', '3']\n"  # 3 is the folder being listed


@run_in(APART)
def test_no_host_files(session: SandboxSession) -> None:
    program = """
    import os
    for path in ("/root", "/etc/shadow", "/home", "/var/run/docker.sock", "/work", "/srv"):
        try:
            print(path, os.listdir(path) if os.path.isdir(path) else open(path).read())
        except OSError:
            pass
    print(sorted(os.environ))
    """
    lines = run(session, program).stdout.decode().splitlines()
    assert lines[:-1] in (["/home ['solution']"], ["/home ['solution']", "/srv []"])
    assert "PATH" in lines[-1]
    assert not any(word in lines[-1] for word in ("KEY", "TOKEN", "JUDGE", "SSH"))


@run_in(APART)
def test_the_system_cannot_be_written(session: SandboxSession) -> None:
    program = """
    import openpyxl, os, sys
    targets = [openpyxl.__file__, os.__file__, sys.executable, "/etc/passwd", "/usr/lib/new",
               "/opt/judge/site/new.py", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"]
    for target in targets:
        try:
            open(target, "a").write("x")
            print("written", target)
        except OSError:
            pass
    """
    result = run(session, program)
    assert (result.status, result.stdout) == (RunStatus.OK, b"")


@run_in(APART)
def test_forged_frames_change_nothing(session: SandboxSession) -> None:
    payload = b'{"facts": {"exit_code": 0}, "output": {"status": "collected", "size": 1}}'
    frame = struct.pack(">I", len(payload)) + payload
    program = f"""
    import os
    for number in range(0, 300):
        for frame in ({frame!r}, b"R" + {frame!r}):
            try:
                os.write(number, frame)
            except OSError:
                pass
    for process in os.listdir("/proc"):
        for number in range(0, 300):
            if process.isdigit() and process != str(os.getpid()):
                try:
                    open(f"/proc/{{process}}/fd/{{number}}", "wb").write({frame!r})
                    print("reached", process, number)
                except OSError:
                    pass
    os._exit(7)
    """
    result = run(session, program)
    assert (result.status, result.exit_code) == (RunStatus.EXITED, 7)
    assert b"reached" not in result.stdout
    assert run(session, "print('next')").stdout == b"next\n"


@run_in(APART)
def test_the_warden_cannot_be_signalled_or_traced(session: SandboxSession) -> None:
    program = """
    import ctypes, os, signal
    libc = ctypes.CDLL(None, use_errno=True)
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            os.kill(int(name), signal.SIGKILL)
            print("signalled", name)
        except OSError:
            pass
        if libc.ptrace(16, int(name), 0, 0) == 0:
            print("traced", name)
        try:
            open(f"/proc/{name}/mem", "rb").read(1)
            print("read", name)
        except OSError:
            pass
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        pass
    """
    result = run(session, program)
    assert result.status in (RunStatus.OK, RunStatus.SIGNALED)
    assert b"traced" not in result.stdout
    assert b"read" not in result.stdout
    assert run(session, "print('next')").stdout == b"next\n"


# ---- between runs


@run_in(APART)
def test_a_run_leaves_nothing_for_the_next(session: SandboxSession) -> None:
    dirty = """
    import os, subprocess, sys
    for folder in ("/tmp", "/mnt", "/mnt/data", os.path.expanduser("~"), "/dev/shm", "/home"):
        open(f"{folder}/left", "w").write("x")
        os.makedirs(f"{folder}/a/b/c", exist_ok=True)
        os.symlink("/etc", f"{folder}/a/b/link")
        os.chmod(f"{folder}/a/b", 0)
        os.chmod(f"{folder}/a", 0)
    import openpyxl
    openpyxl.load_workbook = None
    os.environ["LEFT"] = "x"
    if os.fork() == 0:
        os.setsid()
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(1000)"])
    """
    result = run(session, dirty)
    assert (result.status, result.survivors) == (RunStatus.OK, 1), result.stderr
    clean = """
    import os, openpyxl
    for folder in ("/tmp", "/mnt", "/mnt/data", os.path.expanduser("~"), "/dev/shm", "/home"):
        print(folder, sorted(os.listdir(folder)))
    print(openpyxl.load_workbook is not None, os.environ.get("LEFT"))
    print(len([name for name in os.listdir("/proc") if name.isdigit()]) <= 4)
    """
    assert run(session, clean).stdout.decode().splitlines() == [
        "/tmp []",
        "/mnt ['data']",
        "/mnt/data ['input', 'output', 'solution.py']",
        "/home/solution []",
        "/dev/shm []",
        "/home ['solution']",
        "True None",
        "True",
    ]


@run_in(APART)
def test_a_very_deep_tree_is_cleared(session: SandboxSession) -> None:
    program = """
    import os
    os.chdir("/tmp")
    for _ in range(3000):
        os.mkdir("d" * 100)
        os.chdir("d" * 100)
    """
    assert run(session, program).status is RunStatus.OK
    assert run(session, "import os; print(os.listdir('/tmp'))").stdout == b"[]\n"


@run_in(APART)
def test_paths_and_limits_may_change_from_run_to_run(session: SandboxSession) -> None:
    for number, limits in enumerate((LIMITS, replace(LIMITS, memory_bytes=300 * MIB), LIMITS)):
        source, target = f"/workspace/{number}/in.xlsx", f"/data/{number}/out.xlsx"
        program = f"open({target!r}, 'wb').write(open({source!r}, 'rb').read())"
        content = f"content {number}".encode()
        result = run(session, program, files={source: content}, collect=target, limits=limits)
        assert result.output == content, result.stderr


@pytest.mark.parametrize(
    "path", ["relative.xlsx", "/top.xlsx", "/usr/x", "/mnt/../etc/x", "/etc/x"]
)
def test_impossible_paths_are_the_judges_fault(session: SandboxSession, path: str) -> None:
    with pytest.raises(SandboxError):
        run(session, "pass", files={path: b""})


@run_in(APART)
def test_simultaneous_sessions(sandbox: Sandbox) -> None:
    with sandbox.session() as first, sandbox.session() as second:
        assert run(first, "open('/tmp/x', 'w').write('first')").status is RunStatus.OK
        assert run(second, "import os; print(os.listdir('/tmp'))").stdout == b"[]\n"


def test_a_closed_session_is_closed(sandbox: Sandbox) -> None:
    session = sandbox.session()
    session.close()
    session.close()
    with pytest.raises(SandboxError):
        run(session, "pass")


# ---- services

ECHO = """
import os, struct, sys
def read(size):
    data = sys.stdin.buffer.read(size)
    if len(data) < size:
        sys.exit()
    return data
while True:
    payload = read(struct.unpack(">I", read(4))[0])
    if payload == b"sleep":
        import time
        time.sleep(1000)
    if payload == b"exit":
        os._exit(3)
    if payload == b"memory":
        kept = b"x" * 2**30
    if payload == b"privileges":
        facts = dict(line.split(":", 1) for line in open("/proc/self/status"))
        payload = " ".join(facts[name].strip() for name in ("CapEff", "NoNewPrivs")).encode()
        payload += str(os.getuid() != 0).encode()
    if payload == b"engines":
        import formualizer, formulas, ironcalc, openpyxl
    if payload == b"files":
        paths = ("/root/.ssh", "/etc/shadow")
        payload = repr([path for path in paths if os.path.exists(path)]).encode()
    sys.stdout.buffer.write(struct.pack(">I", len(payload)) + payload)
    sys.stdout.buffer.flush()
"""


@run_in(SERVICES)
def test_service_answers_frames(sandbox: Sandbox) -> None:
    channel = sandbox.service(ECHO)
    try:
        for payload in (b"", b"one", b"x" * 5_000_000):
            assert channel.call(payload, 60) == payload
        assert channel.call(b"privileges", 60) == b"0000000000000000 1True"
        assert channel.call(b"engines", 60) == b"engines"
        assert channel.call(b"files", 60) == b"[]"
    finally:
        channel.close()
        channel.close()


def test_service_that_does_not_answer_is_killed(sandbox: Sandbox) -> None:
    channel = sandbox.service(ECHO)
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        channel.call(b"sleep", 1.5)
    assert time.monotonic() - started < 500  # the service's own wish is 1000
    with pytest.raises(SandboxError):
        channel.call(b"x", 1)


@pytest.mark.parametrize("order", [b"exit", b"memory"])
@run_in(SERVICES)
def test_service_that_ends_is_our_failure(sandbox: Sandbox, order: bytes) -> None:
    channel = sandbox.service(ECHO, memory_bytes=256 * MIB)
    with pytest.raises(SandboxError):
        channel.call(order, 60)


def test_service_of_an_unknown_root(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError):
        sandbox.service(ECHO, root="windows")


@pytest.mark.office
@run_in(SERVICES)
def test_office_service(sandbox: Sandbox) -> None:
    if not sandbox.has_root("office"):
        pytest.skip("no office root: judge sandbox build")
    program = ECHO.replace("import formualizer, formulas, ironcalc, openpyxl", "import uno")
    channel = sandbox.service(program, root="office")
    try:
        assert channel.call(b"engines", 60) == b"engines"
        assert channel.call(b"privileges", 60) == b"0000000000000000 1True"
    finally:
        channel.close()
