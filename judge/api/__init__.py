"""The judge as a library: score runs, run one program, check a suite, ask a chat model.

The command line is a thin layer over this package. ``judge/api/__init__.pyi`` lists the names that
it uses from here, including names of lower layers. The modules behind these names are imported when
they are used, so that ``judge COMMAND --help`` loads none of them.
"""

from judge import attach_stub

_HOMES, __getattr__, __dir__ = attach_stub(__name__, __file__)
__all__ = list(_HOMES)
