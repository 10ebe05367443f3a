"""Rejudging: submissions judged again as one set, which is inspected, then applied or cancelled."""
