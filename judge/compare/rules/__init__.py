"""Rule lists over whole workbooks, as the evaluators of Spider2-V and OSWorld publish them."""
