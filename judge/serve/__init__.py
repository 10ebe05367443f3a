"""The online judge: submissions over HTTP, a fair queue, boards, disputes and rejudgings.

A layer above the library: what judges is :mod:`judge.api`, and nothing below knows of this
package. ``store`` has the database and the data folder, ``access`` decides who may see and do what,
``queue`` claims judgings and has them done, ``api`` and ``pages`` have a module for each family of
routes.
Its packages come with the extra ``sheetjudge[serve]``.
"""
