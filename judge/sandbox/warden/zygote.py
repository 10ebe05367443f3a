"""The main program of a sandbox for solutions: imports once, then forks a warden for each case.

It never reads a request itself, because the forked warden does. So every case starts from the same
pristine memory, whatever ran before.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import os
import signal
import sys
from typing import Any

from judge.sandbox.warden import case, files, frames, groups, kernel, meters, world

_RUN, _WARM = b"R", b"W"
_FIRST_DESCRIPTOR = 100  # out of the way of those that solutions open
_USERS = 100  # cases take turns with so many user ids


def main(config: dict[str, Any]) -> None:
    """Serves the judge until it closes the connection.

    Args:
        config: ``mode`` (``namespaces``: a world for each case; ``users``: another user for each
            case), ``user`` (first id for solutions, or None to keep this one), ``nested`` (id in
            namespaces that are made here first; None if the sandbox already has namespaces),
            ``groups`` (controller -> folder, or None), ``spare_processes`` (number of the warden's
            processes that count with the solution's; None if they cannot be counted),
            ``bound_bytes`` (memory limit of the container; None if there is no container),
            ``warm`` (modules to import), ``open_folders`` (mounted folders that every user may
            write to).
    """
    requests = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    replies = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    nothing = os.open("/dev/null", os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    if config["nested"]:
        world.become_own_root(config["nested"])
    kernel.forbid_inspection()
    # the only signal that the interpreter handles; a solution with the same user could send it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Zygote(config, requests, replies).serve()


class _Zygote:
    def __init__(self, config: dict[str, Any], requests: int, replies: int) -> None:
        self._config = config
        self._requests = requests
        self._replies = replies
        self._cases = 0
        self._home: int | None = None
        if config["mode"] == "namespaces":
            self._home = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def serve(self) -> None:
        """Sends a hello message, then serves one request after the other."""
        for folder in self._config["open_folders"]:
            # some runtimes give a mount the mode of the folder that it covers
            os.chmod(folder, 0o1777)  # noqa: S103 - every case has another user
        self._warm(self._config["warm"])
        self._send({"hello": {"python": sys.version.split()[0], "pid": os.getpid()}})
        while True:
            kind = os.read(self._requests, 1)
            if kind == _WARM:
                header, _ = frames.unpack(frames.read_frame(self._requests))
                self._warm(header["modules"])
            elif kind == _RUN:
                self._fork_case()
            else:
                return

    def _warm(self, modules: list[str]) -> None:
        for name in modules:
            importlib.import_module(name)
        gc.collect()
        gc.freeze()  # the collector never visits warm objects again, so their pages stay shared

    def _fork_case(self) -> None:
        self._cases += 1
        user = self._config["user"]
        if user is not None and self._config["mode"] == "users":
            user += self._cases % _USERS
        if self._home is not None:
            kernel.unshare(kernel.CLONE_NEWPID)
        warden = os.fork()
        if warden == 0:
            code = 1
            try:
                _serve_case(self._config, user, self._requests, self._replies)
                code = 0
            finally:
                os._exit(code)
        if self._home is not None:
            kernel.set_namespace(self._home, kernel.CLONE_NEWPID)
        _, status = os.waitpid(warden, 0)
        if self._config["groups"]:
            groups.remove(self._config["groups"])
        if status != 0:
            code = os.waitstatus_to_exitcode(status)
            self._send({"failed": f"the warden of the case ended with {code}"})

    def _send(self, header: dict[str, Any]) -> None:
        frames.write_all(self._replies, frames.pack(header))


def _serve_case(config: dict[str, Any], user: int | None, requests: int, replies: int) -> None:
    """Reads one request, runs it, and sends the reply."""
    request, blobs = frames.unpack(frames.read_frame(requests))
    try:
        reply, parts = _run_case(config, user, request, blobs, requests)
    except (case.CaseError, OSError, ValueError, KeyError) as error:
        reply, parts = {"failed": f"{type(error).__name__}: {error}"}, []
    frames.write_all(replies, frames.pack(reply, parts))


def _run_case(
    config: dict[str, Any],
    user: int | None,
    request: dict[str, Any],
    blobs: list[bytes],
    hangup: int,
) -> tuple[dict[str, Any], list[bytes]]:
    limits = request["limits"]
    group: groups.CaseGroup | None = None
    if config["groups"]:
        group = groups.CaseGroup(config["groups"], limits["memory_bytes"], limits["processes"])
    container = groups.find_container_group(config["bound_bytes"]) if group is None else None
    own = _settle(config, request)
    with _As(user):
        _place_all(request, blobs)
    request["spare_processes"] = config["spare_processes"]
    meter = _choose_meter(group, container, own, limits["memory_bytes"])
    entrances = group.entrances if group is not None else []
    facts, out, err = case.run(request, blobs[0], meter, own, hangup, user, entrances)
    status, size = "missing", 0
    content: bytes | None = None
    with _As(user):
        if request["collect"]:
            status, size, content = files.collect(request["collect"], limits["output_bytes"])
        if config["mode"] == "users":
            for root in request["writable"]:
                files.clear(root)
    reply = {
        "facts": vars(facts),
        "stdout_bytes": out.total_bytes,
        "stderr_bytes": err.total_bytes,
        "output": {"status": status, "size": size},
    }
    return reply, [out.kept(), err.kept(), content or b""]


def _settle(config: dict[str, Any], request: dict[str, Any]) -> frozenset[int]:
    """Makes this process the case's warden; returns the ids of processes outside the case."""
    if config["mode"] == "users":
        kernel.adopt_orphans()
        return frozenset({1, os.getpid()})
    world.enter(request["disk_bytes"], request["inodes"])
    paths = [*request["files"], request["program_name"]]
    if request["collect"]:
        paths.append(request["collect"])
    for top in {path.split("/")[1] for path in paths}:
        _make_top_folder(f"/{top}")
    return frozenset({1})


def _place_all(request: dict[str, Any], blobs: list[bytes]) -> None:
    source, *contents = blobs
    for path, content in zip(request["files"], contents, strict=True):
        files.place(path, content)
    files.place(request["program_name"], source)
    files.make_folder(request["home"])
    if request["collect"]:
        files.make_folder(os.path.dirname(request["collect"]))


def _make_top_folder(path: str) -> None:
    try:
        os.mkdir(path)
    except FileExistsError:
        return
    os.chmod(path, 0o1777)  # noqa: S103 - only one case uses this world


def _choose_meter(
    group: groups.CaseGroup | None,
    container: meters.GroupFiles | None,
    own: frozenset[int],
    limit_bytes: int,
) -> meters.Meter:
    if group is not None:
        return group.meter()
    if container is not None:
        return meters.SharedGroupMeter(container)
    return meters.ProcessMeter(own, limit_bytes)


class _As:
    """Works on files as the solution's user, with no more rights than the solution."""

    def __init__(self, user: int | None) -> None:
        self._user = user

    def __enter__(self) -> None:
        if self._user is not None:
            os.setegid(self._user)
            os.seteuid(self._user)

    def __exit__(self, *_: object) -> None:
        if self._user is not None:
            os.seteuid(0)
            os.setegid(0)
