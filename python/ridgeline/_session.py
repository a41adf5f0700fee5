"""Single training steps, for own loops."""

from __future__ import annotations

import contextlib
import ctypes
import json
from typing import TYPE_CHECKING, Any, Dict, Iterable, Mapping, Optional, Tuple, Union

import numpy as np

from ._arrays import checked, checked_labels, to_numpy
from ._library import Error, call, check, lib, request_text

if TYPE_CHECKING:
    from ._networks import Network


def epoch_order(count: int, seed: int = 0, epoch: int = 0) -> np.ndarray:
    """The order in which ``ridgeline train`` takes ``count`` samples in an epoch (from 0).

    >>> sorted(rl.epoch_order(5, seed=1).tolist())
    [0, 1, 2, 3, 4]
    """
    order = np.empty(count, np.int32)
    check(lib.rl_epoch_order(seed, epoch, order.ctypes.data, count))
    return order


class Session:
    """A network with its memory and its plans: training steps, logits, weights.

    ``input="pixels"`` takes uint8 images, which are divided by 255 and normalised as ``normalize`` says;
    ``input="tensor"`` takes float32 images as they are. Other options are those of ``ridgeline train``: backend, device,
    precision, optimizer, lr, momentum, weight_decay, seed, threads, freeze, weights (a file), ... With
    ``keep_gradients=True`` gradients can be read after a step.

    A session serves one thread at a time, and not a forked process.

    >>> session = rl.model("mlp").session(batch=2, lr=0.1)
    >>> session.weights()["fc2.bias"].shape
    (10,)
    >>> session.close()
    >>> session.weights()
    Traceback (most recent call last):
    ridgeline.Error: the session is closed
    """

    def __init__(self, network: Union["Network", str], batch: int = 64, **options: Any):
        named = {"model": network} if isinstance(network, str) else network.request()
        handle = ctypes.c_void_p()
        check(lib.rl_session_open(request_text({**named, "batch": batch, **options}), ctypes.byref(handle)))
        self._handle: Optional[int] = handle.value
        about = json.loads(call("rl_session_describe", self._handle))
        self.batch: int = about["batch"]
        self.image: Tuple[int, int, int] = tuple(about["image"])
        self.classes: int = about["classes"]
        self.backend: str = about["backend"]
        self._dtype = np.dtype(np.float32 if about["input"] == "tensor" else np.uint8)
        self._tensors = {each["name"]: each for each in about["tensors"]}
        self._full = (self.batch, *self.image)

    def _open(self) -> int:
        if self._handle is None:
            raise Error("the session is closed", "bad handle")
        return self._handle

    def step(self, images: Any, labels: Any, lr: Optional[float] = None) -> float:
        """One training step with a batch; gives its mean loss. ``lr`` replaces the session's learning rate."""
        handle = self._open()
        x = checked(images, "images", self._dtype, self._full)
        y = checked_labels(labels, "labels", self.batch)
        if lr is not None and not lr >= 0:
            raise Error(f"learning rate {lr}: must be a finite number, not below 0")
        loss = ctypes.c_double()
        check(lib.rl_session_step(handle, x.__array_interface__["data"][0], x.nbytes,
                                  y.__array_interface__["data"][0], self.batch, -1.0 if lr is None else lr,
                                  ctypes.byref(loss)))
        return loss.value

    def logits(self, images: Any) -> np.ndarray:
        """The network's outputs in evaluation mode, for any number of images."""
        handle = self._open()
        x = checked(images, "images", self._dtype, (None, *self.image))
        result = np.empty((len(x), self.classes), np.float32)
        for first in range(0, len(x), self.batch):
            rows, out = x[first:first + self.batch], result[first:first + self.batch]
            check(lib.rl_session_logits(handle, rows.ctypes.data, rows.nbytes, out.ctypes.data, out.size))
        return result

    def _read(self, name: str, shape: Iterable[int]) -> np.ndarray:
        array = np.empty(tuple(shape), np.float32)
        check(lib.rl_session_read(self._open(), name.encode(), array.ctypes.data, array.size))
        return array

    def weights(self) -> Dict[str, np.ndarray]:
        """Parameters and running statistics by PyTorch's names, as they are now; copies."""
        self._open()
        return {name: self._read(name, each["shape"]) for name, each in self._tensors.items()}

    def gradients(self) -> Dict[str, np.ndarray]:
        """Gradients of the last step, by the names of their parameters; needs ``keep_gradients=True``."""
        return {name: self._read(name + ".grad", each["shape"]) for name, each in self._tensors.items()
                if each["role"] == "parameter" and not each["frozen"]}

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Writes float32 arrays or tensors over weights of these names, such as a PyTorch ``state_dict()``.

        Counters of batches are left out.
        """
        handle = self._open()
        for name, value in weights.items():
            if name.endswith("num_batches_tracked"):
                continue
            if name not in self._tensors:
                raise Error(f"the network has no weights '{name}'; it has {', '.join(self._tensors)}")
            array = checked(to_numpy(value, name), name, np.float32, self._tensors[name]["shape"])
            check(lib.rl_session_write(handle, name.encode(), array.ctypes.data, array.size))

    def plan(self) -> str:
        """The kernels of the training step."""
        return call("rl_session_plan", self._open())

    def close(self) -> None:
        """Gives the memory back; a closed session only raises errors."""
        handle = getattr(self, "_handle", None)
        if handle is not None:
            check(lib.rl_session_close(handle))
            self._handle = None

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Error):  # of a forked process
            self.close()
