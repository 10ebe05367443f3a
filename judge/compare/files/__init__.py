"""Published metrics of OSWorld and Spider2-V for files other than workbooks."""
