"""The annotator's page: a local web page on top of :mod:`judge.annotate`."""
