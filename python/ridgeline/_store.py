"""Stores as data frames."""

from __future__ import annotations

import ctypes
import importlib
import os
from typing import Any, Dict, List, Mapping, Optional, Union

import numpy as np

from ._library import BAD_INPUT, KINDS, Column, Error, check, lib

FRAMES = ("pandas", "polars", "dict")
_INTEGER, _REAL = 0, 1


def to_frame(columns: Mapping[str, Any], kind: Optional[str] = None) -> Any:
    """Columns as a data frame of pandas or polars, whichever is installed, else as a dictionary.

    >>> rl._store.to_frame({"a": [1, 2]}, "dict")
    {'a': [1, 2]}
    """
    if kind is not None and kind not in FRAMES:
        raise Error(f"frames of kind '{kind}' are unknown; there are {', '.join(FRAMES)}")
    for name in (kind,) if kind else FRAMES:
        if name == "dict":
            break
        try:
            frames = importlib.import_module(name)
            # What is not known is null in polars; pandas has NaN for it. Columns may begin with whole numbers.
            options = {"nan_to_null": True, "strict": False} if name == "polars" else {}
            return frames.DataFrame(dict(columns), **options)
        except ImportError:
            if kind is not None:
                raise Error(f"{kind} is not installed") from None
    return dict(columns)


def _values(column: Column, rows: int) -> Any:
    """The column's elements: NumPy arrays of numbers, NaN where not known; lists of texts."""
    if rows == 0:
        return np.empty(0, np.int64 if column.type == _INTEGER else np.float64) if column.type <= _REAL else []
    if column.type == _INTEGER:
        return np.ctypeslib.as_array(ctypes.cast(column.values, ctypes.POINTER(ctypes.c_int64)), (rows,)).copy()
    if column.type == _REAL:
        return np.ctypeslib.as_array(ctypes.cast(column.values, ctypes.POINTER(ctypes.c_double)), (rows,)).copy()
    offsets = np.ctypeslib.as_array(ctypes.cast(column.offsets, ctypes.POINTER(ctypes.c_int64)), (rows + 1,)).tolist()
    data = ctypes.string_at(column.values, offsets[-1])
    return [data[begin:end].decode(errors="replace") for begin, end in zip(offsets, offsets[1:])]


class Store:
    """A file of results, as ``bench``, ``train`` and ``profile`` write it.

    Frames are pandas' or polars', whichever is installed, or with ``frames="dict"`` dictionaries of columns. ``runs``
    chooses what to read: a number, "last", the first letters of a uuid, or conditions such as
    "backend=native,batch=64"; nothing: all.

    >>> rl.Store("nowhere.db").runs()
    Traceback (most recent call last):
    ridgeline.Error: nowhere.db: the store does not exist...
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"] = "ridgeline.db", frames: Optional[str] = None):
        if frames is not None and frames not in FRAMES:
            raise Error(f"frames '{frames}': must be one of {', '.join(FRAMES)}")
        self.path, self._frames = os.fspath(path), frames
        self._closed = False

    def __repr__(self) -> str:
        return f"ridgeline.Store({self.path!r})"

    def columns(self, table: str, runs: Optional[Union[str, int]] = None) -> Dict[str, Any]:
        """A table as a dictionary of columns."""
        if self._closed:
            raise Error("the store is closed", KINDS[BAD_INPUT])
        handle = ctypes.c_void_p()
        wanted = b"" if runs is None else str(runs).encode()
        check(lib.rl_store_table(os.fsencode(self.path), table.encode(), wanted, ctypes.byref(handle)))
        try:
            rows, found = lib.rl_frame_rows(handle), {}
            for index in range(lib.rl_frame_columns(handle)):
                column = Column()
                check(lib.rl_frame_column(handle, index, ctypes.byref(column)))
                found[column.name.decode()] = _values(column, rows)
            return found
        finally:
            lib.rl_frame_close(handle)

    def _frame(self, table: str, runs: Optional[Union[str, int]]) -> Any:
        return to_frame(self.columns(table, runs), self._frames)

    def runs(self, runs: Optional[Union[str, int]] = None) -> Any:
        """One row for each run: what it was, who computed it, and its numbers."""
        return self._frame("runs", runs)

    def samples(self, runs: Optional[Union[str, int]] = None) -> Any:
        """One row for each iteration."""
        return self._frame("samples", runs)

    def epochs(self, runs: Optional[Union[str, int]] = None) -> Any:
        """One row for each epoch of trainings."""
        return self._frame("epochs", runs)

    def steps(self, runs: Optional[Union[str, int]] = None) -> Any:
        """One row for each step of a plan, with its time, work and bytes."""
        return self._frame("steps", runs)

    def readings(self, runs: Optional[Union[str, int]] = None) -> Any:
        """One row for each reading of a sensor."""
        return self._frame("readings", runs)

    def memory(self, runs: Optional[Union[str, int]] = None) -> Any:
        """Bytes by owner."""
        return self._frame("memory", runs)

    def findings(self, runs: Optional[Union[str, int]] = None) -> Any:
        """What readers of a run must know, with the evidence."""
        return self._frame("findings", runs)

    def close(self) -> None:
        """A closed store only raises errors. Between two calls no file is open anyway."""
        self._closed = True

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def store_path(store: Union[Store, str, "os.PathLike[str]", None]) -> Optional[str]:
    """The file of a store or its path."""
    if isinstance(store, Store):
        if store._closed:
            raise Error("the store is closed", KINDS[BAD_INPUT])
        return store.path
    return None if store is None else os.fspath(store)


def run_names(runs: Union[str, int, List[Union[str, int]], None]) -> Optional[List[str]]:
    """Names of runs as requests take them."""
    if runs is None:
        return None
    return [str(run) for run in (runs if isinstance(runs, (list, tuple)) else [runs])]
