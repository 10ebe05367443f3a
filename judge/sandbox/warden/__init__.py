"""The trusted programs that run *inside* a sandbox: standard library only.

``zygote`` is the main program of a place that runs solutions, ``service`` that of a place that
runs one of the judge's own programs. Their source text is sent over standard input (see
:mod:`judge.sandbox.bundle`), so the image need not contain anything of the judge.

Nothing here trusts what a solution does: it runs as another user, or without any capability and
in a process namespace of its own, and no descriptor of the protocol is open in it.
"""
