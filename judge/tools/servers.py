"""Builds roots of MCP servers: the root of solutions, with the packages or files of one server.

The user's packages are installed inside a sandbox, without a network, and kept under a hash of
everything that was used. The root of a server contains nothing of another server, so two servers
can need different versions of a package.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import re
import shlex
import shutil
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge.console import visible
from judge.core.limits import GIB, MIB
from judge.errors import SandboxError
from judge.files.documents import MalformedError, dump_json, parse_json, read_regular
from judge.files.packed_folder import unpack_tar
from judge.files.paths import cache_folder
from judge.files.writing import write_whole
from judge.sandbox.build import Report, builders_for, fresh_folder
from judge.sandbox.bundle import program_text
from judge.sandbox.contract import Sandbox, ServiceChannel
from judge.sandbox.roots import (
    COMPLETE,
    SERVER,
    is_complete,
    root_named,
    server_folder,
    server_root_name,
)
from judge.sandbox.select import open_sandbox
from judge.sandbox.warden import frames

WORK = "{work}"
"""Placeholder in the arguments of a server for the folder in which an agent works."""

_FORMAT = "1"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_WHEEL = re.compile(r"[A-Za-z0-9_.]+-[^-]+(-\d[^-]*)?-[^-]+-[^-]+-[^-]+\.whl")
_VARIABLE = re.compile(r"[A-Za-z_]\w*=[^\0]*\Z", re.ASCII)
_COMMAND = re.compile(r"([\w.-]+)\s*=\s*([\w.]+:[\w.]+)")
_MAX_COMMANDS = 12
_MAX_WHEELS = 500
_MAX_BYTES = 1 * GIB
_MAX_MEMBERS = 100_000
_MEMORY_BYTES = 3 * GIB
_STEP_S = 700.0
_NOT_MAPPED = "failed to map segment from shared object"
"""The error of an import of machine code from a folder whose files cannot be executed, such as
Docker's /tmp."""
_OLDER_SDK = (
    "If the server was written for version 1 of the package mcp, download its wheels into an empty "
    "folder with 'mcp<2' at the end of the command. Otherwise: "
)
_PROGRAM = ("judge.sandbox.warden.frames", "judge.sandbox.installer")


@dataclass(frozen=True, slots=True)
class ServerSource:
    """The packages or files of a server, and how to start it, as given by a user.

    Attributes:
        name: its name, as in ``mcp:NAME``.
        folder: the folder of the wheels, or of files that are shown unchanged.
        entry: module that is run, or ``module:function`` that is called; empty for files.
        command: the command for files, relative to their folder.
        arguments: the arguments of the server; ``{work}`` is replaced by the folder in which the
            agent works.
        variables: the variables of its environment, as ``NAME=VALUE``; ``{work}`` is replaced too.
    """

    name: str
    folder: Path
    entry: str = ""
    command: str = ""
    arguments: str = ""
    variables: tuple[str, ...] = ()

    def check(self) -> None:
        """Checks what can be checked without a sandbox.

        Raises:
            SandboxError: something is missing or malformed.
        """
        if not _NAME.fullmatch(self.name):
            raise SandboxError(
                f"{visible(self.name)!r:.80} cannot be the name of a server",
                hint="Use up to 40 small letters, digits and hyphens, such as excel.",
            )
        if not self.folder.is_dir():
            raise SandboxError(f"{self.folder}: there is no such folder")
        if bool(self.entry) == bool(self.command):
            raise SandboxError(
                "a server needs either an entry or a command",
                hint="--wheels FOLDER --entry MODULE:FUNCTION, or --files FOLDER --command bin/x. "
                + commands_in(self.folder),
            )
        for variable in self.variables:
            if not _VARIABLE.match(variable):
                raise SandboxError(f"{visible(variable)!r:.80} is not NAME=VALUE")
        if not re.fullmatch(r"[\w.]*(:[\w.]+)?", self.entry):
            raise SandboxError(
                f"{visible(self.entry)!r:.80} is not an entry", hint="Write module or module:name."
            )

    @property
    def argv(self) -> list[str]:
        """The command that starts the server inside the sandbox."""
        arguments = shlex.split(self.arguments)
        if self.command:
            first, *others = shlex.split(self.command)
            return [f"{SERVER}/files/{first}", *others, *arguments]
        return ["/usr/bin/python3", "-s", "-c", starting(self.entry), *arguments]


@dataclass(frozen=True, slots=True)
class BuiltServer:
    """A server whose root exists.

    Attributes:
        name: its name, as in ``mcp:NAME``.
        digest: hash of packages or files, interpreter, entry and arguments.
        argv: the command that starts it inside; ``{work}`` is not replaced yet.
        packages: package -> version and licence.
        content: hash of the installed files.
        environment: variable -> value; ``{work}`` is not replaced yet.
    """

    name: str
    digest: str
    argv: tuple[str, ...]
    packages: Mapping[str, tuple[str, str]]
    content: str
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """The name of the server's root, for ``Sandbox.service``."""
        return server_root_name(self.digest)

    def command(self, work: str) -> list[str]:
        """The command that starts the server inside the sandbox.

        Args:
            work: the folder in which the agent works.
        """
        return [part.replace(WORK, work) for part in self.argv]

    def variables(self, work: str) -> dict[str, str]:
        """The environment variables of the server.

        Args:
            work: the folder in which the agent works.
        """
        return {name: value.replace(WORK, work) for name, value in self.environment.items()}


def starting(entry: str) -> str:
    """A Python program, for ``python3 -c``, that starts an entry with the command's arguments."""
    module, _, name = entry.partition(":")
    if not name:
        return f"import runpy, sys; runpy.run_module({module!r}, run_name='__main__')"
    first = name.split(".")[0]
    return f"import sys; sys.argv[0] = {module!r}; from {module} import {first}; sys.exit({name}())"


def commands_in(folder: Path) -> str:
    """A sentence about the commands in the wheels of a folder; empty if there are none."""
    commands: dict[str, str] = {}
    for path in sorted(folder.glob("*.whl")):
        broken = contextlib.suppress(zipfile.BadZipFile, OSError, RuntimeError, UnicodeError)
        with broken, zipfile.ZipFile(path) as wheel:
            named = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]
            for name in named[:1]:
                with wheel.open(name) as file:
                    text = file.read(64 * 1024).decode()
                _, _, listed = text.partition("[console_scripts]")
                commands |= dict(_COMMAND.findall(listed.partition("[")[0]))
    if not commands:
        return ""
    shown = [f"{name} is {entry}" for name, entry in list(commands.items())[:_MAX_COMMANDS]]
    return f"Commands of these wheels: {', '.join(shown)}."


def build_server(source: ServerSource, sandbox: Sandbox, report: Report) -> BuiltServer:
    """Makes the root of a server, unless it exists.

    Args:
        source: the server's packages or files.
        sandbox: the sandbox in which it is installed.
        report: called with each step.

    Raises:
        SandboxError: a wheel does not fit, a dependency is missing, or the entry cannot be
            imported; the message names it.
    """
    source.check()
    with contextlib.closing(
        sandbox.service(program_text(*_PROGRAM), root="python", memory_bytes=_MEMORY_BYTES)
    ) as channel:
        facts, _ = _ask(channel, {"op": "facts"})
        files = _files_of(source)
        digest = _digest_of(source, files, facts)
        folder = server_folder(digest)
        if is_complete(folder):
            report(f"{source.name}: {folder} exists")
        else:
            report(f"{source.name}: installing {len(files)} files without a network")
            with fresh_folder(folder) as work:
                _fill(source, files, channel, work, facts, report)
            report(f"{source.name}: made {folder}")
    _note_name(source.name, str(facts["python"]), digest)
    return _read_built(source.name, digest)


def build_servers(source: ServerSource, backend: str, report: Report) -> dict[str, str]:
    """Makes the root of a server for one backend, or for all backends that this machine has.

    Args:
        source: the server's packages or files.
        backend: as in :func:`judge.sandbox.build.build_all`.
        report: called with each step.

    Returns:
        ``digest``, and backend -> folder or image.

    Raises:
        SandboxError: as in :func:`build_server`.
    """
    source.check()
    built: dict[str, str] = {}
    for name, builder in builders_for(backend, report).items():
        builder.build_python(report, None)
        with contextlib.closing(open_sandbox(name)) as sandbox:
            server = build_server(source, sandbox, report)
        built |= {"digest": server.digest, "content": server.content}
        built[name] = builder.build_server(root_named(server.root), report)
    return built


def _fill(
    source: ServerSource,
    files: Mapping[str, Path],
    channel: ServiceChannel,
    work: Path,
    facts: Mapping[str, Any],
    report: Report,
) -> None:
    """Writes everything that a server needs into a folder."""
    packages: dict[str, Any] = {}
    if source.command:
        for name, path in files.items():
            target = work / "files" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            target.chmod(0o755)
        if not (work / "files" / shlex.split(source.command)[0]).is_file():
            raise SandboxError(
                f"{source.folder} has no file {visible(shlex.split(source.command)[0])!r}"
            )
    else:
        packages = _install(source, files, channel, work)
        _try_entry(source, channel, report)
    document = {
        "argv": source.argv,
        "environment": dict(variable.split("=", 1) for variable in source.variables),
        "packages": packages,
        "python": facts["python"],
        "content": _content_of(work),
    }
    write_whole(work / COMPLETE, dump_json(document).encode())


def _install(
    source: ServerSource, files: Mapping[str, Path], channel: ServiceChannel, work: Path
) -> dict[str, Any]:
    """Installs wheels, and unpacks the result; returns package -> version and licence."""
    _ask(channel, {"op": "put", "name": "pip"}, _pip_archive())
    for name, path in files.items():
        _ask(channel, {"op": "put", "name": name}, path.read_bytes())
    result, _ = _ask(channel, {"op": "install", "wheels": list(files)})
    missing = [line for line in str(result["check"]).splitlines() if " requires " in line]
    if missing:
        raise SandboxError(
            f"packages of {source.name} are missing: {visible('; '.join(missing[:5]))}",
            hint=f"Put their wheels into {source.folder}, too: pip download -d FOLDER NAME.",
        )
    size = int(result["bytes"])
    if size > _MAX_BYTES:
        raise SandboxError(
            f"{source.name}: {size:,} bytes are installed; at most {_MAX_BYTES:,} are allowed"
        )
    data = bytearray()
    while len(data) < size:
        _, parts = _ask(channel, {"op": "read", "offset": len(data)})
        if not parts or not parts[0]:
            raise SandboxError(f"{source.name}: the installed files cannot be read")
        data += parts[0]
    _unpack(source.name, bytes(data), work)
    packages = result["packages"]
    assert isinstance(packages, dict)
    return {str(name): [str(one) for one in facts] for name, facts in packages.items()}


def _try_entry(source: ServerSource, channel: ServiceChannel, report: Report) -> None:
    """Checks that the entry can be imported.

    Raises:
        SandboxError: it cannot be imported.
    """
    module, _, name = source.entry.partition(":")
    program = f"import {module}" + (f"; {module}.{name}" if name else "")
    if not name:
        program = f"import importlib.util, sys; sys.exit(not importlib.util.find_spec({module!r}))"
    tried, _ = _ask(channel, {"op": "try", "program": program})
    if tried["code"] == 0:
        return
    lines = str(tried["printed"]).strip().splitlines() or ["it does not exist"]
    last = lines[-1]
    # Some packages, such as pandas, replace the message of an import that failed by their own.
    if any(line.endswith(_NOT_MAPPED) for line in lines):
        report(f"{source.name}: imports machine code; judge tools check mcp:{source.name} tries it")
    else:
        raise SandboxError(
            f"the entry {source.entry} cannot be imported: {visible(last)[:300]}",
            hint=(_OLDER_SDK if any(source.folder.glob("mcp-2*.whl")) else "")
            + "--entry is the module, or module:function, that the package's own command calls. "
            + commands_in(source.folder),
        )


def _unpack(name: str, data: bytes, work: Path) -> None:
    """Unpacks an archive from a sandbox: only files and folders, and only inside the target."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            if any(number >= _MAX_MEMBERS for number, _ in enumerate(archive)):
                raise SandboxError(f"{name}: more than {_MAX_MEMBERS:,} files were installed")
            unpack_tar(archive, work)
    except tarfile.TarError as error:
        problem = visible(str(error))
        raise SandboxError(f"{name}: the installed files cannot be unpacked: {problem}") from error


def _files_of(source: ServerSource) -> dict[str, Path]:
    """The wheels or files, by their path within the folder."""
    if source.command:
        paths = [path for path in sorted(source.folder.rglob("*")) if path.is_file()]
        files = {path.relative_to(source.folder).as_posix(): path for path in paths}
    else:
        files = {path.name: path for path in sorted(source.folder.iterdir()) if path.is_file()}
        strange = [name for name in files if not _WHEEL.fullmatch(name)]
        if strange:
            raise SandboxError(
                f"{source.folder} holds {visible(strange[0])!r:.100}, which is not a wheel",
                hint="Nothing is built from source here: pip download --only-binary=:all: -d "
                "FOLDER NAME.",
            )
    if not files or len(files) > _MAX_WHEELS:
        raise SandboxError(
            f"{source.folder} holds {len(files)} files; 1 to {_MAX_WHEELS} are allowed"
        )
    if sum(path.stat().st_size for path in files.values()) > _MAX_BYTES:
        raise SandboxError(f"{source.folder} holds more than {_MAX_BYTES // MIB:,} MiB")
    return files


def _digest_of(source: ServerSource, files: Mapping[str, Path], facts: Mapping[str, Any]) -> str:
    # The full version: 3.11.2 may need a package that 3.11.3 does not need.
    python = [str(facts["python"]), str(facts["machine"])]
    parts: list[str] = [_FORMAT, *python, *source.argv, *source.variables]
    for name, path in files.items():
        parts += [name, hashlib.sha256(path.read_bytes()).hexdigest()]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


def _content_of(work: Path) -> str:
    """A hash of all files of a folder, except those that Python compiled."""
    digest = hashlib.sha256()
    for path in sorted(work.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            name = path.relative_to(work).as_posix()
            digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    return digest.hexdigest()


def _pip_archive() -> bytes:
    """A copy of this interpreter's pip.

    Raises:
        SandboxError: pip is not installed.
    """
    spec = importlib.util.find_spec("pip")
    if spec is None or not spec.submodule_search_locations:
        raise SandboxError(
            "this Python has no pip, which installs wheels inside the sandbox",
            hint="run: python -m ensurepip",
        )
    folder = Path(spec.submodule_search_locations[0])
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix not in {".pyc", ".exe"}:
                archive.write(path, f"pip/{path.relative_to(folder).as_posix()}")
    return data.getvalue()


def _ask(
    channel: ServiceChannel, header: dict[str, Any], blob: bytes | None = None
) -> tuple[dict[str, Any], list[bytes]]:
    """Sends a request to the installer.

    Raises:
        SandboxError: it failed; the message has the end of its output.
    """
    payload = frames.pack(header, [] if blob is None else [blob])[4:]
    try:
        answer, parts = frames.unpack(channel.call(payload, _STEP_S))
    except (TimeoutError, frames.ProtocolError) as error:
        raise SandboxError(f"the packages cannot be installed: {error}") from error
    if "fault" in answer:
        lines = [line for line in str(answer["fault"]).strip().splitlines() if line.strip()]
        raise SandboxError(
            "the packages cannot be installed: " + visible("; ".join(lines[-3:]))[:600],
            hint="Wheels must be for the Python of the sandbox: judge sandbox info names it.",
        )
    return answer, parts


# -- names ----------------------------------------------------------------------------------------


def _names_folder() -> Path:
    return cache_folder() / "servers" / "names"


def _note_name(name: str, python: str, digest: str) -> None:
    path = _names_folder() / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, dump_json({**_digests(name), python: digest}).encode())


def _digests(name: str) -> dict[str, str]:
    data = read_regular(_names_folder() / f"{name}.json", SandboxError, max_bytes=MIB)
    with contextlib.suppress(MalformedError):
        document = parse_json(data or b"{}")
        if isinstance(document, dict):
            return {str(python): str(digest) for python, digest in document.items()}
    return {}


def server_names() -> list[str]:
    """The names of the servers that were built."""
    with contextlib.suppress(OSError):
        return sorted(path.stem for path in _names_folder().glob("*.json"))
    return []


def find_server(name: str, sandbox: Sandbox) -> BuiltServer:
    """The server with this name that was built for the interpreter of a sandbox.

    Raises:
        SandboxError: the server was not built; the hint names the command.
    """
    built = _digests(name) if _NAME.fullmatch(name) else {}
    digest = built.get(sandbox.info.python)
    if digest is None or not is_complete(server_folder(digest)):
        names = ", ".join(server_names()) or "none"
        raise SandboxError(
            f"the server {name} was not built for Python {sandbox.info.python}, which "
            f"{sandbox.info.backend} has; built for: {', '.join(sorted(built))}"
            if built
            else f"there is no server {visible(name)!r:.80}; built: {names}",
            hint=f"run: judge sandbox build --mcp {visible(name)[:40]} --wheels FOLDER --entry "
            "MODULE:FUNCTION",
        )
    server = _read_built(name, digest)
    if not sandbox.has_root(server.root):
        raise SandboxError(
            f"the root of the server {name} is missing in this sandbox",
            hint=f"run: judge sandbox build --mcp {name} … --backend {sandbox.info.backend}",
        )
    return server


def _read_built(name: str, digest: str) -> BuiltServer:
    document = json.loads((server_folder(digest) / COMPLETE).read_text("utf-8"))
    return BuiltServer(
        name=name,
        digest=digest,
        argv=tuple(document["argv"]),
        packages={key: tuple(value) for key, value in document["packages"].items()},
        content=document["content"],
        environment=document.get("environment", {}),
    )
