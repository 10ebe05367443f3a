"""Why no Docker daemon could be reached, and what helps: pure."""

from __future__ import annotations

from collections.abc import Iterator

_OTHERWISE = "or use --sandbox bubblewrap"
_FORMS = "write unix:///var/run/docker.sock or tcp://HOST:PORT, or unset it"


def explain_unreachable(
    error: BaseException, *, host: str | None, installed: bool
) -> tuple[str, str]:
    """What happened on the way to the daemon, and what to do about it.

    Args:
        error: what the client raised, with its causes.
        host: value of ``DOCKER_HOST``; None or empty if it is not set.
        installed: whether a daemon's program is on this machine.

    Returns:
        A message and a hint, each in one line.
    """
    reason = next((cause for cause in _causes(error) if isinstance(cause, OSError)), None)
    where = f" at {host} (DOCKER_HOST)" if host else ""
    if reason is None or not _is_of_the_system(reason):
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        if host:
            return (
                f"DOCKER_HOST is {host!r}, which cannot be used: {said}",
                f"{_FORMS}, {_OTHERWISE}",
            )
        return f"no Docker daemon answers: {said}", f"start the daemon, {_OTHERWISE}"
    message = f"no Docker daemon answers{where}: {reason.strerror or reason}"
    if isinstance(reason, PermissionError):
        hint = (
            "give this user access to the daemon's socket: usermod -aG docker USER (as root), "
            "then log in again"
        )
    elif host and not host.startswith("unix://"):
        hint = f"check that the host is up and listens there; {_FORMS}"
    elif host:
        hint = f"start the daemon that listens there; {_FORMS}"
    elif installed:
        hint = "start the daemon: systemctl start docker (as root)"
    else:
        hint = "apt-get install docker.io (as root)"
    return message, f"{hint}; {_OTHERWISE}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The innermost first."""
    chain: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in chain:
        chain.append(each)
        each = each.__cause__ or each.__context__
    return reversed(chain)


def _is_of_the_system(error: OSError) -> bool:
    """Whether it came from the kernel or the resolver (the client's own errors are OSError too)."""
    return error.errno is not None
