"""Tasks, submissions, verdicts and scores: the nouns, without input or output."""
