"""The laboratory: bench, compare, profile, roofline, train, study, report."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any, Callable, List, Optional, Sequence, Union

import numpy as np

from ._arrays import checked, checked_labels
from ._display import Document, Exhibits, Figure, Table
from ._library import Error, Images, Shape, call, listening, program, request_text
from ._networks import Network
from ._store import Store, run_names, store_path

StoreLike = Union[Store, str, "os.PathLike[str]", None]
Model = Union[Network, str]


def device() -> str:
    """The first GPU that can be used here, "cuda:0", else "cpu", with one line on standard error that says why.

    >>> rl.device() in ("cuda:0", "cpu")
    True
    """
    found = json.loads(call("rl_device"))
    if found["device"] == "cpu":
        print(f"ridgeline: using the CPU: {found['reason']}", file=sys.stderr)
    return found["device"]


def _request(net: Union[Model, Sequence[Model]]) -> dict:
    """The keys that name one network or several of the same image size, classes and settings."""
    nets = list(net) if isinstance(net, (list, tuple)) else [net]
    named = [each.request() if isinstance(each, Network) else {"model": each} for each in nets]
    models = [each.pop("model") for each in named]
    if any(each != named[0] for each in named):
        raise Error("networks of different image sizes, classes or settings need calls of their own")
    return {**named[0], "model": models[0] if len(models) == 1 else models}


_BENCH_COLUMNS = ("model", "image", "batch", "precision", "backend", "device", "median_ms", "ci_low_ms", "ci_high_ms",
                  "samples_per_second", "peak_memory_bytes")


def bench(net: Union[Model, Sequence[Model]], batch: Union[int, str, Sequence[Any]] = 64,
          backend: Union[str, Sequence[str], None] = None, *, store: StoreLike = None,
          progress: Optional[bool] = None, **options: Any) -> Document:
    """Measures training steps over networks, backends, batches and so on, all taking turns.

    Lists are axes, as in ``ridgeline bench``, whose other options are keywords: device, precision, image, optimizer,
    data, inference, warmup, iterations, precision_percent (the wanted width of the interval), max_seconds, threads,
    per_step, label, ... Nothing is stored unless ``store`` is given. Ctrl-C gives what was measured so far.

    >>> found = rl.bench("mlp", batch=[8, 16], warmup=1, iterations=3, telemetry=0)
    >>> [row["batch"] for row in found.rows]
    [8, 16]
    """
    request = {**_request(net), "batch": batch, "backend": backend, "store": store_path(store), **options}
    with listening(progress) as listener:
        return Document(json.loads(call("rl_bench", request_text(request), ctypes.byref(listener))), main="results",
                        shown=_BENCH_COLUMNS)


def profile(net: Model, batch: int = 64, backend: Optional[str] = None, *, by: str = "op", store: StoreLike = None,
            progress: Optional[bool] = None, **options: Any) -> Document:
    """Where the time of a training step goes: rows by "op", "layer", "phase", "kernel" or "step".

    Other options are those of ``ridgeline profile``: steps, top, trace (a file), no_roof, counters, ...
    """
    request = {**_request(net), "batch": batch, "backend": backend, "by": by, "store": store_path(store), **options}
    with listening(progress) as listener:
        return Document(json.loads(call("rl_profile", request_text(request), ctypes.byref(listener))), main="table")


def compare(a: Union[str, int], b: Union[str, int], store: StoreLike = "ridgeline.db", *, margin: float = 0.02,
            alpha: float = 0.01, force: bool = False) -> Document:
    """Is run B of a store faster than run A, and why: "verdict", "ratio", "ci_low", "ci_high", ..."""
    request = {"a": str(a), "b": str(b), "store": store_path(store), "margin": margin, "alpha": alpha, "force": force}
    return Document(json.loads(call("rl_compare", request_text(request))))


class Roofline(Document):
    """How close runs come to the hardware's limits; in a notebook its picture."""

    def __init__(self, contents: dict, store: str, by: str):
        super().__init__(contents)
        self._store, self._by = store, by

    @property
    def rows(self) -> List[dict]:
        """All points."""
        return [{"run": run["run"], **point} for group in self["groups"] for run in group["runs"]
                for point in run["points"]]

    @property
    def figures(self) -> List[Figure]:
        """One for each machine, device and precision."""
        name = "roofline" if self._by == "network" else "roofline_layers"
        runs = [run["run"] for group in self["groups"] for run in group["runs"]]
        return exhibits(self._store, [name], runs=runs).figures

    def _repr_html_(self) -> str:
        return "\n".join(figure.svg for figure in self.figures)


def roofline(store: StoreLike = "ridgeline.db", runs: Union[str, int, List[Union[str, int]], None] = None, *,
             by: str = "network", top: Optional[int] = None, progress: Optional[bool] = None) -> Roofline:
    """Points and roofs of stored runs, by "network", "layer", "op" or "step".

    Ceilings that the store lacks are measured once on this machine. Without ``runs``: those of the last bench call.
    """
    path = store_path(store) or "ridgeline.db"
    request = {"store": path, "runs": run_names(runs), "by": by, "top": top}
    with listening(progress) as listener:
        return Roofline(json.loads(call("rl_roofline", request_text(request), ctypes.byref(listener))), path, by)


def _dataset(images: Any, labels: Any, what: str, shape: Sequence[Optional[int]]) -> tuple:
    """Arrays that the library can read, which must live as long as its call."""
    x = checked(images, f"{what} images", np.uint8, shape)
    return x, checked_labels(labels, f"{what} labels", len(x))


def _as_images(data: Optional[tuple]) -> Any:
    if data is None:
        return None
    x, y = data
    return ctypes.byref(Images(x.ctypes.data, y.ctypes.data, len(x)))


def train(net: Model, images: Any = None, labels: Any = None, *, test: Optional[tuple] = None,
          data: Union[str, "os.PathLike[str]", None] = None, on_epoch: Optional[Callable[[dict], Any]] = None,
          store: StoreLike = None, progress: Optional[bool] = None, **options: Any) -> Document:
    """Trains a network and evaluates it.

    On arrays: uint8 ``images`` (N, C, H, W) and whole numbers ``labels`` (N), tested on ``test=(images, labels)`` or on
    a tenth that is held out. Or on ``data``: a dataset of ``ridgeline data list``, a folder of images, a file. Other
    options are those of ``ridgeline train``: epochs, batch, optimizer, lr, schedule, seed, checkpoint (a folder), ...

    ``on_epoch`` gets each epoch as a dictionary; giving False ends the training. Ctrl-C ends it too, at the next step:
    the result then has what was reached, and ``result["interrupted"]`` is true.

    >>> pixels = np.zeros((64, 1, 28, 28), np.uint8)
    >>> result = rl.train("mlp", pixels, np.arange(64) % 10, epochs=1, batch=16)
    >>> len(result["epochs"]), result["interrupted"]
    (1, False)
    """
    request = {**_request(net), "store": store_path(store), **options}
    if (images is None) == (data is None):
        raise Error("train takes either images and labels, or data")
    tested = trained = shape = None
    if images is not None:
        classes, wanted = request.pop("classes", None), request.pop("image", None)
        trained = _dataset(images, labels, "training", (None, None, None, None))
        sizes = trained[0].shape[1:]
        if wanted is not None and _full(wanted, sizes[0]) != sizes:
            raise Error(f"images of {'x'.join(map(str, sizes))}: the network was made for {wanted}")
        tested = None if test is None else _dataset(test[0], test[1], "test", (None, *sizes))
        highest = max(int(part[1].max(initial=0)) for part in (trained, tested) if part is not None)
        shape = Shape(*sizes, classes or max(highest + 1, 2))
    else:
        if labels is not None or test is not None:
            raise Error("labels and test belong to images; data has its own")
        request["data"] = os.fspath(data)  # type: ignore[arg-type]
    with listening(progress, on_epoch) as listener:
        text = call("rl_train", request_text(request), _as_images(trained), _as_images(tested),
                    None if shape is None else ctypes.byref(shape), ctypes.byref(listener))
    return Document(json.loads(text), main="epochs")


def _full(image: str, channels: int) -> tuple:
    sizes = [int(size) for size in image.split("x")]
    sizes = sizes * 2 if len(sizes) == 1 else sizes
    return tuple(sizes) if len(sizes) == 3 else (channels, *sizes)


def studies() -> Document:
    """The built-in studies.

    >>> "quick" in [each["name"] for each in rl.studies().rows]
    True
    """
    return Document(json.loads(call("rl_studies")), main="studies")


def study(name: Union[str, "os.PathLike[str]"], store: StoreLike = "ridgeline.db", *, dry_run: bool = False,
          progress: Optional[bool] = None, **options: Any) -> Document:
    """Runs an experiment: a built-in study or a study file. The same call continues an interrupted one.

    Options: scale ("small" or "full"), only (parts), data, threads, restart, env_label.

    >>> rl.study("quick", dry_run=True)["study"]
    'quick'
    """
    request = {"study": os.fspath(name), "store": store_path(store), "dry_run": dry_run, **options}
    if not dry_run:
        request["program"] = program()
    with listening(progress) as listener:
        return Document(json.loads(call("rl_study", request_text(request), ctypes.byref(listener))), main="items",
                        shown=("key", "title", "status", "reason", "estimated_seconds", "seconds"))


def report(store: StoreLike = "ridgeline.db", out: Union[str, "os.PathLike[str]"] = "report", *,
           progress: Optional[bool] = None, **options: Any) -> Document:
    """Writes a web page, tables and figures of a store into the folder ``out``.

    Options: title, studies (names), formats (of html, markdown, latex, csv, svg, png, pdf).
    """
    request = {"store": store_path(store), "out": os.fspath(out), **options}
    with listening(progress) as listener:
        return Document(json.loads(call("rl_report", request_text(request), ctypes.byref(listener))), main="files")


def exhibits(store: StoreLike = "ridgeline.db", names: Union[str, Sequence[str], None] = None, *,
             runs: Union[str, int, List[Union[str, int]], None] = None) -> Exhibits:
    """Tables and figures of a store, which show themselves in notebooks.

    ``names`` are those that a study file can ask for, such as "throughput", "roofline", "memory"; without them: all of
    the report.
    """
    request = {"store": store_path(store), "names": names, "runs": run_names(runs)}
    found = json.loads(call("rl_exhibits", request_text(request)))
    return Exhibits([*(Table(**each) for each in found["tables"]), *(Figure(**each) for each in found["figures"])])
