"""Runs the examples in the package's docstrings and in docs/python.md."""

import doctest
import importlib
import os
import pathlib
import pkgutil
import sys
import tempfile

from support import np

import ridgeline as rl

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def main():
    names = {"rl": rl, "np": np}
    guide = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
    failed = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for module in pkgutil.iter_modules(rl.__path__):
            if module.name.startswith("__"):
                continue
            found = doctest.testmod(importlib.import_module(f"ridgeline.{module.name}"), extraglobs=names,
                                    optionflags=OPTIONS)
            failed, tried = failed + found.failed, tried + found.attempted
        for found in (doctest.testmod(rl, extraglobs=names, optionflags=OPTIONS),
                      doctest.testfile(str(guide), module_relative=False, globs=dict(names), optionflags=OPTIONS)):
            failed, tried = failed + found.failed, tried + found.attempted
        os.chdir("/")
    print(f"{tried} examples, {failed} failed")
    return 1 if failed or tried < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
