"""``python -m judge`` is the command ``judge``."""

from judge.cli.main import main

if __name__ == "__main__":
    main()
