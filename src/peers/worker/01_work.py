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


