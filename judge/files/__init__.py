"""Reading and writing of files, in one place for everything that the judge keeps."""
