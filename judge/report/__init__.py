"""Reports: what a results directory says, for machines and for people."""
