"""``python -m ridgeline`` and the command ``ridgeline``: the program that the package carries."""

import os
import sys

from ._library import program


def main() -> None:
    path = program()
    os.execv(path, ["ridgeline", *sys.argv[1:]])


if __name__ == "__main__":
    main()
