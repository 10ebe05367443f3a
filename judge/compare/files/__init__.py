"""Published metrics of OSWorld and Spider2-V over files other than workbooks."""
