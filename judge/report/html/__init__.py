"""Reports as HTML: one file that opens from disk, and the pages of ``judge view``."""

from judge.report.html.render import render_report, render_run

__all__ = ["render_report", "render_run"]
