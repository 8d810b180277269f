"""The report of a run: one HTML file that needs no network."""

from deliberation.report.page import write_report

__all__ = ["write_report"]
