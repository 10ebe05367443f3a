"""The contents of the sample of questions with typed answers."""
