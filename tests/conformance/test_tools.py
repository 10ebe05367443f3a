"""Agents' tools inside the sandbox: state, limits, servers that misbehave, and golds."""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from judge.errors import SandboxError
from judge.sandbox.backends import bubblewrap, docker
from judge.sandbox.backends.images import IMAGE_BUILDER
from judge.sandbox.build import ROOT_BUILDER
from judge.sandbox.contract import Sandbox
from judge.sandbox.roots import root_named, server_folder
from judge.tools.box import HOME
from judge.tools.contract import ToolOutcome
from judge.tools.servers import BuiltServer, ServerSource, build_server, find_server
from judge.tools.sets import EpisodeTools, ServerTools, SharedCalculator, ToolSet, list_server
from tests.desktops import require_agent

SERVER = Path(__file__).with_name("hostile_server.py")
INPUT, OUTPUT = f"{HOME}/in/book.xlsx", f"{HOME}/out/book.xlsx"
NATIVE = ("python", "bash", "list_sheets", "view_range", "find", "recalc", "render", "submit")
_BUILDERS = {docker._NAME: IMAGE_BUILDER, bubblewrap._NAME: ROOT_BUILDER}


def book() -> bytes:
    made = openpyxl.Workbook()
    made.worksheets[0].append(["item", "price"])
    made.worksheets[0]["B2"] = "=1+2"
    data = io.BytesIO()
    made.save(data)
    return data.getvalue()


@pytest.fixture
def calculator(sandbox: Sandbox) -> Iterator[SharedCalculator]:
    with SharedCalculator(sandbox.info.backend) as made:
        yield made


@contextlib.contextmanager
def episode(
    sandbox: Sandbox, tools: ToolSet, calculator: SharedCalculator, **more: Any
) -> Iterator[EpisodeTools]:
    made = EpisodeTools(tools, sandbox, {INPUT: book()}, INPUT, OUTPUT, calculator, **more)
    with contextlib.closing(made):
        made.start()
        yield made


@pytest.fixture
def native(sandbox: Sandbox, calculator: SharedCalculator) -> Iterator[EpisodeTools]:
    require_agent(sandbox.info.backend)
    with episode(sandbox, ToolSet("native", NATIVE), calculator, call_s=3.0) as made:
        yield made


def test_interpreter_and_shell_keep_their_state_and_report_its_loss(
    native: EpisodeTools,
) -> None:
    def python(code: str) -> ToolOutcome:
        return native.call("python", {"code": code})

    def bash(command: str) -> ToolOutcome:
        return native.call("bash", {"command": command})

    assert python("kept = 41") == ToolOutcome("")
    assert python("print(kept + 1)").text == "42"
    assert bash("here=7; cd in").error == ""
    assert bash("echo $here $PWD").text == f"7 {HOME}/in"
    assert bash("false") == ToolOutcome("(exit code 1)", "tool")
    assert bash("sleep 60").error == "timeout"
    assert bash("echo $here").text == "7"
    late = python("import time; time.sleep(60)")
    assert (late.error, "variables are kept" in late.text) == ("timeout", True)
    assert python("print(kept)").text == "41"
    assert "state is lost" in python("import os; os._exit(1)").text
    assert "NameError" in python("kept").text
    assert "a new one starts" in bash("exit 4").text
    assert bash("echo [$here]").text == "[]"
    assert "MemoryError" in python("x = bytearray(1 << 34)").text
    assert native.call("python", {"code": "print(1)"}).text == "1"
    assert native.dead == ""


def test_tools_see_files_of_other_tools_and_the_input_is_not_changed(native: EpisodeTools) -> None:
    assert "used A1:B2, 1 formulas" in native.call("list_sheets", {}).text
    code = (
        f"import openpyxl; b = openpyxl.load_workbook({INPUT!r}); b['Sheet']['A3'] = 'pear'; "
        f"b.save({OUTPUT!r})"
    )
    assert native.call("python", {"code": code}).error == ""
    assert native.workbook() == native.collect().sha256 is not None
    assert "'Sheet'!A3: pear" in native.call("find", {"text": "PEAR"}).text
    assert "1 formulas computed" in native.call("recalc", {}).text
    assert native.read(INPUT).data == book_of(native)
    assert "'x'" in native.call("view_range", {"range": "A1", "path": "x"}).text
    assert "not below" in native.call("view_range", {"range": "A1", "path": "/etc/passwd"}).text
    for path in ("\ud800.xlsx", "out/\ud800.xlsx", "a\0.xlsx"):  # the driver outlives them
        assert native.call("list_sheets", {"path": path}).error in {"argument", "tool"}
        assert native.call("recalc", {"save_as": path}).error in {"argument", "tool"}
    assert native.call("bash", {"command": "echo '\ud800'"}).error in {"", "tool"}
    assert native.call("python", {"code": "print('\ud800')"}).error in {"", "tool"}
    assert native.read(INPUT).data == book_of(native)


def book_of(tools: EpisodeTools) -> bytes:
    return tools.files[INPUT]


def test_a_range_is_drawn_the_same_twice_and_a_large_one_is_refused(native: EpisodeTools) -> None:
    drawn = [native.call("render", {"range": "Sheet!A1:C9"}) for _ in range(2)]
    assert drawn[0].pictures == drawn[1].pictures
    assert drawn[0].pictures[0].startswith(b"\x89PNG")
    for area in ("Sheet!A1:C1000000", "Sheet!A1:ZZ2", "A1:B2", "Sheet"):
        refused = native.call("render", {"range": area})
        assert (refused.error, refused.pictures) == ("argument", ())
    # A chart is drawn, and a sheet that LibreOffice names otherwise.
    code = (
        "import openpyxl; from openpyxl.chart import BarChart, Reference\n"
        "b = openpyxl.Workbook(); s = b.active; s.title = 'SHEET1'; s.append([1]); s.append([3])\n"
        "b.save('out/plain.xlsx')\n"
        "c = BarChart(); c.add_data(Reference(s, min_col=1, min_row=1, max_row=2))\n"
        "s.add_chart(c, 'C2'); b.save('out/chart.xlsx')\n"
    )
    assert native.call("python", {"code": code}).error == ""
    plain, chart = (
        native.call("render", {"range": "SHEET1!A1:L20", "path": f"out/{name}.xlsx"}).pictures
        for name in ("plain", "chart")
    )
    assert len(plain) == len(chart) == 1
    assert plain != chart


def test_a_tool_reaches_no_network_no_other_process_and_nothing_of_the_machine(
    native: EpisodeTools,
) -> None:
    script = """
        (exec 5<>/dev/tcp/1.1.1.1/53) 2>/dev/null && echo network
        kill -9 1; sleep 0.2; ls /proc/1/fd 2>/dev/null | head -1
        cat /proc/1/environ /proc/1/mem 2>/dev/null | head -c 10
        find / -xdev -writable -not -path '/proc/*' -not -path '/home/*' -not -path '/tmp/*' \
            -not -path '/dev/*' -type f 2>/dev/null | head -3
        ls /root /work /mnt/data 2>/dev/null
        echo done
    """
    assert native.call("bash", {"command": script}).text.split() == ["done"]


READABLE = r"""
import os
words = [word.encode() for word in ("GOLDENVALUE", "OTHERCASEVALUE")]
for root, folders, names in os.walk("/"):
    if root.startswith(("/proc", "/sys", "/dev")):
        folders.clear()
        continue
    if root == "/":
        folders[:] = [each for each in folders if each not in ("usr", "lib", "opt", "var")]
    for name in names:
        if any(word in name for word in ("gold", "answer", "dataset.json")) and "/usr" not in root:
            print(root, name)
        try:
            with open(os.path.join(root, name), "rb") as file:
                data = file.read(50_000_000)
        except OSError:
            continue
        if any(word in data for word in words):
            print(root, name)
for process in os.listdir("/proc"):
    for part in ("environ", "cmdline"):
        try:
            data = open(f"/proc/{process}/{part}", "rb").read()
        except OSError:
            continue
        if any(word in data for word in words):
            print(process, part)
"""


def test_no_gold_and_no_other_case_is_readable_from_a_tool(native: EpisodeTools) -> None:
    # Written in pieces, so that the search does not find itself.
    code = READABLE.replace("GOLDENVALUE", 'GOLDEN" "VALUE').replace(
        "OTHERCASEVALUE", 'OTHERCASE" "VALUE'
    )
    found = native.call("python", {"code": code})
    assert found == ToolOutcome("")
    native.call("bash", {"command": "echo GOLDEN'VALUE' > /tmp/planted"})
    assert "planted" in native.call("python", {"code": code}).text


def test_no_gold_and_no_other_case_is_readable_from_a_server(
    sandbox: Sandbox, server: BuiltServer, calculator: SharedCalculator
) -> None:
    tools = ToolSet("mcp:hostile", ("submit",), (offered(server, sandbox, "run_code"),))
    code = READABLE.replace("GOLDENVALUE", 'GOLDEN" "VALUE').replace(
        "OTHERCASEVALUE", 'OTHERCASE" "VALUE'
    )
    with episode(sandbox, tools, calculator, call_s=60.0) as made:
        assert made.call("say", {"text": code}) == ToolOutcome("")
        assert made.call("say", {"text": "import os; print(os.getuid() > 0)"}).text == "True\n"


# -- servers ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built() -> dict[str, BuiltServer]:
    return {}


@pytest.fixture
def server(sandbox: Sandbox, built: dict[str, BuiltServer], tmp_path: Path) -> BuiltServer:
    """The hostile server's root, which is made once for each backend."""
    backend = sandbox.info.backend
    if backend not in built:
        (tmp_path / "server.py").write_bytes(SERVER.read_bytes())
        source = ServerSource("hostile", tmp_path, command="server.py")
        made = build_server(source, sandbox, lambda _: None)
        _BUILDERS[backend].build_server(root_named(made.root), lambda _: None)
        built[backend] = find_server("hostile", sandbox)
    return built[backend]


def in_mode(server: BuiltServer, mode: str) -> BuiltServer:
    return replace(server, argv=(*server.argv, mode))


def offered(server: BuiltServer, sandbox: Sandbox, mode: str) -> ServerTools:
    start_s = 4.0 if mode == "hang_start" else 60.0
    return list_server(in_mode(server, mode), sandbox, start_s=start_s)


BOTH_CALLS = {
    "polite": ("", ""),
    "line_without_end": ("protocol", "protocol"),
    "endless_noise": ("protocol", "protocol"),
    "endless_stderr": ("timeout", "timeout"),
    "notification_flood": ("protocol", "protocol"),
    "die_once": ("died", ""),
    "fork": ("", ""),
    "ignore_cancel": ("timeout", "timeout"),
    "stops_reading": ("", "timeout"),
    "kill_everybody": ("", ""),
    "two_answers": ("", ""),
    "half_pairs_in_a_schema": ("", ""),
    "empty_cursor": ("", ""),
}


@pytest.mark.parametrize("mode", BOTH_CALLS)
def test_a_server_that_misbehaves_ends_in_time_and_is_blamed(
    sandbox: Sandbox, server: BuiltServer, calculator: SharedCalculator, mode: str
) -> None:
    tools = ToolSet("mcp:hostile", ("submit",), (offered(server, sandbox, mode),))
    call_s = 1.0 if "timeout" in BOTH_CALLS[mode] else 30.0
    with episode(sandbox, tools, calculator, call_s=call_s) as made:
        outcomes = [made.call("say", {"text": "x"}) for _ in range(2)]
        assert tuple(outcome.error for outcome in outcomes) == BOTH_CALLS[mode]
        for outcome in outcomes:
            blamed = outcome.error in {"protocol", "timeout", "died"}
            assert outcome.fault.startswith("the server hostile: ") is blamed
        broken = BOTH_CALLS[mode][0] != "" and BOTH_CALLS[mode][1] != ""
        assert bool(made.dead) is broken
        assert made.collect().problem == "there is no file"


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("hang_start", "does not answer in"),
        ("no_tools", "no tool that can be offered"),
        ("die_at_start", "exit code 4: no licence"),
        ("garbage_start", "cannot be read"),
        ("wrong_version", "'1999-01-01' is not known"),
        ("many_tools", "more than 256 tools"),
        ("endless_cursor", "more than 20 pages"),
    ],
)
def test_a_server_that_does_not_start_is_named_and_the_next_one_does(
    sandbox: Sandbox, server: BuiltServer, mode: str, why: str
) -> None:
    assert why in offered(server, sandbox, mode).problem
    again = offered(server, sandbox, "stateless")
    assert (again.problem, list(again.tools), again.record["era"]) == ("", ["say"], "stateless")


def test_two_servers_in_separate_roots_work_on_the_same_files(
    sandbox: Sandbox, server: BuiltServer, calculator: SharedCalculator, native: EpisodeTools
) -> None:
    native.close()
    once = offered(server, sandbox, "die_once")
    tools = ToolSet("bash,mcp:hostile", ("bash", "submit"), (once,))
    with episode(sandbox, tools, calculator, call_s=3.0) as made:
        assert made.call("bash", {"command": "echo 1 > out/a.txt; touch died"}).error == ""
        # The server finds the file of the shell, so it does not die.
        assert made.call("say", {}).text == "said"
        assert made.call("bash", {"command": "cat out/a.txt"}).text == "1"
        script = "ls /server 2>/dev/null; echo none"
        assert made.call("bash", {"command": script}).text == "none"


def wheel(folder: Path, name: str, text: str, *needs: str) -> None:
    """Writes a wheel with one module and one command."""
    facts = [f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nLicense: MIT"]
    parts = {
        f"{name}.py": text,
        f"{name}-1.0.dist-info/METADATA": "\n".join(
            [*facts, *(f"Requires-Dist: {need}" for need in needs)]
        ),
        f"{name}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        f"{name}-1.0.dist-info/entry_points.txt": f"[console_scripts]\n{name}-run = {name}:main\n",
        f"{name}-1.0.dist-info/RECORD": "",
    }
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, content in parts.items():
            archive.writestr(path, content)


def test_wheels_are_installed_without_a_network_to_the_same_root_twice(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    wheels = tmp_path / "wheels"
    wheel(wheels, "tiny", "import other\ndef main():\n    pass\n", "other")
    source = ServerSource(
        "tiny", wheels, "tiny:main", arguments="{work}", variables=("OWN={work}/x",)
    )
    with pytest.raises(SandboxError, match=r"tiny 1\.0 requires other"):
        build_server(source, sandbox, lambda _: None)
    wheel(wheels, "other", "")
    made = build_server(source, sandbox, lambda _: None)
    shutil.rmtree(server_folder(made.digest))
    again = build_server(source, sandbox, lambda _: None)
    assert again == made
    assert made.packages["tiny"] == ("1.0", "MIT")
    assert made.variables("/home/agent") == {"OWN": "/home/agent/x"}
    for entry in ("", "tiny:nothing", "nowhere"):
        with pytest.raises(SandboxError) as caught:
            build_server(replace(source, entry=entry), sandbox, lambda _: None)
        assert "tiny-run is tiny:main" in str(caught.value.hint)


def test_wheels_with_machine_code_are_installed_where_nothing_written_is_executable(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """Docker's /tmp is not executable, so a package with machine code cannot be tried there."""
    version = ".".join(sandbox.info.python.split(".")[:2])
    if sys.version.split(".")[:2] != version.split("."):
        pytest.skip(f"no machine code for Python {version} here")
    own = next(Path(path) for path in sys.path if path.endswith("lib-dynload"))
    library = next(own.glob("_json.*.so"))
    # Like pandas, the package replaces the message of the import that failed.
    text = "try:\n    from coded_inside import _json as inside\nexcept ImportError as error:\n"
    text += "    raise ImportError('a dependency cannot be imported') from error\nmain = print\n"
    wheel(tmp_path / "wheels", "coded", text)
    with zipfile.ZipFile(tmp_path / "wheels" / "coded-1.0-py3-none-any.whl", "a") as archive:
        archive.writestr("coded_inside/__init__.py", "")
        archive.write(library, f"coded_inside/{library.name}")
    source = ServerSource("coded", tmp_path / "wheels", "coded:main")
    assert "coded" in build_server(source, sandbox, lambda _: None).packages


def test_the_error_about_an_unknown_server_says_how_its_root_is_made(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError) as caught:
        find_server("nothing", sandbox)
    assert "judge sandbox build --mcp nothing" in str(caught.value.hint)
