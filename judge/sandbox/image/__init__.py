"""Sources of the sandbox's image: the Dockerfile and the pinned packages."""
