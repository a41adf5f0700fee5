"""Networks: of the zoo, of ONNX files, of PyTorch."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import inspect
import io
import json
import os
import pathlib
import re
import warnings
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from ._arrays import image_text
from ._display import Document, Figure
from ._library import Error, call, check, lib, request_text
from ._session import Session

Image = Union[int, str, Sequence[int], None]


def models() -> Document:
    """The networks of the zoo.

    >>> [each["name"] for each in rl.models()["models"]][:2]
    ['mlp', 'mnist_cnn']
    """
    return Document(json.loads(call("rl_models")), main="models")


class _Held:
    """A network whose file is in memory, as long as somebody needs it."""

    def __init__(self, name: str, data: bytes):
        handle = ctypes.c_void_p()
        check(lib.rl_network_open(name.encode(), data, len(data), ctypes.byref(handle)))
        self._handle = handle
        self.model = lib.rl_network_model(handle).decode()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            lib.rl_network_close(self._handle)
            self._handle = None


class Network:
    """What to build: a model, its image size, its classes and its settings. Nothing is built yet.

    Made by :func:`model`, :func:`onnx` and :func:`from_torch`.
    """

    def __init__(self, name: str, image: Image = None, classes: Optional[int] = None,
                 settings: Optional[Mapping[str, Any]] = None, held: Optional[_Held] = None):
        self.name, self.image, self.classes = name, image_text(image), classes
        self.settings: Dict[str, Any] = dict(settings or {})
        self._held = held

    def __repr__(self) -> str:
        words = [repr(self.name)]
        if self.image is not None:
            words.append(f"image={self.image!r}")
        if self.classes is not None:
            words.append(f"classes={self.classes}")
        words += [f"{key}={value!r}" for key, value in self.settings.items()]
        return f"ridgeline.model({', '.join(words)})"

    def request(self) -> Dict[str, Any]:
        """The keys of a request that name this network."""
        settings = [f"{key}={_setting(value)}" for key, value in self.settings.items()]
        return {"model": self._held.model if self._held else self.name, "image": self.image,
                "classes": self.classes, "settings": settings}

    def describe(self, batch: Union[int, Sequence[int]] = 1, **options: Any) -> Document:
        """Work, bytes and memory of a training step, without running it.

        Options are those of ``ridgeline describe``: backend, device, precision, optimizer, momentum, recompute, ...

        >>> rl.model("mnist_cnn").describe(batch=[1, 64])["forward_macs"]
        240544
        """
        text = call("rl_describe", request_text({**self.request(), "batch": batch, **options}))
        return Document(json.loads(text), main="layers")

    def plan(self, device: str = "cpu", backend: Optional[str] = None, precision: str = "fp32", batch: int = 64,
             **options: Any) -> str:
        """The kernels of a training step with their buffers, as ``--print-plan`` shows them."""
        return call("rl_plan", request_text({**self.request(), "device": device, "backend": backend,
                                             "precision": precision, "batch": batch, **options}))

    def figure(self) -> Figure:
        """The network as boxes and arrows."""
        return Figure(id="network", title=self.name, svg=call("rl_network_figure", request_text(self.request())))

    def _repr_svg_(self) -> str:
        return self.figure().svg

    def session(self, batch: int = 64, **options: Any) -> Session:
        """Single training steps: see :class:`Session`."""
        return Session(self, batch=batch, **options)


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return ",".join(str(each) for each in value) if isinstance(value, (list, tuple)) else str(value)


def model(name: str, image: Image = None, classes: Optional[int] = None, **settings: Any) -> Network:
    """A network of :func:`models` by its name, with its settings as keywords.

    >>> rl.model("resnet18", image=64, classes=10)
    ridgeline.model('resnet18', image='64', classes=10)
    """
    return Network(name, image, classes, settings)


def onnx(source: Union[str, "os.PathLike[str]", bytes], image: Image = None, classes: Optional[int] = None,
         name: str = "network", **settings: Any) -> Network:
    """The network of an ONNX file: its path, or its bytes, which results then call ``name``."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Network(name, image, classes, settings, held=_Held(name, bytes(source)))
    path = pathlib.Path(source)
    if path.suffix != ".onnx":
        raise Error(f"{path}: the name of an ONNX file ends with .onnx")
    return Network(str(path), image, classes, settings)


def _training_options(torch: Any) -> List[Dict[str, Any]]:
    """Ways to export that keep batch norms and dropout as PyTorch trains them, the best first."""
    options: Dict[str, Any] = {"training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False
    return [{**options, "opset_version": opset} for opset in (17, 15)]


def from_torch(module: Any, example: Any, name: Optional[str] = None) -> Network:
    """The network of a PyTorch module, exported to ONNX in memory with its weights.

    ``example`` is a batch of images of at least two, (N, C, H, W). A copy of the module is exported. Weights keep
    PyTorch's names. From 2.0 on PyTorch's exporter needs the package ``onnx``.
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        raise Error(f"{type(module).__name__} is no torch.nn.Module")
    if not isinstance(example, torch.Tensor) or example.dim() != 4 or example.shape[0] < 2:
        raise Error("the example must be a tensor of two or more images: (N, C, H, W)")
    copied = copy.deepcopy(module).cpu().train()
    # Tracing in training mode updates running statistics before they are written: a hook puts them back. Through NumPy,
    # because the tracer would record what tensors do.
    buffers = [(each.detach().numpy(), each.detach().clone().numpy()) for each in copied.buffers()]

    def put_back(*_: Any) -> None:
        for now, before in buffers:
            now[...] = before

    copied.register_forward_hook(put_back)
    failure: Optional[Exception] = None
    for options in _training_options(torch):
        file = io.BytesIO()
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                torch.onnx.export(copied, (example.detach().cpu(),), file, input_names=["input"],
                                  output_names=["output"],
                                  dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}}, **options)
            break
        except (RuntimeError, ValueError) as error:
            failure = error
    else:
        raise Error(f"PyTorch cannot export the module: {str(failure).splitlines()[0]}") from failure
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name or type(module).__name__)
    return Network(plain, held=_Held(plain, file.getvalue()))
