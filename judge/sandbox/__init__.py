"""Runs untrusted programs: the contract, the backends, and the programs that run inside."""

from judge.sandbox.contract import BackendFinding
from judge.sandbox.select import check_sandbox_kind, open_sandbox, probe_sandboxes

__all__ = ["BackendFinding", "check_sandbox_kind", "open_sandbox", "probe_sandboxes"]
