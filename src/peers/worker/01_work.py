# ---- What is to be done ------------------------------------------------------------------------------------------------

class Work:
    """One configuration: the fields of the message "work". Without a network it names one of torchvision's, and its sizes."""

    def __init__(self, fields):
        self.kind, self.batch, self.precision = fields["kind"], fields["batch"], fields["precision"]
        self.optimizer, self.label_smoothing = fields["optimizer"], fields.get("label_smoothing", 0.0)
        self.network = Network(fields["network"]) if fields.get("network") else None
        if self.network:
            self.model, self.settings = self.network.model, self.network.settings
            self.image, self.classes = self.network.shape(self.network.image)[1:], self.network.shape(self.network.logits)[1]
        else:
            self.model, self.settings = fields["model"], {}
            self.image, self.classes = fields["image"], fields["classes"]
        self.mean = fields.get("mean") or [0.0] * self.image[0]
        self.deviation = fields.get("deviation") or [1.0] * self.image[0]

    @property
    def training(self):
        return self.kind == "training"

    def scale_and_shift(self):
        """pixel * scale + shift is the normalised number, channel by channel."""
        return ([1.0 / (255.0 * d) for d in self.deviation], [-m / d for m, d in zip(self.mean, self.deviation)])

    def auxiliary_weights(self):
        """Of the losses of auxiliary heads; without a network's document those of the papers."""
        if self.network:
            return [head["loss_weight"] for head in self.network.auxiliary]
        return {"googlenet": [0.3, 0.3], "inception_v3": [0.4]}.get(self.model, [])

    def chain(self, peer, kinds):
        """The network's layers, for peers that compute in fp32 alone, train everything and know layers of these kinds."""
        if self.precision != "fp32":
            raise Unavailable("{} computes in fp32 here, not in {}".format(peer, self.precision))
        if self.network is None:
            raise Unavailable("{} computes networks from files here, not torchvision's {}".format(peer, self.model))
        if any(entry["frozen"] for entry in self.network.parameters.values()):
            raise Unavailable("{} trains all parameters here; none can be frozen".format(peer))
        layers = layers_of(self.network)
        for layer in layers:
            if layer[0] not in kinds:
                raise Unavailable("{} computes networks of {} layers here; {} has {}".format(
                    peer, ", ".join(kinds), self.model, layer[0]))
        return layers


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


