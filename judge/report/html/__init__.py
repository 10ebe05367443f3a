"""Reports as HTML: one file that opens from disk, and the pages of ``judge view``."""

from judge.report.html.render import render_report, report_html

__all__ = ["render_report", "report_html"]
