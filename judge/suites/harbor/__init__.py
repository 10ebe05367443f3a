"""Jobs folders of Harbor, in which agents left their files; Harbor itself is not needed."""
