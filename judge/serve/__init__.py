"""The online judge: submissions over HTTP, a fair queue, boards, disputes and rejudgings.

A layer above the library: :mod:`judge.api` does the judging, and no lower layer imports this
package. ``store`` has the database and the data folder, ``access`` decides who may see and do what,
``queue`` claims judgings and runs them, ``api`` and ``pages`` have a module for each family of
routes. The extra ``sheetjudge[serve]`` installs the third-party packages that it needs.
"""
