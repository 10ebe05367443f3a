"""The files of a results directory, as types: what their records hold.

Each of them is checked where it is read (:func:`judge.files.forms.checked`) and typed from there
on; fields that a directory may lack, because an earlier version of the judge wrote it or because
they do not apply, are not required. Whatever else a file holds is kept as it is.
"""
