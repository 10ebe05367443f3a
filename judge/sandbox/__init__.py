"""Running programs that nobody has read: the contract, two backends, and what runs inside."""

from judge.sandbox.select import Finding, open_sandbox, probe_sandboxes

__all__ = ["Finding", "open_sandbox", "probe_sandboxes"]
