"""What the sandbox's image is made from: the Dockerfile and the pinned packages."""
