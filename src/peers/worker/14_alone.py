# ---- Alone -------------------------------------------------------------------------------------------------------------

TURN = 10  # measured steps before the next peer's turn
NORMALISATIONS = {"unit": ([0.0], [1.0]), "mnist": ([0.1307], [0.3081]),
                  "imagenet": ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])}


def initial_weights(network, seed):
    """As the network's document says: constants, uniform within a bound, normal with a deviation."""
    import numpy as np
    if any(entry["init"]["kind"] == "given" for entry in network.parameters.values()):
        raise Unavailable("the weights of {} lie in a file of their own: --weights FILE names it, and `ridgeline export` "
                          "writes it".format(network.model))
    generator, weights = np.random.RandomState(seed), {}
    for name, entry in network.parameters.items():
        kind, amount, shape = entry["init"]["kind"], entry["init"]["amount"], tuple(entry["file_shape"])
        if kind == "uniform":
            values = generator.uniform(-amount, amount, shape)
        elif kind == "constant":
            values = np.full(shape, amount)
        else:
            values = amount * generator.standard_normal(shape)
            while kind == "truncated_normal" and (abs(values) > 2).any():
                values = np.where(abs(values) > 2, amount * generator.standard_normal(shape), values)
        weights[name] = values.astype(np.float32)
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
    record = {"kind": work.kind, "model": work.model, "model_hash": work.network.model_hash if work.network else "",
              "settings": work.settings, "batch": work.batch, "image": "x".join(map(str, work.image)),
              "classes": work.classes, "precision": work.precision, "data": "synthetic",
              "normalisation": normalisation_numbers(work)}
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
        if work.network is None and name.startswith("torch") and "torchvision" not in self.chosen:
            self.chosen.append("torchvision")
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
        reason = availability(self.name, self.chosen, versions)
        if reason:
            raise Unavailable(reason)
        weights = None
        if work.network:
            weights = read_safetensors(options.weights) if options.weights else initial_weights(work.network, options.seed)
        arrays = Arrays(weights, *synthetic_batch(work, options.seed), work)
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
            run = AloneRun(options, group, text, work)
            run.prepare()
            ready.append(run)
        except Unavailable as error:
            say("{} {}, batch {}: n/a: {}".format(text, work.model, work.batch, error))
        except Exception as error:
            say("{} {}, batch {}: failed: {}: {}".format(text, work.model, work.batch, type(error).__name__, error))
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


def network_fields(options, model):
    """Of the message "work": a file of `ridgeline describe --graph`, or a name of torchvision's with its sizes."""
    if model.endswith(".json"):
        if options.image or options.classes:
            raise SystemExit("--image and --classes are for torchvision's names; {} has its own".format(model))
        try:
            with open(model) as file:
                return {"network": json.load(file)}
        except (OSError, ValueError) as error:
            raise SystemExit("{}: {}".format(model, error))
    sizes = [int(piece) for piece in options.image.split("x")] if options.image else [224]
    sizes = sizes * 2 if len(sizes) == 1 else sizes
    return {"model": model, "image": tuple(sizes if len(sizes) == 3 else [3] + sizes), "classes": options.classes or 1000}


def works_of(options):
    optimizer = {"name": options.optimizer, "learning_rate": options.lr, "weight_decay": options.weight_decay,
                 "momentum": options.momentum, "nesterov": False, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
    for model in options.models.split(","):
        fields = dict(network_fields(options, model), kind="inference" if options.inference else "training",
                      precision=options.precision, optimizer=optimizer)
        for batch in options.batch.split(","):
            work = Work(dict(fields, batch=int(batch)))
            channels = work.image[0]
            work.mean, work.deviation = (values * channels if len(values) == 1 else values
                                         for values in NORMALISATIONS[options.normalize])
            if len(work.mean) != channels:
                raise SystemExit("--normalize {} is for images of {} channels".format(options.normalize, len(work.mean)))
            yield work


def alone(options):
    if not (options.models and options.peers and options.out):
        raise SystemExit("--alone needs --models, --peers and --out; see --help")
    if options.weights and "," in options.models:
        raise SystemExit("--weights are those of one model, and --models names several")
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
    parser.add_argument("--models", help="torchvision's names and files of `ridgeline describe --graph`, with commas")
    parser.add_argument("--weights", help="of the network, a safetensors file; needed where it was imported from a file")
    parser.add_argument("--peers", help="with commas, options behind a plus: torch-mps+channels_last")
    parser.add_argument("--batch", default="64", help="one or several with commas [64]")
    parser.add_argument("--image", help="of torchvision's networks: 224, 224x224 or 3x224x224 [224]")
    parser.add_argument("--classes", type=int, help="of torchvision's networks [1000]")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "tf32", "bf16", "fp16"))
    parser.add_argument("--optimizer", default="sgd", choices=("sgd", "adam", "adamw"))
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=0.0)
    parser.add_argument("--normalize", default="unit", choices=tuple(NORMALISATIONS))
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
