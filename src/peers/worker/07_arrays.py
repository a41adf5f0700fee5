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
        layers = work.chain(peer, ("flatten", "linear", "activation"))
        import numpy
        self.np = numpy
        self.cuda = peer == "cupy"
        if self.cuda:
            import cupy
            cupy.cuda.Device(int(device.split(":")[1]) if device else 0).use()
        self.xp = xp = cupy if self.cuda else numpy
        self.work = work
        self.names = [layer[1] for layer in layers if layer[0] == "linear"]
        self.activations = [array_activation(xp, layer[1]) for layer in layers if layer[0] == "activation"]
        if [layer[0] for layer in layers] != ["flatten"] + ["linear", "activation"] * len(self.activations) + ["linear"]:
            raise Unavailable("{} computes an activation between dense layers, and {} is built otherwise".format(
                peer, work.model))
        shapes = work.network.file_shapes()
        check_weights(arrays.weights, shapes)
        self.initial = {name: xp.asarray(arrays.weights[name], dtype=xp.float32) for name in shapes}
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
        for i, name in enumerate(self.names):
            z = self.inputs[-1] @ self.parameters[name + ".weight"].T + self.parameters[name + ".bias"]
            self.sums.append(z)
            if i < len(self.activations):
                self.inputs.append(self.activations[i][0](z))
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
                diff *= self.activations[i - 1][1](self.sums[i - 1], self.inputs[i])

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


