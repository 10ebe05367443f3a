"""The trusted programs that run *inside* a sandbox: standard library only.

``zygote`` is the main program of a place that runs solutions, ``service`` that of a place that
runs one of our own programs. Their text is sent in over standard input (see
:mod:`judge.sandbox.bundle`), so nothing of the judge has to be in the image.

Nothing here trusts what a solution does: it runs as another user, or without any capability and
in a process namespace of its own, and no descriptor of the protocol is open in it.
"""
