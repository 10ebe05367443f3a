"""Shows suspect golds to a person one by one, with evidence; takes decisions and corrections."""
