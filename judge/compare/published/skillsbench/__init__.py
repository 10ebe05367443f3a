"""SkillsBench's own tests of seven workbook tasks, faults included.

Written from the behaviour of ``tasks/*/tests/test_outputs.py`` at
KaiserWhoLearns/skillsbench@037a854d, with the names of its tests. Nothing of the suite is run: each
test is a check of this package. Its faults have numbers, S1 to S13, in docs/checklists.md.
"""
