"""Finding and lending control groups, on trees made of plain files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from judge.sandbox.backends import cgroups
from judge.sandbox.backends.cgroups import GroupTree, find_groups
from judge.sandbox.warden.meters import GroupFiles


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def mount_line(point: Path, kind: str, options: str, root: str = "/") -> str:
    return f"30 25 0:26 {root} {point} rw,relatime shared:9 - {kind} cgroup rw,{options}\n"


def version_1(tmp_path: Path) -> tuple[Path, Path]:
    mounts = "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
    for name in ("memory", "pids", "cpu,cpuacct"):
        (tmp_path / name / "own").mkdir(parents=True)
        mounts += mount_line(tmp_path / name, "cgroup", name)
    own = "9:name=systemd:/\n4:memory:/own\n3:pids:/own\n2:cpu,cpuacct:/own\n0::/\n"
    return write(tmp_path / "self", own), write(tmp_path / "mounts", mounts)


def test_version_1(tmp_path: Path) -> None:
    own, mounts = version_1(tmp_path)
    found = find_groups(own, mounts)
    assert found is not None
    assert found.version == 1
    assert found.homes == {
        "memory": tmp_path / "memory/own",
        "pids": tmp_path / "pids/own",
        "cpu": tmp_path / "cpu,cpuacct/own",
    }


def test_version_1_without_a_controller(tmp_path: Path) -> None:
    own, mounts = version_1(tmp_path)
    own.write_text("4:memory:/own\n0::/\n")
    assert find_groups(own, mounts) is None


def version_2(tmp_path: Path, path: str, controllers: dict[str, str]) -> tuple[Path, Path]:
    point = tmp_path / "cgroup"
    for folder, handed_on in controllers.items():
        write(point / folder / "cgroup.subtree_control", handed_on)
        write(point / folder / "cgroup.procs", "")
    own = write(tmp_path / "self", f"0::{path}\n")
    return own, write(tmp_path / "mounts", mount_line(point, "cgroup2", "nsdelegate"))


def test_version_2_uses_the_nearest_group_that_delegates_controllers(tmp_path: Path) -> None:
    own, mounts = version_2(
        tmp_path,
        "/user/app/run",
        {"": "memory pids cpu", "user": "memory pids cpu io", "user/app": "memory pids"},
    )
    # a plain file takes any text: make the group that refuses one that cannot be written
    (tmp_path / "cgroup/user/app/cgroup.subtree_control").unlink()
    (tmp_path / "cgroup/user/app/cgroup.subtree_control").mkdir()
    (tmp_path / "cgroup/user/app/run").mkdir()
    found = find_groups(own, mounts)
    assert found is not None
    assert (found.version, found.homes["memory"]) == (2, tmp_path / "cgroup/user")
    assert set(found.homes) == {"memory", "pids", "cpu"}


def test_version_2_without_delegated_controllers(tmp_path: Path) -> None:
    own, mounts = version_2(tmp_path, "/own", {})
    assert find_groups(own, mounts) is None


def test_no_groups_at_all(tmp_path: Path) -> None:
    assert find_groups(tmp_path / "none", tmp_path / "none") is None


def test_lend_and_remove_version_1(tmp_path: Path) -> None:
    own, mounts = version_1(tmp_path)
    tree = find_groups(own, mounts)
    assert tree is not None
    group = tree.lend()
    assert len(group.entrances) == 3
    assert all(Path(entrance).parent.is_dir() for entrance in group.entrances)
    (group.folders["memory"] / "case").mkdir()
    group.remove()
    assert not any(folder.exists() for folder in group.folders.values())
    group.remove()


def test_two_groups_have_two_names(tmp_path: Path) -> None:
    tree = GroupTree(dict.fromkeys(("memory", "pids", "cpu"), tmp_path), version=1)
    first, second = tree.lend(), tree.lend()
    assert first.folders["memory"] != second.folders["memory"]


def test_a_group_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    blocked = write(tmp_path / "blocked", "")
    homes = {"memory": tmp_path / "memory", "pids": blocked, "cpu": tmp_path / "cpu"}
    for name in ("memory", "cpu"):
        homes[name].mkdir()
    with pytest.raises(OSError, match="blocked"):
        GroupTree(homes, version=1).lend()
    assert list(homes["memory"].iterdir()) == list(homes["cpu"].iterdir()) == []


def test_reap_removes_only_what_dead_judges_left(tmp_path: Path) -> None:
    tree = GroupTree(dict.fromkeys(("memory", "pids", "cpu"), tmp_path), version=1)
    dead = _dead_process()
    for name in (f"judge-{dead}-1", f"judge-{os.getpid()}-1", "other", "judge-x-1"):
        (tmp_path / name / "warden").mkdir(parents=True)
    tree.reap()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {f"judge-{os.getpid()}-1", "other", "judge-x-1"}


def _dead_process() -> int:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


def test_bounds_are_written_to_the_files_of_either_version(tmp_path: Path) -> None:
    memory, pids = tmp_path / "memory", tmp_path / "pids"
    for path in (memory / "memory.max", memory / "memory.swap.max", pids / "pids.max"):
        write(path, "max")
    cgroups._bound({"memory": memory, "pids": pids, "cpu": pids}, 1000, 5)
    assert (memory / "memory.max").read_text() == "1000"
    assert (memory / "memory.swap.max").read_text() == "0"
    assert (pids / "pids.max").read_text() == "5"
    old = tmp_path / "old"
    write(old / "memory.limit_in_bytes", "-1")
    cgroups._bound({"memory": old, "pids": old, "cpu": old}, 1000, None)
    assert (old / "memory.limit_in_bytes").read_text() == "1000"


def test_counters_of_version_1(tmp_path: Path) -> None:
    write(tmp_path / "memory.usage_in_bytes", "5000\n")
    write(tmp_path / "memory.max_usage_in_bytes", "9000\n")
    write(tmp_path / "memory.stat", "cache 10\ntotal_inactive_file 1000\n")
    write(tmp_path / "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    write(tmp_path / "cpuacct.usage", "1500000000\n")
    files = GroupFiles(str(tmp_path), str(tmp_path))
    assert files.usage_bytes() == 4000
    assert files.highest_bytes() == 9000
    assert files.kills() == 3
    assert files.cpu_s() == 1.5


def test_counters_of_version_2(tmp_path: Path) -> None:
    write(tmp_path / "memory.current", "5000\n")
    write(tmp_path / "memory.stat", "anon 10\ninactive_file 1000\n")
    write(tmp_path / "memory.events", "low 0\noom 4\noom_kill 3\n")
    write(tmp_path / "cpu.stat", "usage_usec 1500000\nuser_usec 1\n")
    files = GroupFiles(str(tmp_path), str(tmp_path))
    assert files.usage_bytes() == 4000
    assert files.highest_bytes() is None  # memory.peak came with Linux 5.19
    write(tmp_path / "memory.peak", "9000\n")
    assert files.highest_bytes() == 9000
    assert files.kills() == 3
    assert files.cpu_s() == 1.5


@pytest.mark.parametrize("unified", [True, False])
def test_the_bound_of_a_group(tmp_path: Path, unified: bool) -> None:
    name = "memory.max" if unified else "memory.limit_in_bytes"
    if unified:
        (tmp_path / "memory.current").write_text("4096\n")
    files = GroupFiles(str(tmp_path), str(tmp_path))
    (tmp_path / name).write_text("268435456\n")
    assert files.bound_bytes() == 268435456
    (tmp_path / name).write_text("max\n")
    assert files.bound_bytes() is None
