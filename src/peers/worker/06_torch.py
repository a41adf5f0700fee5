# ---- PyTorch -----------------------------------------------------------------------------------------------------------

class TorchPeer(Peer):
    def __init__(self, peer, options, work, arrays, device, seed):
        import torch
        self.torch, self.work, self.options = torch, work, options
        self.kind = peer[len("torch-"):]
        self.device = torch.device(device or ("cuda:0" if self.kind == "cuda" else self.kind))
        self.graph, self.graph_loss = None, None
        self.auxiliary_weights = work.auxiliary_weights()
        self.compiles = "compile" in options or "cuda-graph" in options
        self.set_precision()
        if self.kind == "cuda":  # nothing of earlier work counts
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)
        torch.manual_seed(seed)
        if "torchvision" in options:
            network = torchvision_network(torch, work, arrays.weights)
        else:
            network = TorchNetwork(torch, work.network, work.training).module(arrays.weights)
        self.layout = torch.channels_last if "channels_last" in options else torch.contiguous_format
        self.network = network.to(self.device).to(memory_format=self.layout)
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
            heads = logits if isinstance(logits, tuple) else (logits,)
            losses = [torch.nn.functional.cross_entropy(head, labels, label_smoothing=self.work.label_smoothing)
                      for head in heads]
            for loss, weight in zip(losses[1:], self.auxiliary_weights):
                losses[0] = losses[0] + weight * loss
            return losses[0]

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
        layers = [layer for layer in self.network.modules()
                  if type(layer).__name__ in ("Dropout", "StochasticDepth") and layer.p > 0 and layer.training]
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


