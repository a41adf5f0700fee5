# ---- Peers by name -----------------------------------------------------------------------------------------------------

CLASSES = {"torch": TorchPeer, "numpy": ArrayPeer, "cupy": ArrayPeer, "numba": NumbaPeer, "tensorflow": TensorFlowPeer}


def parse_peer(text):
    name, options = text.split("+")[0], text.split("+")[1:]
    if name not in PEERS:
        raise Unavailable("unknown peer '{}'; known: {}".format(name, ", ".join(PEERS)))
    for option in options:
        if option not in PEERS[name]:
            known = "options: " + ", ".join(PEERS[name]) if PEERS[name] else "it has none"
            raise Unavailable("{} has no option '{}'; {}".format(name, option, known))
    return name, [option for option in PEERS[name] if option in options and option != "eager"]


def limit_threads(threads):
    """Numeric libraries read these when they are loaded."""
    if threads > 0:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
                     "VECLIB_MAXIMUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
            os.environ[name] = str(threads)


def modules_of(peer, options):
    return MODULES[peer.split("-")[0]] + (("torchvision",) if "torchvision" in options else ())


def missing_module(peer, options=()):
    """Nothing, or what is not installed. Loads nothing, so it is quick."""
    for module in modules_of(peer, options):
        if importlib.util.find_spec(module) is None:
            return "no module {}".format(module)
    return None


def installed_version(peer):
    """The version of a peer's framework, without loading it; None where it is unknown."""
    import importlib.metadata
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(MODULES[peer.split("-")[0]][0])
    return None


def availability(peer, options, versions):
    """Nothing, or why a peer cannot run. Adds what it loads to `versions`."""
    reason = missing_module(peer, options)
    if reason is not None:
        return reason
    for module in modules_of(peer, options):
        try:
            loaded = importlib.import_module(module)
        except Exception as error:  # broken installations fail in many ways
            return "import {}: {}: {}".format(module, type(error).__name__, error)
        versions[module] = str(getattr(loaded, "__version__", "unknown"))
    if peer.startswith("torch"):
        import torch
        if peer == "torch-cuda":
            if not torch.cuda.is_available():
                return "PyTorch {} finds no CUDA device".format(torch.__version__)
            versions["cuda"], versions["cudnn"] = str(torch.version.cuda), str(torch.backends.cudnn.version())
        if peer == "torch-mps" and not (hasattr(torch.backends, "mps") and torch.backends.mps.is_available()):
            return "PyTorch {} finds no MPS device (Apple's GPUs)".format(torch.__version__)
    if peer == "cupy":
        try:
            import cupy
            cupy.cuda.runtime.getDeviceCount()
        except Exception as error:
            return "CuPy finds no CUDA device: {}".format(error)
    if peer == "numba-cuda":
        from numba import cuda
        if not cuda.is_available():
            return "Numba finds no CUDA device"
    return None


class Arrays:
    """Weights (nothing: the framework's own) and batches of (images, labels), each contiguous."""

    def __init__(self, weights, images, labels, work):
        import numpy as np
        self.weights = weights
        expected = (work.batch,) + work.image
        count = len(images) // work.batch
        if count < 1 or images.shape[1:] != work.image or images.dtype != np.uint8 or len(labels) != len(images):
            raise ValueError("the samples are {} {}, and a batch is {}".format(images.shape, images.dtype, expected))
        rows = [slice(i * work.batch, (i + 1) * work.batch) for i in range(count)]
        self.batches = [(np.ascontiguousarray(images[r]), np.ascontiguousarray(labels[r])) for r in rows]


class Run:
    """A peer with its work."""

    def __init__(self, peer, options, work, arrays, device, threads, seed):
        begin = clock()
        self.peer = CLASSES[peer.split("-")[0]](peer, options, work, arrays, device, seed)
        self.peer.set_threads(threads)
        self.peer.synchronize()
        self.setup_seconds, self.compile_seconds = clock() - begin, None
        if self.peer.compiles:
            begin = clock()
            self.peer.compile()
            self.peer.synchronize()
            self.compile_seconds = clock() - begin
            self.peer.reset()
            self.peer.synchronize()
        self.position = 0

    def measure(self, count, kind, upload):
        """Columns of seconds, one number for each step; nothing where a column does not apply."""
        if kind == "split" and not self.peer.has_phases():
            return {"phases": False}
        began, rows = clock(), []
        for _ in range(count):
            row = {"at": clock() - began}
            if upload:
                self.peer.synchronize()
                begin = clock()
                self.peer.upload(self.position)
                self.peer.synchronize()
                row["upload"] = clock() - begin
            if kind == "split":
                self.split(row)
            else:
                self.peer.synchronize()
                begin, first = clock(), self.peer.mark()
                self.peer.step()
                last = self.peer.mark()
                self.peer.synchronize()
                row["wall"] = clock() - begin
                if first is not None:
                    row["device"] = self.peer.between(first, last)
            self.position += 1
            rows.append(row)
        return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}

    def queued(self, count):
        """The mean of steps that follow each other unwaited for; nothing on the CPU, which queues none."""
        if self.peer.device_name().startswith("cpu"):
            return {"wall": None}
        self.peer.synchronize()
        begin, first = clock(), self.peer.mark()
        for _ in range(count):
            self.peer.step()
        last = self.peer.mark()
        self.peer.synchronize()
        self.position += count
        wall = (clock() - begin) / count
        return {"wall": wall, "device": wall if first is None else self.peer.between(first, last) / count}

    def split(self, row):
        phases = [("forward", self.peer.forward)]
        if self.peer.work.training:
            phases += [("backward", self.peer.backward), ("optimizer", self.peer.update)]
        self.peer.synchronize()
        begin = start = clock()
        for name, phase in phases:
            phase()
            self.peer.synchronize()
            now = clock()
            row[name], start = now - start, now
        row["wall"] = start - begin

    def losses(self, steps, loss_scale):
        peer, values = self.peer, []
        restore = peer.without_dropout()
        peer.reset()
        peer.set_scale(loss_scale)
        for step in range(steps):
            peer.upload(step)
            peer.step()
            peer.synchronize()
            value = peer.loss()
            values.append(value if math.isfinite(value) else None)
        restore()
        peer.reset()
        peer.synchronize()
        self.position = 0
        return values

    def memory(self):
        peak, reserved = self.peer.memory()
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        now = most
        with contextlib.suppress(OSError):
            with open("/proc/self/statm") as file:
                now = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return {"rss_bytes": now, "peak_rss_bytes": max(most, now), "peak_bytes": peak, "reserved_bytes": reserved}


