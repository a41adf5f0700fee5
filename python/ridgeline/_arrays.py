"""Arrays of others, checked and taken without a copy where their memory allows."""

from __future__ import annotations

import ctypes
from typing import Any, Optional, Sequence, Tuple

import numpy as np

from ._library import Error

_CPU = 1  # DLPack's number of the device
_FIRST_BYTE = ctypes.c_char.from_buffer


def to_numpy(value: Any, what: str) -> np.ndarray:
    """A NumPy array over the memory of a NumPy array, a PyTorch tensor on the CPU, or any DLPack tensor there."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__"):
        device, _ = value.__dlpack_device__()
        if int(device) != _CPU:
            raise Error(f"{what}: lies on {getattr(value, 'device', 'another device')}; copy it to the CPU first")
        if getattr(value, "requires_grad", False):
            value = value.detach()
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise Error(f"{what}: cannot be read as an array: {error}") from None
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise Error(f"{what}: is no array: {error}") from None


def place(array: np.ndarray) -> Any:
    """Where the elements of a contiguous array lie, as an argument of the library's functions."""
    try:
        return ctypes.byref(_FIRST_BYTE(array))  # six times as fast as NumPy's own ways to tell
    except TypeError:
        return array.ctypes.data  # of arrays that must not be written


def fits(value: Any, dtype: np.dtype, shape: Tuple[int, ...]) -> bool:
    """Whether it is an array as :func:`checked` wants it; small networks' steps take little longer than asking that."""
    return isinstance(value, np.ndarray) and value.dtype == dtype and value.shape == shape and value.flags.c_contiguous


def checked(value: Any, what: str, dtype: Any, shape: Sequence[Optional[int]]) -> np.ndarray:
    """The array, if it has this type and shape (None: any size) and its elements lie one after another.

    >>> checked(np.zeros((2, 3), np.float32), "x", np.float32, (None, 4))
    Traceback (most recent call last):
    ridgeline.Error: x: has shape (2, 3); (any, 4) is wanted
    """
    array = to_numpy(value, what)
    if array.dtype != dtype:
        raise Error(f"{what}: has type {array.dtype}; {np.dtype(dtype)} is wanted")
    if len(array.shape) != len(shape) or any(w is not None and w != n for n, w in zip(array.shape, shape)):
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise Error(f"{what}: has shape {tuple(array.shape)}; ({wanted}{',' if len(shape) == 1 else ''}) is wanted")
    if not array.flags.c_contiguous:
        raise Error(f"{what}: its elements do not lie one after another; numpy.ascontiguousarray makes such a copy")
    return array


def checked_labels(value: Any, what: str, count: int) -> np.ndarray:
    """Labels as int32; other whole numbers are converted."""
    array = to_numpy(value, what)
    if array.dtype != np.int32:
        if array.dtype.kind not in "iu":
            raise Error(f"{what}: has type {array.dtype}; whole numbers are wanted")
        if array.size and (array.max() > np.iinfo(np.int32).max or array.min() < 0):
            raise Error(f"{what}: numbers of classes are wanted, not {array.min()} to {array.max()}")
        array = array.astype(np.int32)
    return checked(array, what, np.int32, (count,))


def image_text(image: Any) -> Optional[str]:
    """64, (64, 64) or (3, 64, 64) as the options take it."""
    if image is None or isinstance(image, str):
        return image
    sizes: Tuple[Any, ...] = tuple(image) if isinstance(image, (tuple, list)) else (image,)
    return "x".join(str(int(size)) for size in sizes)
