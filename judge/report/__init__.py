"""Reports: the contents of a results directory, for machines and for people."""
