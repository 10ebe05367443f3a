"""Types for the records in the files of a results directory.

Each record is checked when it is read (:func:`judge.files.forms.checked`) and typed from there on.
Fields that may be missing, because an earlier version of the judge wrote the file or because they
do not apply, are not required. Unknown fields are kept unchanged.
"""
