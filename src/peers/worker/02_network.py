# ---- The network -------------------------------------------------------------------------------------------------------

class Network:
    """A network's document: nodes in the order of their computation, values by name. docs/peers.md has the fields."""

    def __init__(self, document):
        if document.get("ridgeline_graph") != GRAPH_VERSION:
            raise Unavailable("the network's document is of version {}, and this worker reads {}".format(
                document.get("ridgeline_graph"), GRAPH_VERSION))
        self.model, self.model_hash, self.settings = document["model"], document["model_hash"], document["settings"]
        self.image, self.logits, self.auxiliary = document["image"], document["logits"], document["auxiliary"]
        self.nodes, self.values = document["nodes"], {value["name"]: value for value in document["values"]}
        self.parameters = {entry["name"]: entry for entry in document["parameters"]}
        self.producer = {name: node for node in self.nodes for name in node["outputs"]}
        self.users = {name: [] for name in self.values}
        for node in self.nodes:
            for name in node["inputs"]:
                self.users[name].append(node)

    def shape(self, name):
        return tuple(self.values[name]["shape"])

    def only_user(self, name):
        """The node that alone reads a value; nothing where several do or where it leaves the network."""
        leaves = name == self.logits or any(name == head["logits"] for head in self.auxiliary)
        return self.users[name][0] if len(self.users[name]) == 1 and not leaves else None

    def file_shapes(self):
        """Of the parameters and running statistics, as weight files have them."""
        return {name: tuple(entry["file_shape"]) for name, entry in self.parameters.items()}

    def needed(self, outputs):
        """The names of the values that these come from, with their own."""
        found, waiting = set(), list(outputs)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.producer[name]["inputs"] if name in self.producer else []
        return found


def check_weights(weights, shapes):
    for name, shape in shapes.items():
        if name not in weights or tuple(weights[name].shape) != shape:
            found = "x".join(map(str, weights[name].shape)) if name in weights else "nothing"
            raise ValueError("the weights have {} for {}, which is {} here".format(found, name, "x".join(map(str, shape))))


def layers_of(network):
    """A network without branches as a list of layers: (kind, name, sizes...), for peers that know only a few kinds."""
    layers, value = [], network.image
    while value != network.logits:
        node = network.only_user(value)
        if node is None:
            raise Unavailable("{} has branches".format(network.model))
        layers.append(layer_of(network, node))
        value = node["outputs"][0]
        if node["op"] in ("conv2d", "linear"):
            bias = network.only_user(value)
            if bias is None or bias["op"] != "bias":
                raise Unavailable("{} has no bias".format(node["layer"]))
            if [node["inputs"][1], bias["inputs"][1]] != [node["layer"] + ".weight", node["layer"] + ".bias"]:
                raise Unavailable("{} has parameters of other names".format(node["layer"]))
            value = bias["outputs"][0]
    return layers


def layer_of(network, node):
    numbers, op, name = node["attributes"], node["op"], node["layer"]
    plain = all(numbers.get(key, 1) == 1 for key in ("dilation_h", "dilation_w", "groups"))
    pads = {numbers.get("pad_" + side, 0) for side in ("top", "left", "bottom", "right")}
    window = (numbers.get("kernel_h"), numbers.get("kernel_w"), numbers.get("stride_h"), numbers.get("stride_w"))
    if op == "linear":
        units, features = network.shape(node["inputs"][1])
        return ("linear", name, features, units)
    if op == "conv2d" and plain and len(pads) == 1 and window[0] == window[1] and window[2:] == (1, 1):
        filters, channels = network.shape(node["inputs"][1])[:2]
        return ("conv", name, channels, filters, window[0], pads.pop())
    if op == "pool" and numbers["kind"] == "max" and plain and pads == {0} and window == (2, 2, 2, 2):
        if not numbers["ceil_mode"]:
            return ("pool", name)
    if op == "activation" and numbers["kind"] in ACTIVATIONS and numbers.get("slope", LEAKY_SLOPE) == LEAKY_SLOPE:
        return ("activation", numbers["kind"])
    if op == "reshape" and len(numbers["shape"]) == 2:
        return ("flatten", name)
    return (op, name)

