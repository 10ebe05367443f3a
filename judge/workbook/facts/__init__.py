"""Facts about a package: charts, pivot tables, filters, views and rules, as the file has them.

A workbook holds much more than the values of its cells.
:class:`judge.workbook.facts.book.BookFacts` reads it part by part, each when it is first needed,
within the limits of the workbook.
"""
