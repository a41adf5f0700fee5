"""The C interface (src/capi/ridgeline.h) through ctypes."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pathlib
import signal
import sys
import threading
from typing import Any, Callable, Iterator, Mapping, Optional

ABI = 2
BAD_INPUT, LACKS_MEMORY, BAD_HANDLE = 2, 3, 4
KINDS = {1: "failure", BAD_INPUT: "bad input", LACKS_MEMORY: "lacks memory", BAD_HANDLE: "bad handle"}


class Error(Exception):
    """What went wrong, in the words that the command prints.

    ``kind`` is "failure", "bad input", "lacks memory" or "bad handle".

    >>> rl.model("resnet19").describe()
    Traceback (most recent call last):
    ridgeline.Error: unknown model 'resnet19'...
    """

    def __init__(self, message: str, kind: str = "bad input"):
        super().__init__(message)
        self.kind = kind


Error.__module__ = "ridgeline"

_NOTE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
_PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p)
_GO_ON = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Listener(ctypes.Structure):
    _fields_ = [("context", ctypes.c_void_p), ("note", _NOTE), ("progress", _PROGRESS), ("epoch", _NOTE),
                ("go_on", _GO_ON)]


class Images(ctypes.Structure):
    _fields_ = [("pixels", ctypes.c_void_p), ("labels", ctypes.c_void_p), ("count", ctypes.c_int64)]


class Shape(ctypes.Structure):
    _fields_ = [("channels", ctypes.c_int64), ("height", ctypes.c_int64), ("width", ctypes.c_int64),
                ("classes", ctypes.c_int64)]


class Column(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("unit", ctypes.c_char_p), ("type", ctypes.c_int),
                ("values", ctypes.c_void_p), ("offsets", ctypes.c_void_p), ("valid", ctypes.c_void_p)]


_TEXT, _HANDLE, _SIZE, _LONG = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64
_OUT, _LISTENER = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(Listener)
# Arguments of every function that gives a code.
_FUNCTIONS = {
    "rl_models": [_OUT], "rl_device": [_OUT], "rl_studies": [_OUT],
    "rl_describe": [_TEXT, _OUT], "rl_plan": [_TEXT, _OUT], "rl_network_figure": [_TEXT, _OUT],
    "rl_compare": [_TEXT, _OUT], "rl_exhibits": [_TEXT, _OUT], "rl_picture": [_TEXT, _TEXT],
    "rl_bench": [_TEXT, _LISTENER, _OUT], "rl_profile": [_TEXT, _LISTENER, _OUT],
    "rl_roofline": [_TEXT, _LISTENER, _OUT], "rl_study": [_TEXT, _LISTENER, _OUT],
    "rl_report": [_TEXT, _LISTENER, _OUT],
    "rl_train": [_TEXT, ctypes.POINTER(Images), ctypes.POINTER(Images), ctypes.POINTER(Shape), _LISTENER, _OUT],
    "rl_network_open": [_TEXT, _TEXT, _SIZE, _OUT],
    "rl_epoch_order": [ctypes.c_uint64, _LONG, _HANDLE, _LONG],
    "rl_session_open": [_TEXT, _OUT], "rl_session_close": [_HANDLE],
    "rl_session_describe": [_HANDLE, _OUT], "rl_session_plan": [_HANDLE, _OUT],
    "rl_session_step": [_HANDLE, _HANDLE, _SIZE, _HANDLE, _LONG, ctypes.c_double, ctypes.POINTER(ctypes.c_double)],
    "rl_session_logits": [_HANDLE, _HANDLE, _SIZE, _HANDLE, _LONG],
    "rl_session_read": [_HANDLE, _TEXT, _HANDLE, _SIZE], "rl_session_write": [_HANDLE, _TEXT, _HANDLE, _SIZE],
    "rl_session_memory": [_HANDLE, _TEXT, _OUT, ctypes.POINTER(_SIZE)],
    "rl_store_table": [_TEXT, _TEXT, _TEXT, _OUT], "rl_frame_column": [_HANDLE, _LONG, ctypes.POINTER(Column)],
}


def _load() -> ctypes.CDLL:
    path = os.environ.get("RIDGELINE_LIBRARY") or str(pathlib.Path(__file__).parent / "libridgeline.so")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"cannot open Ridgeline's library: {error}") from error
    if library.rl_abi() != ABI:
        raise ImportError(f"{path} has version {library.rl_abi()} of the C interface; this module needs {ABI}")
    for name, arguments in _FUNCTIONS.items():
        getattr(library, name).argtypes = arguments
    for name in ("rl_version", "rl_last_error"):
        getattr(library, name).restype = ctypes.c_char_p
    library.rl_network_model.argtypes = [_HANDLE]
    library.rl_network_model.restype = ctypes.c_char_p
    for name in ("rl_free", "rl_network_close", "rl_frame_close"):
        getattr(library, name).argtypes = [_HANDLE]
        getattr(library, name).restype = None
    for name in ("rl_frame_rows", "rl_frame_columns"):
        getattr(library, name).argtypes = [_HANDLE]
        getattr(library, name).restype = ctypes.c_int64
    return library


lib = _load()


def version() -> str:
    """Version and commit of the library: "0.1.0 (a04368e)"."""
    return lib.rl_version().decode()


def program() -> str:
    """The path of the program ``ridgeline`` that belongs to this package."""
    path = os.environ.get("RIDGELINE_PROGRAM") or str(pathlib.Path(__file__).parent / "bin" / "ridgeline")
    if not os.access(path, os.X_OK):
        raise Error(f"the program {path} is not there; set RIDGELINE_PROGRAM to its path")
    return path


def check(code: int) -> None:
    """Raises what a function of the library complained about."""
    if code != 0:
        raise Error(lib.rl_last_error().decode(errors="replace"), KINDS.get(code, "failure"))


def take_text(pointer: ctypes.c_void_p) -> str:
    """The library's text, which is freed."""
    try:
        return ctypes.string_at(pointer.value or 0).decode()
    finally:
        lib.rl_free(pointer)


def request_text(request: Mapping[str, Any]) -> bytes:
    """A request without what was not given. Paths become texts."""
    given = {key: value for key, value in request.items() if value is not None}
    try:
        return json.dumps(given, default=_plain, allow_nan=False).encode()
    except ValueError as error:
        raise Error(f"a number of the request is not finite: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item"):  # numbers of NumPy
        return value.item()
    if isinstance(value, (range, set, frozenset)):
        return list(value)
    raise Error(f"{value!r} of type {type(value).__name__} is no value for an option")


def call(name: str, *arguments: Any) -> str:
    """Calls a function whose last argument gives a text."""
    result = ctypes.c_void_p()
    check(getattr(lib, name)(*arguments, ctypes.byref(result)))
    return take_text(result)


class _Interrupts:
    """While one lives in the main thread, the first Ctrl-C only raises a flag; the second is Python's."""

    def __init__(self) -> None:
        self.raised = False
        self._former: Any = None

    def __enter__(self) -> "_Interrupts":
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._former = signal.signal(signal.SIGINT, self._raise)
        return self

    def _raise(self, *_: Any) -> None:
        self.raised = True
        signal.signal(signal.SIGINT, self._former)

    def __exit__(self, *_: Any) -> None:
        if self._former is not None:
            signal.signal(signal.SIGINT, self._former)


class _Bar:
    """Progress by tqdm, in terminals and notebooks; without tqdm there is none."""

    def __init__(self, wanted: Optional[bool]):
        self._bar: Any = None
        self._make: Optional[Callable[..., Any]] = None
        if wanted is False or (wanted is None and not (sys.stderr.isatty() or "ipykernel" in sys.modules)):
            return
        with contextlib.suppress(ImportError):
            from tqdm.auto import tqdm
            self._make = tqdm

    def show(self, done: int, total: int, what: str) -> None:
        if self._make is None:
            return
        if self._bar is None:
            self._bar = self._make(total=total, leave=False)
        self._bar.total = total
        self._bar.set_description(what, refresh=False)
        self._bar.update(done - self._bar.n)

    def tell(self, line: str) -> None:
        """A line that leaves the bar whole."""
        if self._bar is None:
            print(line, file=sys.stderr)
        else:
            self._bar.write(line, file=sys.stderr)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


@contextlib.contextmanager
def listening(progress: Optional[bool] = None, on_epoch: Optional[Callable[[dict], Any]] = None) -> Iterator[Listener]:
    """The functions that a long call asks and tells. What one of them raises ends the call, and is raised then.

    ``on_epoch`` ends a training by giving False.
    """
    bar, raised, stopped = _Bar(progress), [], [False]
    with _Interrupts() as interrupts:

        def guarded(body: Callable[..., None]) -> Callable[..., None]:
            def run(*arguments: Any) -> None:
                try:
                    body(*arguments)
                except BaseException as error:  # pylint: disable=broad-except
                    raised.append(error)
            return run

        @guarded
        def note(_: Any, line: bytes) -> None:
            bar.tell(line.decode(errors="replace"))

        @guarded
        def show(_: Any, done: int, total: int, what: bytes) -> None:
            bar.show(done, total, what.decode(errors="replace"))

        @guarded
        def epoch(_: Any, text: bytes) -> None:
            if on_epoch is not None and on_epoch(json.loads(text)) is False:
                stopped[0] = True

        def go_on(_: Any) -> int:
            return 0 if interrupts.raised or raised or stopped[0] else 1

        functions = (_NOTE(note), _PROGRESS(show), _NOTE(epoch), _GO_ON(go_on))
        try:
            yield Listener(None, *functions)
        finally:
            bar.close()
            if raised:
                raise raised[0]
