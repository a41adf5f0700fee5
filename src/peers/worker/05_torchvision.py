# ---- PyTorch: torchvision's own modules --------------------------------------------------------------------------------

def torchvision_network(torch, work, weights):
    """torchvision's module of that name, the code that people run; with its own weights where none are given."""
    import torchvision
    make = getattr(torchvision.models, work.model, None)
    if not callable(make):
        raise Unavailable("torchvision {} has no network '{}'; leave out +torchvision".format(
            torchvision.__version__, work.model))
    if work.image[0] != 3:
        raise Unavailable("torchvision's {} takes images of 3 channels, not {}".format(work.model, work.image[0]))
    names = {"stochastic_depth": "stochastic_depth_prob"}
    options = {names.get(name, name): float(value) for name, value in work.settings.items()}
    module = make(num_classes=work.classes, **options).train(work.training)
    if weights is not None:
        load_weights(torch, module, work.model, weights)
        freeze(torch, module, {name for name, entry in work.network.parameters.items() if entry["frozen"]})
    return module


def load_weights(torch, module, model, weights):
    # Not load_state_dict: MNASNet's refuses dicts without a version.
    state, given = ({name: value for name, value in dictionary.items() if not name.endswith("num_batches_tracked")}
                    for dictionary in (module.state_dict(), weights))
    if state.keys() != given.keys():
        raise ValueError("the weights do not fit torchvision's {}: missing {}, unexpected {}".format(
            model, sorted(state.keys() - given.keys())[:3], sorted(given.keys() - state.keys())[:3]))
    check_weights(given, {name: tuple(value.shape) for name, value in state.items()})
    with torch.no_grad():
        for name, value in state.items():
            value.copy_(torch.from_numpy(given[name]))


def freeze(torch, module, names):
    for name, value in module.named_parameters():
        value.requires_grad_(name not in names)
    for layer in module.modules():
        # Like ours: a batch norm with frozen weights uses its running statistics.
        if isinstance(layer, torch.nn.BatchNorm2d) and not layer.weight.requires_grad:
            layer.eval()

