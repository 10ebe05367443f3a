"""The trusted programs that run *inside* a sandbox: standard library only.

``zygote`` is the main program of a sandbox for solutions, ``service`` that of a sandbox for one of
the judge's own programs. Their source is sent over standard input (see
:mod:`judge.sandbox.bundle`), so the image does not have to contain anything of the judge.

Nothing here trusts a solution: it runs as another user, or without any capability in its own
process namespace, and no descriptor of the protocol is open in it.
"""
