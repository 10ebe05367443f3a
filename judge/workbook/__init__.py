"""Reading workbooks, any of which may be a hostile file."""
