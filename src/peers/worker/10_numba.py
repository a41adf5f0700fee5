# ---- Numba: mnist_cnn and mlp by either of them ----------------------------------------------------------------------

class NumbaPeer(Peer):
    """Full backpropagation through mnist_cnn or mlp, gradients averaged over the batch, nothing allocated in a step."""

    def __init__(self, peer, options, work, arrays, device, seed):
        self.layers = work.chain(peer, ("conv", "pool", "flatten", "linear", "activation"))
        import numpy as np
        self.np, self.work, self.host = np, work, arrays.batches
        shapes = work.network.file_shapes()
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
                loops.activation_forward(ACTIVATIONS.index(layer[1]), x.reshape(x.size), y.reshape(y.size))
            elif layer[0] == "pool":
                loops.pool_forward(x, y, self.choices[k])
        if self.work.training:
            loops.loss(values[-1], self.labels, self.work.label_smoothing, self.losses, self.diffs[-1])

    def backward(self):
        loops = self.loops
        for k in reversed(range(len(self.layers))):
            layer, x, dy, dx = self.layers[k], self.values[k], self.diffs[k + 1], self.diffs[k]
            first = all(earlier[0] == "flatten" for earlier in self.layers[:k])  # the image's gradient is not needed
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
                loops.activation_backward(ACTIVATIONS.index(layer[1]), x.reshape(x.size), dy.reshape(dy.size),
                                          dx.reshape(dx.size))
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


