#!/usr/bin/env python3
"""Trains networks in other frameworks, so that Ridgeline can be held against them.

As a child of Ridgeline it is asked by JSON lines on standard input and answers on standard output (docs/peers.md). It also
runs alone, on a machine without Ridgeline, and writes a file that `ridgeline store import` takes:

    python3 worker.py --alone --models resnet18,mobilenet_v2 --peers torch-mps,torch-cpu --batch 64 --out mac.json

Peers: torch-cpu, torch-cuda, torch-mps (options behind a plus: torch-cuda+amp+channels_last), numpy and cupy for mlp, numba-cpu
and numba-cuda for mnist_cnn and mlp, tensorflow for mnist_cnn and mlp. Frameworks are loaded only when they are asked for.

A step is the whole of training one batch: bytes to numbers, forward, backward, update. The batch lies on the device already.
Every clock is read after waiting for the device. Python 3.8 or newer."""

import argparse
import contextlib
import fnmatch
import gc
import hashlib
import importlib.util
import json
import math
import os
import platform
import queue
import random
import resource
import struct
import sys
import threading
import time
import traceback
import uuid

ZOO = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "mobilenet_v2", "squeezenet1_0", "squeezenet1_1",
       "densenet121", "densenet161", "densenet169", "densenet201")
DEFAULTS = {"mlp": {"hidden": "10", "depth": "1", "activation": "relu"},
            "mnist_cnn": {"filters": "8,16", "kernel": "3", "hidden": "128", "blocks": "0", "activation": "relu"},
            "mobilenet_v2": {"dropout": "0.2"}, "squeezenet1_0": {"dropout": "0.5"}, "squeezenet1_1": {"dropout": "0.5"}}
ACTIVATIONS = ("relu", "relu6", "leaky_relu", "sigmoid", "tanh", "silu")
LEAKY_SLOPE = 0.01
TORCH_OPTIONS = ("eager", "channels_last", "amp", "compile", "cuda-graph")
PEERS = {"torch-cpu": ("eager", "channels_last", "amp", "compile"), "torch-cuda": TORCH_OPTIONS,
         "torch-mps": ("eager", "channels_last", "amp", "compile"), "numpy": (), "cupy": (), "numba-cpu": (),
         "numba-cuda": (), "tensorflow": ()}
MODULES = {"torch": ("torch", "numpy"), "numpy": ("numpy",), "cupy": ("cupy", "numpy"), "numba": ("numba", "numpy"),
           "tensorflow": ("tensorflow", "numpy")}
clock = time.perf_counter


class Unavailable(Exception):
    """This peer does not do that; the message says why."""


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---- What is to be done ------------------------------------------------------------------------------------------------

class Work:
    """One configuration: the fields of the message "work"."""

    def __init__(self, fields):
        self.kind = fields["kind"]
        self.model = fields["model"]
        self.settings = dict(DEFAULTS.get(self.model, {}), **fields.get("settings", {}))
        self.batch, self.classes = fields["batch"], fields["classes"]
        self.image = (fields["channels"], fields["height"], fields["width"])
        self.precision = fields["precision"]
        self.optimizer = fields["optimizer"]
        self.mean = fields.get("mean") or [0.0] * self.image[0]
        self.deviation = fields.get("deviation") or [1.0] * self.image[0]
        self.label_smoothing = fields.get("label_smoothing", 0.0)
        self.freeze = fields.get("freeze", [])

    @property
    def training(self):
        return self.kind == "training"

    def scale_and_shift(self):
        """pixel * scale + shift is the normalised number, channel by channel."""
        return ([1.0 / (255.0 * d) for d in self.deviation], [-m / d for m, d in zip(self.mean, self.deviation)])

    def only(self, peer, models, precisions=("fp32",), freeze=False):
        if self.model not in models:
            raise Unavailable("{} computes {} here, not {}".format(peer, " and ".join(models), self.model))
        if self.precision not in precisions:
            raise Unavailable("{} computes in {} here, not in {}".format(peer, " or ".join(precisions), self.precision))
        if self.freeze and not freeze:
            raise Unavailable("{} trains all parameters here; none can be frozen".format(peer))


def layers_of(work):
    """mlp and mnist_cnn as a list of layers: (kind, name, sizes...), with Ridgeline's names."""
    option, (channels, height, width) = work.settings, work.image
    numbers = lambda name: [int(piece) for piece in option[name].split(",")]
    activation = option["activation"]
    if activation not in ACTIVATIONS:
        raise Unavailable("unknown activation '{}'; known: {}".format(activation, ", ".join(ACTIVATIONS)))
    layers = []
    if work.model == "mlp":
        widths = numbers("hidden")
        widths = widths * int(option["depth"]) if len(widths) == 1 else widths
        features = channels * height * width
        layers.append(("flatten", "flatten"))
        for i, units in enumerate(widths):
            layers += [("linear", "fc{}".format(i + 1), features, units), ("activation", activation)]
            features = units
        return layers + [("linear", "fc{}".format(len(widths) + 1), features, work.classes)]
    filters, kernel, hidden = numbers("filters"), int(option["kernel"]), int(option["hidden"])
    blocks = [(filters[0], 0, True), (filters[1], 0, True)] + [(filters[1], kernel // 2, False)] * int(option["blocks"])
    for i, (count, padding, pool) in enumerate(blocks):
        layers += [("conv", "conv{}".format(i + 1), channels, count, kernel, padding), ("activation", activation)]
        height, width, channels = height + 2 * padding - kernel + 1, width + 2 * padding - kernel + 1, count
        if pool:
            layers.append(("pool", "pool{}".format(i + 1)))
            height, width = height // 2, width // 2
        if height < 1 or width < 1:
            raise Unavailable("mnist_cnn: images of {}x{} are too small".format(*work.image[1:]))
    return layers + [("flatten", "flatten"), ("linear", "fc1", channels * height * width, hidden),
                     ("activation", activation), ("linear", "fc2", hidden, work.classes)]


def parameter_shapes(layers):
    shapes = {}
    for layer in layers:
        if layer[0] == "conv":
            shapes[layer[1] + ".weight"], shapes[layer[1] + ".bias"] = (layer[3], layer[2], layer[4], layer[4]), (layer[3],)
        elif layer[0] == "linear":
            shapes[layer[1] + ".weight"], shapes[layer[1] + ".bias"] = (layer[3], layer[2]), (layer[3],)
    return shapes


def check_weights(weights, shapes):
    for name, shape in shapes.items():
        if name not in weights or tuple(weights[name].shape) != tuple(shape):
            found = "x".join(map(str, weights[name].shape)) if name in weights else "nothing"
            raise ValueError("the weights have {} for {}, which is {} here".format(found, name, "x".join(map(str, shape))))


def read_safetensors(path):
    """Name -> array: eight bytes of header length, a JSON header, then the elements."""
    import numpy as np
    types = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    arrays = {}
    for name, entry in json.loads(data[8:8 + length].decode()).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in types:
            raise ValueError("{}: {} is of type {}, which is not read here".format(path, name, entry["dtype"]))
        begin, end = entry["data_offsets"]
        elements = data[8 + length + begin:8 + length + end]
        # A copy: frameworks want memory that they may write and that is aligned.
        arrays[name] = np.frombuffer(elements, dtype=types[entry["dtype"]]).reshape(entry["shape"]).copy()
    return arrays


# ---- What all peers have -----------------------------------------------------------------------------------------------

class Host:
    """Where a peer computes: the host's processor, which nobody has to wait for and which has no clock of its own."""

    def synchronize(self):
        pass

    def mark(self):
        """A point in the device's own time; nothing where it has none."""
        return None

    def between(self, begin, end):
        return begin.elapsed_time(end) / 1e3

    def memory(self):
        """Bytes: the most in use and the most reserved; nothing where nobody counts them."""
        return (None, None)

    def device_name(self):
        return "cpu"

    def set_threads(self, threads):
        pass  # most libraries were told by the environment before they were loaded: see limit_threads


class Peer(Host):
    """Forward, backward and update as phases, no dropout, no loss scale."""
    compiles = True

    def step(self):
        self.forward()
        if self.work.training:
            self.backward()
            self.update()

    def compile(self):
        """What happens once: here compilation, in a first step."""
        self.step()

    def has_phases(self):
        return True

    def without_dropout(self):
        """Random numbers differ between frameworks. Returns what brings dropout back."""
        return lambda: None

    def set_scale(self, scale):
        pass

    def batch(self, index):
        return self.host[index % len(self.host)]


# ---- PyTorch -----------------------------------------------------------------------------------------------------------

def torch_chain(torch, layers):
    """A module of mlp's and mnist_cnn's layers."""
    F = torch.nn.functional
    functions = {"relu": F.relu, "relu6": F.relu6, "leaky_relu": lambda x: F.leaky_relu(x, LEAKY_SLOPE),
                 "sigmoid": torch.sigmoid, "tanh": torch.tanh, "silu": F.silu}

    class Chain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for layer in layers:
                if layer[0] == "conv":
                    self.add_module(layer[1], torch.nn.Conv2d(*layer[2:5], padding=layer[5]))
                elif layer[0] == "linear":
                    self.add_module(layer[1], torch.nn.Linear(*layer[2:4]))

        def forward(self, x):
            for layer in layers:
                if layer[0] in ("conv", "linear"):
                    x = getattr(self, layer[1])(x)
                elif layer[0] == "activation":
                    x = functions[layer[1]](x)
                elif layer[0] == "pool":
                    x = F.max_pool2d(x, 2)
                else:
                    x = x.flatten(1)
            return x

    return Chain()


def torch_network(torch, work):
    if work.model in ("mlp", "mnist_cnn"):
        return torch_chain(torch, layers_of(work))
    if work.model not in ZOO:
        raise Unavailable("torchvision's networks here are {}, not {}".format(", ".join(ZOO), work.model))
    if work.image[0] != 3:
        raise Unavailable("torchvision's {} takes images of 3 channels, not {}".format(work.model, work.image[0]))
    try:
        import torchvision
    except ImportError as error:
        raise Unavailable("{} needs torchvision: {}; apt-get install python3-torchvision or pip install "
                          "torchvision".format(work.model, error))
    options = {"num_classes": work.classes}
    if "dropout" in work.settings:
        options["dropout"] = float(work.settings["dropout"])
    return getattr(torchvision.models, work.model)(**options)


class TorchPeer(Peer):
    def __init__(self, peer, options, work, arrays, device, seed):
        import torch
        self.torch, self.work, self.options = torch, work, options
        self.kind = peer[len("torch-"):]
        self.device = torch.device(device or ("cuda:0" if self.kind == "cuda" else self.kind))
        self.graph, self.graph_loss = None, None
        self.compiles = "compile" in options or "cuda-graph" in options
        self.set_precision()
        if self.kind == "cuda":  # nothing of earlier work counts
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)
        torch.manual_seed(seed)
        network = torch_network(torch, work)
        if arrays.weights is not None:
            tensors = {name: torch.from_numpy(array) for name, array in arrays.weights.items()}
            missing, unexpected = network.load_state_dict(tensors, strict=False)
            missing = [name for name in missing if not name.endswith("num_batches_tracked")]
            if missing or unexpected:
                raise ValueError("the weights do not fit PyTorch's {}: missing {}, unexpected {}".format(
                    work.model, missing[:3], unexpected[:3]))
        self.layout = torch.channels_last if "channels_last" in options else torch.contiguous_format
        self.network = network.to(self.device).to(memory_format=self.layout)
        self.set_mode()
        self.initial = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
        pinned = self.kind == "cuda"
        self.host = [(torch.from_numpy(images), torch.from_numpy(labels).long()) for images, labels in arrays.batches]
        if pinned:
            self.host = [(images.pin_memory(), labels.pin_memory()) for images, labels in self.host]
        self.images = torch.empty_like(self.host[0][0], device=self.device)
        self.labels = torch.empty_like(self.host[0][1], device=self.device)
        shape = (1, work.image[0], 1, 1)
        scale, shift = work.scale_and_shift()
        self.scale = torch.tensor(scale, dtype=torch.float32).reshape(shape).to(self.device)
        self.shift = torch.tensor(shift, dtype=torch.float32).reshape(shape).to(self.device) if any(shift) else None
        self.optimizer = self.make_optimizer() if work.training else None
        self.set_scale(65536.0)
        self.compute = torch.compile(self.forward_pass) if "compile" in options else self.forward_pass
        self.upload(0)
        self.synchronize()

    def set_precision(self):
        torch, precision = self.torch, self.work.precision
        # cuDNN would use TF32 unasked. Its search for the fastest algorithm is what our `auto` does, too.
        if self.kind == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
            torch.backends.cudnn.allow_tf32 = precision == "tf32"
            torch.backends.cudnn.benchmark = True
        elif precision == "tf32":
            raise Unavailable("tf32 is a precision of CUDA devices")
        self.narrow = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
        if "amp" in self.options and self.narrow is None:
            raise Unavailable("amp computes in bf16 or fp16, and this run is in {}: choose the precision bf16 or "
                              "fp16".format(precision))
        if "cuda-graph" in self.options and precision == "fp16" and self.work.training:
            raise Unavailable("cuda-graph with fp16: PyTorch's GradScaler waits for the host in each step, which a "
                              "captured graph cannot; choose bf16")
        if "compile" in self.options and not hasattr(torch, "compile"):
            raise Unavailable("compile needs PyTorch 2; this is {}".format(torch.__version__))

    def set_mode(self):
        network, work = self.network, self.work
        network.train(work.training)
        if not work.training:
            return
        for pattern in work.freeze:
            for name, value in network.named_parameters():
                if fnmatch.fnmatchcase(name, pattern):
                    value.requires_grad_(False)
        for module in network.modules():
            # Like ours: a batch norm with frozen weights uses its running statistics.
            if isinstance(module, self.torch.nn.BatchNorm2d) and not module.weight.requires_grad:
                module.eval()

    def make_optimizer(self):
        torch, numbers = self.torch, self.work.optimizer
        trained = [value for value in self.network.parameters() if value.requires_grad]
        if numbers["name"] == "sgd":
            return torch.optim.SGD(trained, lr=numbers["learning_rate"], momentum=numbers["momentum"],
                                   weight_decay=numbers["weight_decay"], nesterov=numbers["nesterov"])
        make = torch.optim.AdamW if numbers["name"] == "adamw" else torch.optim.Adam
        extra = {"capturable": True} if "cuda-graph" in self.options else {}
        return make(trained, lr=numbers["learning_rate"], betas=(numbers["beta1"], numbers["beta2"]),
                    eps=numbers["epsilon"], weight_decay=numbers["weight_decay"], **extra)

    def set_scale(self, scale):
        self.scaler = None
        if self.work.training and self.narrow == self.torch.float16:
            amp = self.torch.amp if hasattr(self.torch.amp, "GradScaler") else self.torch.cuda.amp
            self.scaler = amp.GradScaler(init_scale=scale)

    def forward_pass(self, images, labels):
        """The loss of training, the logits of inference."""
        torch = self.torch
        x = images.to(torch.float32, memory_format=self.layout) * self.scale
        if self.shift is not None:
            x = x + self.shift
        autocast = torch.autocast(self.kind, dtype=self.narrow) if self.narrow else contextlib.nullcontext()
        with autocast:
            logits = self.network(x)
            if not self.work.training:
                return logits
            return torch.nn.functional.cross_entropy(logits, labels, label_smoothing=self.work.label_smoothing)

    def forward(self):
        if self.work.training:
            self.optimizer.zero_grad(set_to_none=True)
            self.result = self.compute(self.images, self.labels)
        else:
            with self.torch.inference_mode():
                self.result = self.compute(self.images, self.labels)

    def backward(self):
        (self.scaler.scale(self.result) if self.scaler else self.result).backward()

    def update(self):
        if self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()

    def step(self):
        if self.graph is not None:
            self.graph.replay()
            self.result = self.graph_loss
        else:
            super().step()

    def compile(self):
        """What happens once: compilation in a first step, capture of a graph."""
        if "cuda-graph" not in self.options:
            self.step()
            return
        torch = self.torch
        self.graph = None
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        if self.work.training:
            self.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        self.graph, self.graph_loss = graph, self.result

    def has_phases(self):
        return self.graph is None  # a captured graph is one piece

    def reset(self):
        """Initial weights and a fresh optimizer, in place: a captured graph knows the addresses."""
        torch = self.torch
        with torch.no_grad():
            for name, value in self.network.state_dict().items():
                value.copy_(self.initial[name])
            for state in (self.optimizer.state.values() if self.optimizer else ()):
                for key, value in state.items():
                    if torch.is_tensor(value):
                        value.zero_()  # also the momentum: dampening is 0, so that zero is as good as none
                    elif isinstance(value, int):
                        state[key] = 0
        self.set_scale(65536.0)
        self.upload(0)

    def without_dropout(self):
        layers = [m for m in self.network.modules() if isinstance(m, self.torch.nn.Dropout) and m.p > 0 and m.training]
        rates = [layer.p for layer in layers]

        def set_rates(values):
            for layer, rate in zip(layers, values):
                layer.p = rate
            if layers and self.graph is not None:
                self.compile()

        set_rates([0.0] * len(layers))
        return lambda: set_rates(rates)

    def upload(self, index):
        images, labels = self.batch(index)
        self.images.copy_(images, non_blocking=True)
        self.labels.copy_(labels, non_blocking=True)

    def loss(self):
        if self.work.training:
            return float(self.result.item())
        return float(self.torch.nn.functional.cross_entropy(self.result.float(), self.labels).item())

    def synchronize(self):
        if self.kind == "cuda":
            self.torch.cuda.synchronize(self.device)
        elif self.kind == "mps":
            self.torch.mps.synchronize()

    def mark(self):
        if self.kind == "cuda":
            event = self.torch.cuda.Event(enable_timing=True)
        elif self.kind == "mps" and hasattr(self.torch.mps, "Event"):
            event = self.torch.mps.Event(enable_timing=True)
        else:
            return None
        event.record()
        return event

    def memory(self):
        if self.kind == "cuda":
            return (self.torch.cuda.max_memory_allocated(self.device), self.torch.cuda.max_memory_reserved(self.device))
        if self.kind == "mps":
            return (self.torch.mps.current_allocated_memory(), self.torch.mps.driver_allocated_memory())
        return (None, None)

    def device_name(self):
        if self.kind == "cuda":
            return "{} {}".format(self.device, self.torch.cuda.get_device_name(self.device))
        return str(self.device)

    def set_threads(self, threads):
        if threads > 0:
            self.torch.set_num_threads(threads)


# ---- NumPy and CuPy: mlp -----------------------------------------------------------------------------------------------

def array_activation(xp, kind):
    """The value at z, and the slope there, which may use the value a."""
    leak, sigmoid = xp.float32(LEAKY_SLOPE), lambda z: 1 / (1 + xp.exp(-z))

    def silu_slope(z, a):
        s = sigmoid(z)
        return s * (1 + z * (1 - s))

    return {"relu": (lambda z: xp.maximum(z, 0), lambda z, a: z > 0),
            "relu6": (lambda z: xp.clip(z, 0, 6), lambda z, a: (z > 0) & (z < 6)),
            "leaky_relu": (lambda z: xp.where(z > 0, z, z * leak), lambda z, a: xp.where(z > 0, xp.float32(1), leak)),
            "sigmoid": (sigmoid, lambda z, a: a * (1 - a)), "tanh": (xp.tanh, lambda z, a: 1 - a * a),
            "silu": (lambda z: z * sigmoid(z), silu_slope)}[kind]


class ArrayPeer(Peer):
    """Dense layers by matrix products and whole-array arithmetic; the same text serves both libraries."""
    compiles = False

    def __init__(self, peer, options, work, arrays, device, seed):
        work.only(peer, ("mlp",))
        import numpy
        self.np = numpy
        self.cuda = peer == "cupy"
        if self.cuda:
            import cupy
            cupy.cuda.Device(int(device.split(":")[1]) if device else 0).use()
        self.xp = xp = cupy if self.cuda else numpy
        self.work = work
        layers = layers_of(work)
        self.activate, self.slope = array_activation(xp, work.settings["activation"])
        self.names = [layer[1] for layer in layers if layer[0] == "linear"]
        check_weights(arrays.weights, parameter_shapes(layers))
        self.initial = {name: xp.asarray(arrays.weights[name], dtype=xp.float32) for name in parameter_shapes(layers)}
        self.parameters = {name: value.copy() for name, value in self.initial.items()}
        self.host = arrays.batches
        pixels = work.image[1] * work.image[2]
        scale, shift = work.scale_and_shift()
        self.scale = xp.asarray(numpy.repeat(numpy.float32(scale), pixels))
        self.shift = xp.asarray(numpy.repeat(numpy.float32(shift), pixels)) if any(shift) else None
        self.rows = xp.arange(work.batch)
        self.reset()

    def reset(self):
        for name, value in self.initial.items():
            self.parameters[name][...] = value
        self.moments = {name: (self.xp.zeros_like(value), self.xp.zeros_like(value)) for name, value in self.initial.items()}
        self.updates = 0
        self.upload(0)

    def upload(self, index):
        images, labels = self.batch(index)
        self.images = self.xp.asarray(images.reshape(self.work.batch, -1))
        self.labels = self.xp.asarray(labels)

    def forward(self):
        xp = self.xp
        x = self.images.astype(xp.float32)
        x *= self.scale
        if self.shift is not None:
            x += self.shift
        self.inputs, self.sums = [x], []
        for name in self.names:
            z = self.inputs[-1] @ self.parameters[name + ".weight"].T + self.parameters[name + ".bias"]
            self.sums.append(z)
            if name != self.names[-1]:
                self.inputs.append(self.activate(z))
        if self.work.training:
            logits = self.sums[-1] - self.sums[-1].max(axis=1, keepdims=True)
            exponentials = xp.exp(logits)
            totals = exponentials.sum(axis=1, keepdims=True)
            self.probabilities = exponentials / totals
            smoothing, logs = self.work.label_smoothing, logits - xp.log(totals)
            self.result = -(1 - smoothing) * logs[self.rows, self.labels].mean()
            if smoothing > 0:
                self.result = self.result - smoothing * logs.mean()

    def backward(self):
        work, smoothing = self.work, self.work.label_smoothing
        diff = self.probabilities
        diff[self.rows, self.labels] -= 1 - smoothing
        if smoothing > 0:
            diff -= self.xp.float32(smoothing / work.classes)
        diff /= work.batch
        self.gradients = {}
        for i in reversed(range(len(self.names))):
            name = self.names[i]
            self.gradients[name + ".weight"] = diff.T @ self.inputs[i]
            self.gradients[name + ".bias"] = diff.sum(axis=0)
            if i > 0:
                diff = diff @ self.parameters[name + ".weight"]
                diff *= self.slope(self.sums[i - 1], self.inputs[i])

    def update(self):
        xp, numbers = self.xp, self.work.optimizer
        rate, decay = numbers["learning_rate"], numbers["weight_decay"]
        self.updates += 1
        for name, value in self.parameters.items():
            gradient, (first, second) = self.gradients[name], self.moments[name]
            if decay and numbers["name"] == "adamw":
                value *= 1 - rate * decay
            elif decay:
                gradient = gradient + decay * value
            if numbers["name"] == "sgd":
                momentum = numbers["momentum"]
                if momentum:
                    first *= momentum
                    first += gradient
                    gradient = gradient + momentum * first if numbers["nesterov"] else first
                value -= rate * gradient
                continue
            beta1, beta2 = numbers["beta1"], numbers["beta2"]
            first *= beta1
            first += (1 - beta1) * gradient
            second *= beta2
            second += (1 - beta2) * gradient * gradient
            root = xp.sqrt(second / (1 - beta2 ** self.updates)) + numbers["epsilon"]
            value -= rate / (1 - beta1 ** self.updates) * first / root

    def loss(self):
        if self.work.training:
            return float(self.result)
        return host_loss(self.np, self.xp.asnumpy(self.sums[-1]) if self.cuda else self.sums[-1],
                         self.xp.asnumpy(self.labels) if self.cuda else self.labels)

    def synchronize(self):
        if self.cuda:
            self.xp.cuda.get_current_stream().synchronize()

    def mark(self):
        if not self.cuda:
            return None
        event = self.xp.cuda.Event()
        event.record()
        return event

    def between(self, begin, end):
        return self.xp.cuda.get_elapsed_time(begin, end) / 1e3

    def memory(self):
        # The pool never gives anything back: what it holds is the most it has needed.
        return (None, self.xp.get_default_memory_pool().total_bytes()) if self.cuda else (None, None)

    def device_name(self):
        if not self.cuda:
            return "cpu"
        number = self.xp.cuda.Device().id
        return "cuda:{} {}".format(number, self.xp.cuda.runtime.getDeviceProperties(number)["name"].decode())


def host_loss(np, logits, labels):
    """Mean cross-entropy, for networks that gave only logits."""
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return float(-logs[np.arange(len(labels)), labels].mean())


# ---- Numba: hand-written loops, on the CPU and as CUDA kernels ------------------------------------------------------------

def activation_functions(jit):
    """value(kind, z) and slope(kind, z); kinds are positions in ACTIVATIONS."""
    @jit
    def value(kind, z):
        if kind == 0:
            return max(z, z * 0)
        if kind == 1:
            return min(max(z, z * 0), z * 0 + 6)
        if kind == 2:
            return z if z > 0 else z * LEAKY_SLOPE
        if kind == 4:
            return math.tanh(z)
        sigmoid = 1 / (1 + math.exp(-z))
        return sigmoid if kind == 3 else z * sigmoid

    @jit
    def slope(kind, z):
        if kind == 0:
            return 1.0 if z > 0 else 0.0
        if kind == 1:
            return 1.0 if 0 < z < 6 else 0.0
        if kind == 2:
            return 1.0 if z > 0 else LEAKY_SLOPE
        if kind == 4:
            return 1 - math.tanh(z) * math.tanh(z)
        sigmoid = 1 / (1 + math.exp(-z))
        return sigmoid * (1 - sigmoid) if kind == 3 else sigmoid * (1 + z * (1 - sigmoid))

    return value, slope


class CpuLoops(Host):
    """Loops over images, channels and pixels; the outermost is shared among the threads."""

    def __init__(self, device):
        import numba
        import numpy as np
        prange, jit = numba.prange, numba.njit(parallel=True, fastmath=True)
        value, slope = activation_functions(numba.njit(fastmath=True))
        self.np, self.numba = np, numba

        @jit
        def normalise(pixels, scale, shift, x):
            for n in prange(x.shape[0]):
                for c in range(x.shape[1]):
                    for i in range(x.shape[2]):
                        for j in range(x.shape[3]):
                            x[n, c, i, j] = pixels[n, c, i, j] * scale[c] + shift[c]

        @jit
        def conv_forward(x, w, b, pad, y):
            for nf in prange(y.shape[0] * y.shape[1]):
                n, f = nf // y.shape[1], nf % y.shape[1]
                y[n, f, :, :] = b[f]
                for c in range(x.shape[1]):
                    for u in range(w.shape[2]):
                        for v in range(w.shape[3]):
                            factor = w[f, c, u, v]
                            for i in range(max(0, pad - u), min(y.shape[2], x.shape[2] + pad - u)):
                                for j in range(max(0, pad - v), min(y.shape[3], x.shape[3] + pad - v)):
                                    y[n, f, i, j] += factor * x[n, c, i + u - pad, j + v - pad]

        @jit
        def conv_backward_data(dy, w, pad, dx):
            for nc in prange(dx.shape[0] * dx.shape[1]):
                n, c = nc // dx.shape[1], nc % dx.shape[1]
                dx[n, c, :, :] = 0
                for f in range(dy.shape[1]):
                    for u in range(w.shape[2]):
                        for v in range(w.shape[3]):
                            factor = w[f, c, u, v]
                            for i in range(max(0, pad - u), min(dy.shape[2], dx.shape[2] + pad - u)):
                                for j in range(max(0, pad - v), min(dy.shape[3], dx.shape[3] + pad - v)):
                                    dx[n, c, i + u - pad, j + v - pad] += factor * dy[n, f, i, j]

        @jit
        def conv_backward_weights(x, dy, pad, dw, db):
            columns = dw.shape[1] * dw.shape[2] * dw.shape[3]
            for k in prange(dw.shape[0] * columns):
                f, c = k // columns, k % columns // (dw.shape[2] * dw.shape[3])
                u, v = k // dw.shape[3] % dw.shape[2], k % dw.shape[3]
                total = np.float32(0)
                for n in range(x.shape[0]):
                    for i in range(max(0, pad - u), min(dy.shape[2], x.shape[2] + pad - u)):
                        for j in range(max(0, pad - v), min(dy.shape[3], x.shape[3] + pad - v)):
                            total += dy[n, f, i, j] * x[n, c, i + u - pad, j + v - pad]
                dw[f, c, u, v] = total
            for f in prange(db.shape[0]):
                total = np.float32(0)
                for n in range(dy.shape[0]):
                    for i in range(dy.shape[2]):
                        for j in range(dy.shape[3]):
                            total += dy[n, f, i, j]
                db[f] = total

        @jit
        def pool_forward(x, y, choice):
            for n in prange(y.shape[0]):
                for c in range(y.shape[1]):
                    for i in range(y.shape[2]):
                        for j in range(y.shape[3]):
                            best, place = x[n, c, 2 * i, 2 * j], 0
                            for k in range(1, 4):
                                other = x[n, c, 2 * i + k // 2, 2 * j + k % 2]
                                if other > best:
                                    best, place = other, k
                            y[n, c, i, j], choice[n, c, i, j] = best, place

        @jit
        def pool_backward(dy, choice, dx):
            for n in prange(dy.shape[0]):
                dx[n, :, :, :] = 0
                for c in range(dy.shape[1]):
                    for i in range(dy.shape[2]):
                        for j in range(dy.shape[3]):
                            k = choice[n, c, i, j]
                            dx[n, c, 2 * i + k // 2, 2 * j + k % 2] = dy[n, c, i, j]

        @jit
        def dense_forward(x, w, b, y):
            for n in prange(y.shape[0]):
                for o in range(y.shape[1]):
                    total = b[o]
                    for i in range(x.shape[1]):
                        total += x[n, i] * w[o, i]
                    y[n, o] = total

        @jit
        def dense_backward_data(dy, w, dx):
            for n in prange(dx.shape[0]):
                dx[n, :] = 0
                for o in range(dy.shape[1]):
                    for i in range(dx.shape[1]):
                        dx[n, i] += dy[n, o] * w[o, i]

        @jit
        def dense_backward_weights(x, dy, dw, db):
            for o in prange(dw.shape[0]):
                dw[o, :] = 0
                total = np.float32(0)
                for n in range(x.shape[0]):
                    total += dy[n, o]
                    for i in range(x.shape[1]):
                        dw[o, i] += dy[n, o] * x[n, i]
                db[o] = total

        @jit
        def activation_forward(kind, x, y):
            for k in prange(x.shape[0]):
                y[k] = value(kind, x[k])

        @jit
        def activation_backward(kind, x, dy, dx):
            for k in prange(x.shape[0]):
                dx[k] = dy[k] * slope(kind, x[k])

        @jit
        def loss(logits, labels, smoothing, losses, diff):
            rows, classes = logits.shape
            for n in prange(rows):
                top, total, sum_of_logs = logits[n, 0], 0.0, 0.0
                for o in range(classes):
                    top = max(top, logits[n, o])
                for o in range(classes):
                    total += math.exp(logits[n, o] - top)
                for o in range(classes):
                    sum_of_logs += logits[n, o] - top - math.log(total)
                    target = (1 - smoothing) * (o == labels[n]) + smoothing / classes
                    diff[n, o] = (math.exp(logits[n, o] - top) / total - target) / rows
                chosen = logits[n, labels[n]] - top - math.log(total)
                losses[n] = -(1 - smoothing) * chosen - smoothing * sum_of_logs / classes

        @jit
        def sgd(w, g, velocity, rate, momentum, decay, nesterov):
            for k in prange(w.shape[0]):
                gradient = g[k] + decay * w[k]
                velocity[k] = momentum * velocity[k] + gradient
                w[k] -= rate * (gradient + momentum * velocity[k] if nesterov else velocity[k])

        @jit
        def adam(w, g, first, second, rate, beta1, beta2, epsilon, decay, decoupled, correction1, correction2):
            for k in prange(w.shape[0]):
                if decoupled:
                    w[k] -= rate * decay * w[k]
                gradient = g[k] if decoupled else g[k] + decay * w[k]
                first[k] = beta1 * first[k] + (1 - beta1) * gradient
                second[k] = beta2 * second[k] + (1 - beta2) * gradient * gradient
                w[k] -= rate / correction1 * first[k] / (math.sqrt(second[k] / correction2) + epsilon)

        for loop in (normalise, conv_forward, conv_backward_data, conv_backward_weights, pool_forward, pool_backward,
                     dense_forward, dense_backward_data, dense_backward_weights, activation_forward,
                     activation_backward, loss, sgd, adam):
            setattr(self, loop.__name__, loop)

    def array(self, values):
        return self.np.array(values)

    def empty(self, shape, dtype="float32"):
        return self.np.empty(shape, dtype=dtype)

    def copy(self, source, target):
        target[...] = source

    def on_host(self, array):
        return array

    def set_threads(self, threads):
        if threads > 0:
            self.numba.set_num_threads(min(threads, self.numba.config.NUMBA_NUM_THREADS))


class CudaLoops(Host):
    """One thread for each number of the result; sums over images meet by atomic additions."""
    BLOCK = 128

    def __init__(self, device):
        global cuda  # Numba's simulator (NUMBA_ENABLE_CUDASIM=1) looks for it there
        import numpy as np
        from numba import cuda
        self.np, self.cuda = np, cuda
        self.number = int(device.split(":")[1]) if device else 0
        cuda.select_device(self.number)
        self.bytes = 0
        value, slope = activation_functions(cuda.jit(device=True))
        float32 = np.float32

        @cuda.jit
        def fill(x, number):
            k = cuda.grid(1)
            if k < x.shape[0]:
                x[k] = number

        @cuda.jit
        def normalise(pixels, scale, shift, x):
            k = cuda.grid(1)
            if k < x.size:
                j, i = k % x.shape[3], k // x.shape[3] % x.shape[2]
                c, n = k // (x.shape[3] * x.shape[2]) % x.shape[1], k // (x.shape[3] * x.shape[2] * x.shape[1])
                x[n, c, i, j] = float32(pixels[n, c, i, j]) * scale[c] + shift[c]

        @cuda.jit
        def conv_forward(x, w, b, pad, y):
            k = cuda.grid(1)
            if k >= y.size:
                return
            j, i = k % y.shape[3], k // y.shape[3] % y.shape[2]
            f, n = k // (y.shape[3] * y.shape[2]) % y.shape[1], k // (y.shape[3] * y.shape[2] * y.shape[1])
            total = b[f]
            for c in range(x.shape[1]):
                for u in range(max(0, pad - i), min(w.shape[2], x.shape[2] + pad - i)):
                    for v in range(max(0, pad - j), min(w.shape[3], x.shape[3] + pad - j)):
                        total += w[f, c, u, v] * x[n, c, i + u - pad, j + v - pad]
            y[n, f, i, j] = total

        @cuda.jit
        def conv_backward_data(dy, w, pad, dx):
            k = cuda.grid(1)
            if k >= dx.size:
                return
            j, i = k % dx.shape[3], k // dx.shape[3] % dx.shape[2]
            c, n = k // (dx.shape[3] * dx.shape[2]) % dx.shape[1], k // (dx.shape[3] * dx.shape[2] * dx.shape[1])
            total = float32(0)
            for f in range(dy.shape[1]):
                for u in range(w.shape[2]):
                    for v in range(w.shape[3]):
                        p, q = i - u + pad, j - v + pad
                        if p >= 0 and q >= 0 and p < dy.shape[2] and q < dy.shape[3]:
                            total += w[f, c, u, v] * dy[n, f, p, q]
            dx[n, c, i, j] = total

        @cuda.jit
        def conv_backward_weights(x, dy, pad, dw, db):
            k = cuda.grid(1)
            if k >= dw.size * x.shape[0]:
                return
            n, k = k // dw.size, k % dw.size
            v, u = k % dw.shape[3], k // dw.shape[3] % dw.shape[2]
            c, f = k // (dw.shape[3] * dw.shape[2]) % dw.shape[1], k // (dw.shape[3] * dw.shape[2] * dw.shape[1])
            total, bias = float32(0), float32(0)
            for i in range(max(0, pad - u), min(dy.shape[2], x.shape[2] + pad - u)):
                for j in range(max(0, pad - v), min(dy.shape[3], x.shape[3] + pad - v)):
                    total += dy[n, f, i, j] * x[n, c, i + u - pad, j + v - pad]
            cuda.atomic.add(dw, (f, c, u, v), total)
            if c == 0 and u == 0 and v == 0:
                for i in range(dy.shape[2]):
                    for j in range(dy.shape[3]):
                        bias += dy[n, f, i, j]
                cuda.atomic.add(db, f, bias)

        @cuda.jit
        def pool_forward(x, y, choice):
            k = cuda.grid(1)
            if k >= y.size:
                return
            j, i = k % y.shape[3], k // y.shape[3] % y.shape[2]
            c, n = k // (y.shape[3] * y.shape[2]) % y.shape[1], k // (y.shape[3] * y.shape[2] * y.shape[1])
            best, place = x[n, c, 2 * i, 2 * j], 0
            for m in range(1, 4):
                other = x[n, c, 2 * i + m // 2, 2 * j + m % 2]
                if other > best:
                    best, place = other, m
            y[n, c, i, j] = best
            choice[n, c, i, j] = place

        @cuda.jit
        def pool_backward(dy, choice, dx):
            k = cuda.grid(1)
            if k >= dx.size:
                return
            j, i = k % dx.shape[3], k // dx.shape[3] % dx.shape[2]
            c, n = k // (dx.shape[3] * dx.shape[2]) % dx.shape[1], k // (dx.shape[3] * dx.shape[2] * dx.shape[1])
            p, q = i // 2, j // 2
            inside = p < dy.shape[2] and q < dy.shape[3]
            if inside and choice[n, c, p, q] == i % 2 * 2 + j % 2:
                dx[n, c, i, j] = dy[n, c, p, q]
            else:
                dx[n, c, i, j] = 0

        @cuda.jit
        def dense_forward(x, w, b, y):
            k = cuda.grid(1)
            if k < y.size:
                n, o = k // y.shape[1], k % y.shape[1]
                total = b[o]
                for i in range(x.shape[1]):
                    total += x[n, i] * w[o, i]
                y[n, o] = total

        @cuda.jit
        def dense_backward_data(dy, w, dx):
            k = cuda.grid(1)
            if k < dx.size:
                n, i = k // dx.shape[1], k % dx.shape[1]
                total = float32(0)
                for o in range(dy.shape[1]):
                    total += dy[n, o] * w[o, i]
                dx[n, i] = total

        @cuda.jit
        def dense_backward_weights(x, dy, dw, db):
            k = cuda.grid(1)
            if k < dw.size:
                o, i = k // dw.shape[1], k % dw.shape[1]
                total, bias = float32(0), float32(0)
                for n in range(x.shape[0]):
                    total += dy[n, o] * x[n, i]
                    bias += dy[n, o]
                dw[o, i] = total
                if i == 0:
                    db[o] = bias

        @cuda.jit
        def activation_forward(kind, x, y):
            k = cuda.grid(1)
            if k < x.shape[0]:
                y[k] = value(kind, x[k])

        @cuda.jit
        def activation_backward(kind, x, dy, dx):
            k = cuda.grid(1)
            if k < x.shape[0]:
                dx[k] = dy[k] * slope(kind, x[k])

        @cuda.jit
        def loss(logits, labels, smoothing, losses, diff):
            n = cuda.grid(1)
            rows, classes = logits.shape
            if n >= rows:
                return
            top, total, sum_of_logs = logits[n, 0], float32(0), float32(0)
            for o in range(classes):
                top = max(top, logits[n, o])
            for o in range(classes):
                total += math.exp(logits[n, o] - top)
            for o in range(classes):
                sum_of_logs += logits[n, o] - top - math.log(total)
                target = smoothing / classes
                if o == labels[n]:
                    target += 1 - smoothing
                diff[n, o] = (math.exp(logits[n, o] - top) / total - target) / rows
            chosen = logits[n, labels[n]] - top - math.log(total)
            losses[n] = -(1 - smoothing) * chosen - smoothing * sum_of_logs / classes

        @cuda.jit
        def sgd(w, g, velocity, rate, momentum, decay, nesterov):
            k = cuda.grid(1)
            if k < w.shape[0]:
                gradient = g[k] + decay * w[k]
                velocity[k] = momentum * velocity[k] + gradient
                w[k] -= rate * (gradient + momentum * velocity[k] if nesterov else velocity[k])

        @cuda.jit
        def adam(w, g, first, second, rate, beta1, beta2, epsilon, decay, decoupled, correction1, correction2):
            k = cuda.grid(1)
            if k < w.shape[0]:
                if decoupled:
                    w[k] -= rate * decay * w[k]
                gradient = g[k] if decoupled else g[k] + decay * w[k]
                first[k] = beta1 * first[k] + (1 - beta1) * gradient
                second[k] = beta2 * second[k] + (1 - beta2) * gradient * gradient
                w[k] -= rate / correction1 * first[k] / (math.sqrt(second[k] / correction2) + epsilon)

        # A kernel starts with as many threads as an argument has elements: its position is given here.
        for position, kernel in ((3, normalise), (4, conv_forward), (3, conv_backward_data), (1, pool_forward),
                                 (2, pool_backward), (3, dense_forward), (2, dense_backward_data),
                                 (2, dense_backward_weights), (2, activation_forward), (3, activation_backward),
                                 (3, loss), (0, sgd), (0, adam)):
            setattr(self, kernel.__name__, self.launcher(kernel, position))
        self.fill, self.weights_kernel = self.launcher(fill, 0), conv_backward_weights

    def launcher(self, kernel, position):
        def launch(*arguments):
            kernel[(arguments[position].size + self.BLOCK - 1) // self.BLOCK, self.BLOCK](*arguments)
        return launch

    def conv_backward_weights(self, x, dy, pad, dw, db):
        self.fill(dw.reshape(dw.size), 0.0)
        self.fill(db, 0.0)
        threads = dw.size * x.shape[0]
        self.weights_kernel[(threads + self.BLOCK - 1) // self.BLOCK, self.BLOCK](x, dy, pad, dw, db)

    def array(self, values):
        self.bytes += values.nbytes
        return self.cuda.to_device(self.np.ascontiguousarray(values))

    def empty(self, shape, dtype="float32"):
        array = self.cuda.device_array(shape, dtype=dtype)
        self.bytes += array.nbytes
        return array

    def copy(self, source, target):
        target.copy_to_device(self.np.ascontiguousarray(source) if isinstance(source, self.np.ndarray) else source)

    def on_host(self, array):
        return array.copy_to_host()

    def synchronize(self):
        self.cuda.synchronize()

    def mark(self):
        event = self.cuda.event(timing=True)
        event.record()
        return event

    def memory(self):
        return (self.bytes, None)  # the arrays: Numba keeps no account of its own

    def device_name(self):
        name = self.cuda.get_current_device().name
        return "cuda:{} {}".format(self.number, name.decode() if isinstance(name, bytes) else name)


class NumbaPeer(Peer):
    """Full backpropagation through mnist_cnn or mlp, gradients averaged over the batch, nothing allocated in a step."""

    def __init__(self, peer, options, work, arrays, device, seed):
        work.only(peer, ("mnist_cnn", "mlp"))
        import numpy as np
        self.np, self.work, self.host = np, work, arrays.batches
        self.layers = layers_of(work)
        self.activation = ACTIVATIONS.index(work.settings["activation"])
        shapes = parameter_shapes(self.layers)
        check_weights(arrays.weights, shapes)
        if not hasattr(np, "row_stack"):
            np.row_stack = np.vstack  # Numba looks up a name that NumPy 2.5 no longer has
        self.loops = loops = CudaLoops(device) if peer == "numba-cuda" else CpuLoops(device)
        self.synchronize, self.mark, self.memory = loops.synchronize, loops.mark, loops.memory
        self.device_name, self.set_threads = loops.device_name, loops.set_threads
        self.initial = {name: arrays.weights[name].astype(np.float32) for name in shapes}
        self.parameters = {name: loops.array(value) for name, value in self.initial.items()}
        self.gradients = {name: loops.empty(shape) for name, shape in shapes.items()}
        self.zeros = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        self.moments = {name: (loops.array(value), loops.array(value)) for name, value in self.zeros.items()}
        scale, shift = work.scale_and_shift()
        self.scale, self.shift = loops.array(np.float32(scale)), loops.array(np.float32(shift))
        self.images, self.labels = loops.array(self.host[0][0]), loops.array(self.host[0][1])
        self.losses = loops.empty((work.batch,))
        self.values = [loops.empty((work.batch,) + work.image)]  # what goes into each layer, then the logits
        self.choices = {}
        for k, layer in enumerate(self.layers):
            self.values.append(self.output_of(k, layer, self.values[-1]))
        self.diffs = [loops.empty(value.shape) for value in self.values] if work.training else []
        for k, layer in enumerate(self.layers):
            if layer[0] == "flatten" and work.training:  # the same memory in another shape
                self.diffs[k + 1] = self.diffs[k].reshape(self.values[k + 1].shape)
        self.reset()

    def output_of(self, k, layer, x):
        n = x.shape[0]
        if layer[0] == "conv":
            height, width = (size + 2 * layer[5] - layer[4] + 1 for size in x.shape[2:])
            return self.loops.empty((n, layer[3], height, width))
        if layer[0] == "pool":
            shape = (n, x.shape[1], x.shape[2] // 2, x.shape[3] // 2)
            self.choices[k] = self.loops.empty(shape, "uint8")
            return self.loops.empty(shape)
        if layer[0] == "linear":
            return self.loops.empty((n, layer[3]))
        return self.loops.empty(x.shape) if layer[0] == "activation" else x.reshape(n, x.size // n)

    def reset(self):
        for name, value in self.initial.items():
            self.loops.copy(value, self.parameters[name])
            for moment in self.moments[name]:
                self.loops.copy(self.zeros[name], moment)
        self.updates = 0
        self.upload(0)

    def upload(self, index):
        images, labels = self.batch(index)
        self.loops.copy(images, self.images)
        self.loops.copy(labels, self.labels)

    def forward(self):
        loops, values = self.loops, self.values
        loops.normalise(self.images, self.scale, self.shift, values[0])
        for k, layer in enumerate(self.layers):
            x, y = values[k], values[k + 1]
            if layer[0] in ("conv", "linear"):
                w, b = self.parameters[layer[1] + ".weight"], self.parameters[layer[1] + ".bias"]
                if layer[0] == "conv":
                    loops.conv_forward(x, w, b, layer[5], y)
                else:
                    loops.dense_forward(x, w, b, y)
            elif layer[0] == "activation":
                loops.activation_forward(self.activation, x.reshape(x.size), y.reshape(y.size))
            elif layer[0] == "pool":
                loops.pool_forward(x, y, self.choices[k])
        if self.work.training:
            loops.loss(values[-1], self.labels, self.work.label_smoothing, self.losses, self.diffs[-1])

    def backward(self):
        loops = self.loops
        for k in reversed(range(len(self.layers))):
            layer, x, dy, dx = self.layers[k], self.values[k], self.diffs[k + 1], self.diffs[k]
            first = all(earlier[0] == "flatten" for earlier in self.layers[:k])  # nobody wants the image's gradient
            if layer[0] in ("conv", "linear"):
                name = layer[1]
                w, dw, db = self.parameters[name + ".weight"], self.gradients[name + ".weight"], self.gradients[name + ".bias"]
                if layer[0] == "conv":
                    loops.conv_backward_weights(x, dy, layer[5], dw, db)
                    if not first:
                        loops.conv_backward_data(dy, w, layer[5], dx)
                else:
                    loops.dense_backward_weights(x, dy, dw, db)
                    if not first:
                        loops.dense_backward_data(dy, w, dx)
            elif layer[0] == "activation":
                loops.activation_backward(self.activation, x.reshape(x.size), dy.reshape(dy.size), dx.reshape(dx.size))
            elif layer[0] == "pool":
                loops.pool_backward(dy, self.choices[k], dx)

    def update(self):
        numbers = self.work.optimizer
        self.updates += 1
        for name, value in self.parameters.items():
            w, g = value.reshape(value.size), self.gradients[name].reshape(value.size)
            first, second = (moment.reshape(value.size) for moment in self.moments[name])
            rate, decay = numbers["learning_rate"], numbers["weight_decay"]
            if numbers["name"] == "sgd":
                self.loops.sgd(w, g, first, rate, numbers["momentum"], decay, numbers["nesterov"])
            else:
                beta1, beta2 = numbers["beta1"], numbers["beta2"]
                self.loops.adam(w, g, first, second, rate, beta1, beta2, numbers["epsilon"], decay,
                                numbers["name"] == "adamw", 1 - beta1 ** self.updates, 1 - beta2 ** self.updates)

    def loss(self):
        if self.work.training:
            return float(self.loops.on_host(self.losses).astype(self.np.float64).mean())
        return host_loss(self.np, self.loops.on_host(self.values[-1]), self.loops.on_host(self.labels))


# ---- TensorFlow --------------------------------------------------------------------------------------------------------

class TensorFlowPeer(Peer):
    """mlp and mnist_cnn as one traced function a step. Images are NHWC inside: its CPU convolutions know nothing else."""

    def __init__(self, peer, options, work, arrays, device, seed):
        work.only(peer, ("mnist_cnn", "mlp"))
        import numpy as np
        import tensorflow as tf
        self.np, self.tf, self.work, self.host = np, tf, work, arrays.batches
        self.place = "/GPU:" + device.split(":")[1] if device and device.startswith("cuda") else "/CPU:0"
        if "GPU" in self.place and not tf.config.list_physical_devices("GPU"):
            raise Unavailable("TensorFlow finds no GPU")
        tf.config.experimental.enable_tensor_float_32_execution(False)
        self.layers = layers_of(work)
        shapes = parameter_shapes(self.layers)
        check_weights(arrays.weights, shapes)
        # Convolutions keep their weights as height, width, in, out.
        turned = lambda array: array.transpose(2, 3, 1, 0) if array.ndim == 4 else array
        self.initial = {name: turned(arrays.weights[name].astype(np.float32)) for name in shapes}
        with tf.device(self.place):
            self.parameters = {name: tf.Variable(value) for name, value in self.initial.items()}
            self.moments = {name: (tf.Variable(value * 0), tf.Variable(value * 0)) for name, value in self.initial.items()}
            self.updates = tf.Variable(0.0)
            self.images, self.labels = tf.Variable(self.host[0][0]), tf.Variable(self.host[0][1])
        scale, shift = (np.float32(x).reshape(1, -1, 1, 1) for x in work.scale_and_shift())
        self.scale, self.shift = scale, shift
        self.function = tf.function(self.train if work.training else self.infer)
        self.reset()

    def infer(self):
        tf = self.tf
        functions = {"relu": tf.nn.relu, "relu6": tf.nn.relu6, "leaky_relu": lambda x: tf.nn.leaky_relu(x, LEAKY_SLOPE),
                     "sigmoid": tf.sigmoid, "tanh": tf.tanh, "silu": tf.nn.silu}
        x = tf.transpose(tf.cast(self.images, tf.float32) * self.scale + self.shift, (0, 2, 3, 1))
        for layer in self.layers:
            if layer[0] in ("conv", "linear"):
                w, b = self.parameters[layer[1] + ".weight"], self.parameters[layer[1] + ".bias"]
                if layer[0] == "conv":
                    edge = [layer[5], layer[5]]
                    x = tf.nn.conv2d(x, w, strides=1, padding=[[0, 0], edge, edge, [0, 0]]) + b
                else:
                    x = tf.matmul(x, w, transpose_b=True) + b
            elif layer[0] == "activation":
                x = functions[layer[1]](x)
            elif layer[0] == "pool":
                x = tf.nn.max_pool2d(x, 2, 2, "VALID")
            else:
                x = tf.reshape(tf.transpose(x, (0, 3, 1, 2)), (self.work.batch, -1))
        return x

    def train(self):
        tf, numbers = self.tf, self.work.optimizer
        names = list(self.parameters)
        with tf.GradientTape() as tape:
            logits = self.infer()
            smoothing = self.work.label_smoothing
            target = tf.one_hot(self.labels, self.work.classes) * (1 - smoothing) + smoothing / self.work.classes
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(target, logits))
        gradients = tape.gradient(loss, [self.parameters[name] for name in names])
        rate, decay = numbers["learning_rate"], numbers["weight_decay"]
        count = self.updates.assign_add(1.0)
        done = []
        for name, gradient in zip(names, gradients):
            value, (first, second) = self.parameters[name], self.moments[name]
            if decay and numbers["name"] == "adamw":
                value.assign(value * (1 - rate * decay))
            elif decay:
                gradient = gradient + decay * value
            if numbers["name"] == "sgd":
                momentum = numbers["momentum"]
                velocity = first.assign(momentum * first + gradient) if momentum else gradient
                change = rate * (gradient + momentum * velocity if numbers["nesterov"] else velocity)
            else:
                beta1, beta2 = numbers["beta1"], numbers["beta2"]
                m = first.assign(beta1 * first + (1 - beta1) * gradient)
                v = second.assign(beta2 * second + (1 - beta2) * gradient * gradient)
                change = rate / (1 - beta1 ** count) * m / (tf.sqrt(v / (1 - beta2 ** count)) + numbers["epsilon"])
            done.append(value.assign_sub(change))
        # Who has the loss has waited for the updates.
        with tf.control_dependencies(done):
            return tf.identity(loss)

    def has_phases(self):
        return False  # a step is one traced function

    def step(self):
        with self.tf.device(self.place):
            self.result = self.function()

    def reset(self):
        for name, value in self.initial.items():
            self.parameters[name].assign(value)
            for moment in self.moments[name]:
                moment.assign(value * 0)
        self.updates.assign(0.0)
        self.result = None
        self.upload(0)

    def upload(self, index):
        images, labels = self.batch(index)
        self.images.assign(images)
        self.labels.assign(labels)

    def loss(self):
        return float(self.result) if self.work.training else host_loss(self.np, self.result.numpy(), self.labels.numpy())

    def synchronize(self):
        if self.result is not None:
            self.result.numpy()

    def memory(self):
        if "GPU" not in self.place:
            return (None, None)
        return (self.tf.config.experimental.get_memory_info(self.place.strip("/"))["peak"], None)

    def device_name(self):
        return "cpu" if "CPU" in self.place else "cuda:" + self.place[-1]


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


def missing_module(peer):
    """Nothing, or what is not installed. Loads nothing, so it is quick."""
    for module in MODULES[peer.split("-")[0]]:
        if importlib.util.find_spec(module) is None:
            return "no module {}".format(module)
    return None


def installed_version(peer):
    """The version of a peer's framework, without loading it; None where it is unknown."""
    import importlib.metadata
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(MODULES[peer.split("-")[0]][0])
    return None


def availability(peer, versions):
    """Nothing, or why a peer cannot run. Adds what it loads to `versions`."""
    reason = missing_module(peer)
    if reason is not None:
        return reason
    for module in MODULES[peer.split("-")[0]]:
        try:
            loaded = importlib.import_module(module)
        except Exception as error:  # broken installations fail in many ways
            return "import {}: {}: {}".format(module, type(error).__name__, error)
        versions[module] = str(getattr(loaded, "__version__", "unknown"))
    if peer.startswith("torch"):
        import torch
        if importlib.util.find_spec("torchvision") is not None:
            with contextlib.suppress(Exception):
                versions["torchvision"] = importlib.import_module("torchvision").__version__
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


# ---- As Ridgeline's child ----------------------------------------------------------------------------------------------

class Service:
    def __init__(self):
        self.run = None

    def hello(self, request):
        limit_threads(request.get("threads", 0))
        begin, versions, peers = clock(), {"python": platform.python_version()}, {}
        for peer in request["peers"]:
            reason = availability(peer, versions)
            peers[peer] = {"available": reason is None, "reason": reason}
        return {"worker": 1, "versions": versions, "peers": peers, "import_seconds": clock() - begin}

    def installed(self, request):
        return {"peers": {peer: {"reason": missing_module(peer), "version": installed_version(peer)}
                          for peer in request["peers"]}}

    def prepare(self, request):
        self.run = None
        gc.collect()  # its memory is free before the next one takes some
        limit_threads(request["threads"])
        work = Work(request["work"])
        samples = read_safetensors(request["samples"])
        arrays = Arrays(read_safetensors(request["weights"]), samples["images"], samples["labels"], work)
        self.run = Run(request["peer"], request["options"], work, arrays, request["device"], request["threads"], 0)
        return {"setup_seconds": self.run.setup_seconds, "compile_seconds": self.run.compile_seconds,
                "device": self.run.peer.device_name()}

    def prepared(self):
        if self.run is None:
            raise Unavailable("nothing is prepared")
        return self.run

    def step(self, request):
        return self.prepared().measure(request["count"], request["kind"], request["upload"])

    def queued(self, request):
        return self.prepared().queued(request["count"])

    def losses(self, request):
        return {"losses": self.prepared().losses(request["steps"], request["loss_scale"])}

    def memory(self, request):
        return self.prepared().memory()

    def answer(self, request):
        handlers = {"hello": self.hello, "installed": self.installed, "prepare": self.prepare, "step": self.step, "queued": self.queued,
                    "losses": self.losses, "memory": self.memory, "stop": lambda request: {}}
        try:
            return handlers[request["do"]](request)
        except Unavailable as error:
            return {"error": str(error), "unavailable": True}
        except Exception as error:
            say(traceback.format_exc())
            text = str(error).strip() or "no message"
            return {"error": "{}: {}".format(type(error).__name__, text), "unavailable": False}


def serve():
    # Whatever frameworks print goes to standard error, also from their C++ parts; the answers have a descriptor of their own.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    requests = queue.Queue()

    def listen():
        for line in sys.stdin:
            requests.put(line)
        os._exit(0)  # Ridgeline is gone: whatever is being computed, nobody waits for it

    threading.Thread(target=listen, daemon=True).start()
    service = Service()
    while True:
        request = json.loads(requests.get())
        answer = dict(service.answer(request), id=request["id"])
        out.write(json.dumps(answer) + "\n")
        out.flush()
        if request["do"] == "stop":
            return 0


# ---- Alone -------------------------------------------------------------------------------------------------------------

TURN = 10  # measured steps before the next peer's turn
NORMALISATIONS = {"unit": ([0.0], [1.0]), "mnist": ([0.1307], [0.3081]),
                  "imagenet": ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])}


def initial_weights(work, seed):
    """mlp's and mnist_cnn's, uniform like PyTorch's; the other networks' are the framework's own."""
    if work.model not in ("mlp", "mnist_cnn"):
        return None
    import numpy as np
    generator, weights, bound = np.random.RandomState(seed), {}, 1.0
    for name, shape in parameter_shapes(layers_of(work)).items():
        if name.endswith(".weight"):  # comes before its bias
            bound = 1.0 / math.sqrt(np.prod(shape[1:]))
        weights[name] = generator.uniform(-bound, bound, shape).astype(np.float32)
    return weights


def synthetic_batch(work, seed):
    import numpy as np
    generator = np.random.RandomState(seed)
    images = generator.randint(0, 256, (work.batch,) + work.image, dtype=np.uint8)
    return images, (np.arange(work.batch) % work.classes).astype(np.int32)


def first_line(path, key):
    with contextlib.suppress(OSError):
        with open(path) as file:
            for line in file:
                if line.startswith(key):
                    return line.split(":", 1)[1].strip()
    return ""


def processor_name():
    if sys.platform == "darwin":
        import subprocess
        found = subprocess.run(["sysctl", "-n", "machdep.cpu.brand_string"], stdout=subprocess.PIPE, check=False)
        return found.stdout.decode().strip() or platform.machine()
    return first_line("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()


def environment_record(label, versions, devices):
    fingerprint = {"system": platform.platform(), "machine": platform.machine(), "logical_processors": os.cpu_count(),
                   "versions": versions, "measured_by": "worker.py alone"}
    with contextlib.suppress(ValueError, OSError):
        fingerprint["memory_bytes"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    gpus = "; ".join(sorted({name for name in devices if not name.startswith("cpu")}))
    record = {"label": label, "host": platform.node(), "cpu": processor_name(), "gpus": gpus,
              "fingerprint": json.dumps(fingerprint, sort_keys=True)}
    record["key"] = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:32]
    return record


def normalisation_numbers(work):
    """Means, then deviations; none where pixels / 255 are taken as they are."""
    plain = not any(work.mean) and all(deviation == 1 for deviation in work.deviation)
    return [] if plain else list(work.mean) + list(work.deviation)


def work_record(work):
    """What was computed, field by field, as Ridgeline's store has it."""
    record = {"kind": work.kind, "model": work.model, "settings": work.settings, "batch": work.batch,
              "image": "x".join(map(str, work.image)), "classes": work.classes, "precision": work.precision,
              "data": "synthetic", "normalisation": normalisation_numbers(work)}
    if work.training:
        rule = work.optimizer
        record.update(optimizer=rule["name"], learning_rate=rule["learning_rate"], weight_decay=rule["weight_decay"],
                      momentum=rule["momentum"] if rule["name"] == "sgd" else 0.0)
    return record


def utc_now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def median(values):
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


class AloneRun:
    """A peer with one configuration, and what becomes its record."""

    def __init__(self, options, group, text, work):
        self.options, self.text, self.work = options, text, work
        name, self.chosen = parse_peer(text)
        self.name, self.samples, self.began = name, [], clock()
        self.record = {
            "uuid": str(uuid.uuid4()), "command": "bench", "arguments": " ".join(sys.argv), "group": group,
            "label": options.label, "started": utc_now(), "status": "complete", "seed": options.seed,
            "work": work_record(work),
            "executor": {"backend": name, "device": "cpu", "threads": options.threads or os.cpu_count(),
                         "modes": sorted(self.chosen)},
            "numbers": {}, "notes": {"clock": "host, synchronised"}}

    def prepare(self):
        work, options, versions = self.work, self.options, {"python": platform.python_version()}
        reason = availability(self.name, versions)
        if reason:
            raise Unavailable(reason)
        arrays = Arrays(initial_weights(work, options.seed), *synthetic_batch(work, options.seed), work)
        self.run = Run(self.name, self.chosen, work, arrays, None, options.threads, options.seed)
        self.versions, self.device = versions, self.run.peer.device_name()
        self.record["executor"]["device"] = self.device.split()[0]
        self.record["notes"]["peer_version"] = ", ".join("{} {}".format(*item) for item in sorted(versions.items()))
        self.record["numbers"]["setup_seconds"] = self.run.setup_seconds
        if self.run.compile_seconds is not None:
            self.record["numbers"]["compile_seconds"] = self.run.compile_seconds

    def measure(self, count, kind, block):
        began = clock() - self.began
        columns = self.run.measure(count, kind, False)
        for i in range(count):
            sample = {"process": 0, "block": block, "iteration": len(self.samples), "kind": kind}
            for name, values in columns.items():
                sample[name + "_seconds"] = values[i] + (began if name == "at" else 0.0)
            self.samples.append(sample)

    def queue(self, count, block):
        """Beside the steps that are waited for, as many that are not."""
        at, queued = clock() - self.began, self.run.queued(count)
        if queued["wall"] is not None:
            self.samples.append({"process": 0, "block": block, "iteration": len(self.samples), "kind": "queued",
                                 "at_seconds": at, "wall_seconds": queued["wall"], "device_seconds": queued["device"]})

    def times(self, kind="measured", column="wall_seconds"):
        return [sample[column] for sample in self.samples if sample["kind"] == kind]

    def finish(self):
        record, times, memory = self.record, self.times(), self.run.memory()
        record["finished"], record["samples"] = utc_now(), self.samples
        record["numbers"]["first_step_seconds"] = self.samples[0]["wall_seconds"]
        if times:
            record["numbers"]["median_seconds"] = median(times)
            record["numbers"]["samples_per_second"] = self.work.batch / median(self.times("queued", "device_seconds") or times)
        record["memory"] = [{"device": "cpu", "category": "resident", "source": "measured",
                             "bytes": memory["peak_rss_bytes"]}]
        most = memory["peak_bytes"] if memory["peak_bytes"] is not None else memory["reserved_bytes"]
        if most is not None:
            record["numbers"]["peak_memory_bytes"] = most
            record["memory"].append({"device": record["executor"]["device"], "category": "framework", "source": "measured",
                                     "bytes": most})
        return record


def measure_alone(options, group, texts, work, runs):
    """All peers on one configuration, in turns, so that a change of the machine's speed meets all of them."""
    ready = []
    for text in texts:
        try:
            run = AloneRun(options, group, text, Work(dict(work)))
            run.prepare()
            ready.append(run)
        except Unavailable as error:
            say("{} {}, batch {}: n/a: {}".format(text, work["model"], work["batch"], error))
        except Exception as error:
            say("{} {}, batch {}: failed: {}: {}".format(text, work["model"], work["batch"], type(error).__name__, error))
    runs += ready
    generator = random.Random(options.seed)
    for run in ready:
        run.measure(options.warmup, "warmup", 0)
    for block in range((options.iterations + TURN - 1) // TURN):
        generator.shuffle(ready)
        for run in ready:
            if len(ready) > 1:
                run.measure(1, "warmup", block)  # others have used the caches
            count = min(TURN, options.iterations - block * TURN)
            run.measure(count, "measured", block)
            run.queue(count, block)


def write_whole(path, text):
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)


def works_of(options):
    settings = dict(item.split("=", 1) for item in options.set)
    optimizer = {"name": options.optimizer, "learning_rate": options.lr, "weight_decay": options.weight_decay,
                 "momentum": options.momentum, "nesterov": False, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
    for model in options.models.split(","):
        if model not in ZOO and model not in DEFAULTS:
            raise SystemExit("unknown model '{}'; known: {}".format(model, ", ".join(("mlp", "mnist_cnn") + ZOO)))
        zoo = model in ZOO
        pieces = [int(piece) for piece in options.image.split("x")] if options.image else [224 if zoo else 28]
        pieces = pieces * 2 if len(pieces) == 1 else pieces
        channels, height, width = pieces if len(pieces) == 3 else [3 if zoo else 1] + pieces
        mean, deviation = (values * channels if len(values) == 1 else values for values in NORMALISATIONS[options.normalize])
        if len(mean) != channels:
            raise SystemExit("--normalize {} is for images of {} channels".format(options.normalize, len(mean)))
        for batch in options.batch.split(","):
            yield {"kind": "inference" if options.inference else "training", "model": model, "settings": settings,
                   "batch": int(batch), "channels": channels, "height": height, "width": width,
                   "classes": options.classes or (1000 if zoo else 10), "precision": options.precision,
                   "optimizer": optimizer, "mean": mean, "deviation": deviation}


def alone(options):
    if not (options.models and options.peers and options.out):
        raise SystemExit("--alone needs --models, --peers and --out; see --help")
    if options.iterations < 1 or options.warmup < 1:
        raise SystemExit("--iterations and --warmup must be at least 1")
    limit_threads(options.threads)
    group, runs, records, interrupted = str(uuid.uuid4()), [], [], False
    for work in works_of(options):
        measured = []
        try:
            measure_alone(options, group, options.peers.split(","), work, measured)
        except KeyboardInterrupt:
            interrupted = True
        for run in measured:
            if run.samples:
                records.append(run.finish())
                runs.append(run)
                run.run = None
                gc.collect()  # its memory is the next one's
            times = run.times()
            if times:
                say("{} {} batch {} on {}: median {:.3f} ms, {:.1f} samples/s, {} steps".format(
                    run.text, run.work.model, run.work.batch, run.device, median(times) * 1e3,
                    run.work.batch / median(times), len(times)))
            if interrupted:
                run.record["status"] = "interrupted"
        if interrupted:
            break
    if not records:
        say("nothing was measured; {} is not written".format(options.out))
        return 1
    versions = {name: version for run in runs for name, version in run.versions.items()}
    environment = environment_record(options.env_label, versions, [run.device for run in runs])
    for record in records:
        record["environment"] = environment["key"]
    write_whole(options.out, json.dumps({"ridgeline_import": 2, "environment": environment, "runs": records}, indent=1) + "\n")
    say("wrote {} with {} run{}: ridgeline store import {}".format(options.out, len(records), "s" if len(records) > 1 else "",
                                                                options.out))
    return 130 if interrupted else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alone", action="store_true", help="measure now and write a file; otherwise wait for requests")
    parser.add_argument("--models", help="mlp, mnist_cnn or torchvision's names, with commas")
    parser.add_argument("--peers", help="with commas, options behind a plus: torch-mps+channels_last")
    parser.add_argument("--batch", default="64", help="one or several with commas [64]")
    parser.add_argument("--image", help="224, 224x224 or 3x224x224 [the model's own]")
    parser.add_argument("--classes", type=int, help="[the model's own]")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "tf32", "bf16", "fp16"))
    parser.add_argument("--optimizer", default="sgd", choices=("sgd", "adam", "adamw"))
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=0.0)
    parser.add_argument("--normalize", default="unit", choices=tuple(NORMALISATIONS))
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="an option of the model")
    parser.add_argument("--inference", action="store_true", help="forward passes only")
    parser.add_argument("--threads", type=int, default=0, help="[the framework's own choice]")
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--label", default="", help="of the runs in the store")
    parser.add_argument("--env-label", default="", help="of this machine in the store")
    parser.add_argument("--out", help="the file to write")
    options = parser.parse_args()
    return alone(options) if options.alone else serve()


if __name__ == "__main__":
    sys.exit(main())
