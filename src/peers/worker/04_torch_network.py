# ---- PyTorch: a module of any network ----------------------------------------------------------------------------------

class TorchNetwork:
    """Writes a network as a graph of PyTorch's own functions, which torch.fx turns into a module without loops or look-ups.

    The methods named like ops emit one node each. Dropout is a module, so that its rate can be set; all else is functions."""

    def __init__(self, torch, network, training):
        import torch.fx
        self.torch, self.functions, self.network, self.training = torch, torch.nn.functional, network, training
        self.graph = torch.fx.Graph()
        self.owned = {}  # the module's attributes: parameters, running statistics, dropout
        self.made = {network.image: self.graph.placeholder("image")}

    def module(self, weights):
        network = self.network
        outputs = [network.logits] + [head["logits"] for head in network.auxiliary if self.training]
        needed = network.needed(outputs)
        check_weights(weights, network.file_shapes())
        self.weights = weights
        for node in network.nodes:
            name = node["outputs"][0]
            # Statistics belong to the batch norm that uses them, a bias may belong to its convolution.
            if name in needed and name not in self.made and node["op"] != "bn_statistics":
                self.emit(node)
        results = [self.made[name] for name in outputs]
        self.graph.output(tuple(results) if len(results) > 1 else results[0])
        return self.torch.fx.GraphModule(self.owned, self.graph).train(self.training)

    def emit(self, node):
        method = getattr(self, "op_" + node["op"], None)
        if method is None:
            raise Unavailable("the op {} of {} is not known here".format(node["op"], node["layer"]))
        result = method(node, node["attributes"])
        for i, name in enumerate(node["outputs"]):
            if node["op"] == "split":
                self.made[name] = self.call(operator.getitem, result, i)
            elif i == 0:
                self.made[name] = result

    def call(self, function, *arguments, **named):
        return self.graph.call_function(function, arguments, named)

    def value(self, name):
        if name not in self.made:
            self.made[name] = self.graph.get_attr(self.own(self.tensor(name)))
        return self.made[name]

    def values(self, node):
        return [self.value(name) for name in node["inputs"]]

    def tensor(self, name):
        """A parameter or a running statistic in the shape that the network uses."""
        torch, entry = self.torch, self.network.parameters[name]
        tensor = torch.from_numpy(self.weights[name].reshape(self.network.shape(name)))
        if self.network.values[name]["role"] != "parameter":
            return tensor
        return torch.nn.Parameter(tensor, requires_grad=self.training and not entry["frozen"])

    def own(self, thing):
        name = "owned{}".format(len(self.owned))
        self.owned[name] = thing
        return name

    def in_place(self, name):
        """Whether an op may write over its input: nothing else reads it, and its producer's gradient does not need it."""
        producer = self.network.producer.get(name)
        return (producer is not None and self.network.only_user(name) is not None and
                producer["op"] in ("conv2d", "linear", "bias", "bn_apply", "add", "concat"))

    def with_bias(self, node, function, x, *others):
        """A convolution or a matrix product together with the bias that follows."""
        weights = self.value(node["inputs"][1])
        bias = self.network.only_user(node["outputs"][0])
        if bias is None or bias["op"] != "bias":
            return self.call(function, x, weights, None, *others)
        result = self.call(function, x, weights, self.value(bias["inputs"][1]), *others)
        self.made[bias["outputs"][0]] = result
        return result

    def op_conv2d(self, node, numbers):
        x, padding = self.value(node["inputs"][0]), (numbers["pad_top"], numbers["pad_left"])
        if padding != (numbers["pad_bottom"], numbers["pad_right"]):
            x, padding = self.padded(x, numbers, numbers["pad_bottom"], numbers["pad_right"], 0.0), 0
        return self.with_bias(node, self.functions.conv2d, x, both(numbers, "stride"), padding, both(numbers, "dilation"),
                              numbers["groups"])

    def op_linear(self, node, numbers):
        return self.with_bias(node, self.functions.linear, self.value(node["inputs"][0]))

    def op_bias(self, node, numbers):
        x, bias = self.values(node)
        return self.call(operator.add, x, self.per_channel(node, bias))

    def per_channel(self, node, vector):
        """A number for each channel in a shape that meets the node's first input."""
        trailing = len(self.network.shape(node["inputs"][0])) - 2
        return self.graph.call_method("reshape", (vector, (-1,) + (1,) * trailing)) if trailing else vector

    def op_activation(self, node, numbers):
        F, (x,), kind = self.functions, self.values(node), numbers["kind"]
        if kind in ("relu", "relu6", "leaky_relu"):
            slope = (numbers["slope"],) if kind == "leaky_relu" else ()
            return self.call(getattr(F, kind), x, *slope, inplace=self.in_place(node["inputs"][0]))
        if kind in ("gelu", "gelu_tanh"):
            return self.call(F.gelu, x, approximate="none" if kind == "gelu" else "tanh")
        functions = {"sigmoid": self.torch.sigmoid, "tanh": self.torch.tanh, "silu": F.silu, "hard_sigmoid": F.hardsigmoid,
                     "hard_swish": F.hardswish}
        return self.call(functions[kind], x)

    def op_bn_apply(self, node, numbers):
        x, scale, shift = (self.value(node["inputs"][i]) for i in (0, 3, 4))
        statistics = self.network.producer.get(node["inputs"][1])
        if statistics is None:  # running ones
            mean, variance = node["inputs"][1:3]
        else:
            update = [user for user in self.network.users[node["inputs"][1]] if user["op"] == "bn_update_running"][0]
            mean, variance = update["inputs"][:2]
        return self.call(self.functions.batch_norm, x, self.value(mean), self.value(variance), scale, shift,
                         self.training and statistics is not None, numbers["momentum"], numbers["epsilon"])

    def op_layer_norm(self, node, numbers):
        F, (x, scale, shift), shape = self.functions, self.values(node), self.network.shape(node["inputs"][0])
        if numbers["groups"] > 0:
            return self.call(F.group_norm, x, numbers["groups"], scale, shift, numbers["epsilon"])
        if len(shape) == 2:
            return self.call(F.layer_norm, x, shape[1:], scale, shift, numbers["epsilon"])
        x = self.graph.call_method("permute", (x, 0, 2, 3, 1))
        x = self.call(F.layer_norm, x, shape[1:2], scale, shift, numbers["epsilon"])
        return self.graph.call_method("permute", (x, 0, 3, 1, 2))

    def op_add(self, node, numbers):
        a, b = self.values(node)
        return self.call(operator.iadd if self.in_place(node["inputs"][0]) else operator.add, a, b)

    def op_multiply(self, node, numbers):
        a, b = self.values(node)
        channel = len(self.network.shape(node["inputs"][1])) == 1
        return self.call(operator.mul, a, self.per_channel(node, b) if channel else b)

    def op_concat(self, node, numbers):
        return self.call(self.torch.cat, self.values(node), 1)

    def op_slice(self, node, numbers):
        return self.call(self.torch.narrow, self.value(node["inputs"][0]), 1, numbers["begin"], numbers["channels"])

    def op_split(self, node, numbers):
        return self.call(self.torch.split, self.value(node["inputs"][0]), list(numbers["channels"]), 1)

    def op_shuffle(self, node, numbers):
        (x,), (_, channels, height, width) = self.values(node), self.network.shape(node["inputs"][0])
        groups = numbers["groups"]
        x = self.call(self.torch.reshape, x, (-1, groups, channels // groups, height, width))
        return self.call(self.torch.reshape, self.call(self.torch.transpose, x, 1, 2), (-1, channels, height, width))

    def op_reshape(self, node, numbers):
        return self.call(self.torch.reshape, self.value(node["inputs"][0]), (-1,) + tuple(numbers["shape"][1:]))

    def op_pad(self, node, numbers):
        sides = [numbers[name] for name in ("left", "right", "top", "bottom", "channels_before", "channels_behind")]
        return self.call(self.functions.pad, self.value(node["inputs"][0]), sides)

    def op_resize(self, node, numbers):
        size = (numbers["dst_h"], numbers["dst_w"])
        return self.call(self.functions.interpolate, self.value(node["inputs"][0]), size=size, mode="nearest")

    def op_dropout(self, node, numbers):
        (x,), rate = self.values(node), numbers["probability"]
        layer = stochastic_depth(self.torch, rate) if numbers["per_sample"] else self.torch.nn.Dropout(rate)
        return self.graph.call_module(self.own(layer), (x,))

    def op_pool(self, node, numbers):
        F, (x,), source, target = self.functions, self.values(node), *(
            self.network.shape(node[side][0])[2:] for side in ("inputs", "outputs"))
        if numbers["kind"] == "adaptive_average":
            return self.call(F.adaptive_avg_pool2d, x, target)
        pads = [numbers["pad_" + side] for side in ("top", "left", "bottom", "right")]
        kernel, stride, dilation = (both(numbers, name) for name in ("kernel", "stride", "dilation"))
        average = numbers["kind"] == "average"
        if average and kernel == source and target == (1, 1) and not any(pads):
            return self.call(F.adaptive_avg_pool2d, x, 1)  # PyTorch's way to global averages
        if average and dilation != (1, 1):
            raise Unavailable("{}: PyTorch has no average over windows with gaps".format(node["layer"]))
        if pads[:2] != pads[2:] or 2 * pads[0] > kernel[0] or 2 * pads[1] > kernel[1]:
            return self.uneven_pool(node, x, source, target)
        if average:
            return self.call(F.avg_pool2d, x, kernel, stride, pads[:2], numbers["ceil_mode"], numbers["count_include_pad"])
        return self.call(F.max_pool2d, x, kernel, stride, pads[:2], dilation, numbers["ceil_mode"])

    def uneven_pool(self, node, x, source, target):
        """Pads that PyTorch's pools do not take: the image is padded, or cut, to just what the windows cover."""
        F, numbers = self.functions, node["attributes"]
        kernel, stride, dilation = (both(numbers, name) for name in ("kernel", "stride", "dilation"))
        covered = [(count - 1) * step + (size - 1) * gap + 1
                   for count, step, size, gap in zip(target, stride, kernel, dilation)]
        below, right = covered[0] - source[0] - numbers["pad_top"], covered[1] - source[1] - numbers["pad_left"]
        if numbers["kind"] == "max":
            x = self.padded(x, numbers, below, right, -math.inf)
            return self.call(F.max_pool2d, x, kernel, stride, 0, dilation)
        counted = self.torch.zeros((1, 1) + tuple(covered))
        rows = [numbers["pad_top"], numbers["pad_top"] + source[0]]
        columns = [numbers["pad_left"], numbers["pad_left"] + source[1]]
        if numbers["count_include_pad"]:
            rows, columns = [0, rows[1] + numbers["pad_bottom"]], [0, columns[1] + numbers["pad_right"]]
        counted[:, :, rows[0]:rows[1], columns[0]:columns[1]] = 1.0
        share = self.graph.get_attr(self.own(F.avg_pool2d(counted, kernel, stride)))
        sums = self.call(F.avg_pool2d, self.padded(x, numbers, below, right, 0.0), kernel, stride)
        return self.call(operator.truediv, sums, share)

    def padded(self, x, numbers, below, right, fill):
        sides = (numbers["pad_left"], right, numbers["pad_top"], below)
        return self.call(self.functions.pad, x, sides, "constant", fill)


def both(numbers, name):
    return (numbers[name + "_h"], numbers[name + "_w"])


def stochastic_depth(torch, rate):
    """Dropout of whole samples: each stays, scaled by what the others lose, or becomes zero."""
    class StochasticDepth(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.p = rate

        def forward(self, x):
            if not self.training or self.p == 0.0:
                return x
            noise = torch.empty((x.shape[0],) + (1,) * (x.dim() - 1), dtype=x.dtype, device=x.device)
            return x * noise.bernoulli_(1.0 - self.p).div_(1.0 - self.p)

    return StochasticDepth()

