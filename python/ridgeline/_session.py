"""Single training steps, for own loops."""

from __future__ import annotations

import ctypes
import json
from typing import TYPE_CHECKING, Any, Dict, Iterable, Mapping, Optional, Tuple, Union

import numpy as np

from ._arrays import checked, checked_labels, fits, place, to_numpy
from ._library import Error, call, check, lib, request_text

if TYPE_CHECKING:
    from ._networks import Network

_INT32 = np.dtype(np.int32)


def epoch_order(count: int, seed: int = 0, epoch: int = 0) -> np.ndarray:
    """The order in which ``ridgeline train`` takes ``count`` samples in an epoch (from 0).

    >>> sorted(rl.epoch_order(5, seed=1).tolist())
    [0, 1, 2, 3, 4]
    """
    order = np.empty(count, np.int32)
    check(lib.rl_epoch_order(seed, epoch, order.ctypes.data, count))
    return order


class _Handle:
    """The library's session. It is freed with the last session or array over its memory that uses it."""

    def __init__(self, request: bytes):
        handle = ctypes.c_void_p()
        check(lib.rl_session_open(request, ctypes.byref(handle)))
        self.value = handle.value

    def __del__(self) -> None:
        if getattr(self, "value", None) is not None:
            lib.rl_session_close(self.value)  # refuses in a forked process, whose end frees all


class _Memory:
    """Elements of a session, for NumPy: an array over them keeps the session's memory."""

    def __init__(self, owner: _Handle, place: int, shape: Tuple[int, ...], dtype: np.dtype):
        self._owner = owner
        self.__array_interface__ = {"version": 3, "data": (place, False), "shape": shape, "typestr": dtype.str}


class Session:
    """A network with its memory and its plans: training steps, logits, weights.

    ``input="pixels"`` takes uint8 images, which are divided by 255 and normalised as ``normalize`` says;
    ``input="tensor"`` takes float32 images as they are; with ``precision="fp64"``, which the backend "reference"
    computes, images, logits and weights are float64. Other options are those of ``ridgeline train``: backend, device,
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
        self._owner: Optional[_Handle] = _Handle(request_text({**named, "batch": batch, **options}))
        about = json.loads(call("rl_session_describe", self._owner.value))
        self.batch: int = about["batch"]
        self.image: Tuple[int, int, int] = tuple(about["image"])
        self.classes: int = about["classes"]
        self.backend: str = about["backend"]
        self.device: str = about["device"]
        self._element = np.dtype(about["element"])
        self._dtype = self._element if about["input"] == "tensor" else np.dtype(np.uint8)
        self._tensors = {each["name"]: each for each in about["tensors"]}
        self._full = (self.batch, *self.image)

    def _open(self) -> _Handle:
        # A call holds it while it runs, so that another thread can close the session.
        owner = self._owner
        if owner is None:
            raise Error("the session is closed", "bad handle")
        return owner

    def step(self, images: Any, labels: Any, lr: Optional[float] = None) -> float:
        """One training step with a batch; gives its mean loss. ``lr`` replaces the session's learning rate."""
        owner = self._open()
        x = images if fits(images, self._dtype, self._full) else checked(images, "images", self._dtype, self._full)
        y = labels if fits(labels, _INT32, self._full[:1]) else checked_labels(labels, "labels", self.batch)
        if lr is not None and not lr >= 0:
            raise Error(f"learning rate {lr}: must be a finite number, not below 0")
        loss = ctypes.c_double()
        check(lib.rl_session_step(owner.value, place(x), x.nbytes, place(y), self.batch, -1.0 if lr is None else lr,
                                  ctypes.byref(loss)))
        return loss.value

    def logits(self, images: Any) -> np.ndarray:
        """The network's outputs in evaluation mode, for any number of images."""
        owner = self._open()
        x = checked(images, "images", self._dtype, (None, *self.image))
        result = np.empty((len(x), self.classes))
        for first in range(0, len(x), self.batch):
            rows, out = x[first:first + self.batch], result[first:first + self.batch]
            check(lib.rl_session_logits(owner.value, rows.ctypes.data, rows.nbytes, out.ctypes.data, out.size))
        return result.astype(self._element, copy=False)

    def _read(self, name: str, shape: Iterable[int], copy: bool) -> np.ndarray:
        owner, shape = self._open(), tuple(shape)
        if copy:
            array = np.empty(shape, self._element)
            check(lib.rl_session_read(owner.value, name.encode(), array.ctypes.data, array.nbytes))
            return array
        place, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(lib.rl_session_memory(owner.value, name.encode(), ctypes.byref(place), ctypes.byref(size)))
        if place.value is None:
            raise Error(f"{name}: lies on {self.device}, of which only copies can be had")
        assert size.value == self._element.itemsize * int(np.prod(shape))
        return np.asarray(_Memory(owner, place.value, shape, self._element))

    def weights(self, copy: bool = True) -> Dict[str, np.ndarray]:
        """Parameters and running statistics by PyTorch's names, as they are now.

        With ``copy=False`` the arrays lie over the session's own memory: steps change them, and what is written there
        is what the next step finds. ``torch.from_dlpack`` makes tensors of them. They live on when the session is closed.
        On a GPU there are only copies.

        >>> with rl.model("mlp").session(batch=2) as session:
        ...     session.weights(copy=False)["fc2.bias"][:] = 7
        ...     print(session.weights()["fc2.bias"][:3])
        [7. 7. 7.]
        """
        self._open()
        return {name: self._read(name, each["shape"], copy) for name, each in self._tensors.items()}

    def gradients(self, copy: bool = True) -> Dict[str, np.ndarray]:
        """Gradients of the last step, by the names of their parameters; needs ``keep_gradients=True``.

        ``copy=False`` is that of :meth:`weights`.
        """
        return {name: self._read(name + ".grad", each["shape"], copy) for name, each in self._tensors.items()
                if each["role"] == "parameter" and not each["frozen"]}

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Writes arrays or tensors of float32 over weights of these names, such as a PyTorch ``state_dict()``.

        Counters of batches are left out.
        """
        owner = self._open()
        for name, value in weights.items():
            if name.endswith("num_batches_tracked"):
                continue
            if name not in self._tensors:
                raise Error(f"the network has no weights '{name}'; it has {', '.join(self._tensors)}")
            array = checked(to_numpy(value, name), name, self._element, self._tensors[name]["shape"])
            check(lib.rl_session_write(owner.value, name.encode(), array.ctypes.data, array.nbytes))

    def plan(self) -> str:
        """The kernels of the training step."""
        return call("rl_session_plan", self._open().value)

    def close(self) -> None:
        """Gives the memory back, once no array lies over it; a closed session only raises errors."""
        self._owner = None

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
