# ---- TensorFlow --------------------------------------------------------------------------------------------------------

class TensorFlowPeer(Peer):
    """mlp and mnist_cnn as one traced function a step. Images are NHWC inside: its CPU convolutions know nothing else."""

    def __init__(self, peer, options, work, arrays, device, seed):
        self.layers = work.chain(peer, ("conv", "pool", "flatten", "linear", "activation"))
        import numpy as np
        import tensorflow as tf
        self.np, self.tf, self.work, self.host = np, tf, work, arrays.batches
        self.place = "/GPU:" + device.split(":")[1] if device and device.startswith("cuda") else "/CPU:0"
        if "GPU" in self.place and not tf.config.list_physical_devices("GPU"):
            raise Unavailable("TensorFlow finds no GPU")
        tf.config.experimental.enable_tensor_float_32_execution(False)
        shapes = work.network.file_shapes()
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


