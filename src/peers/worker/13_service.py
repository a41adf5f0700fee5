# ---- As Ridgeline's child ----------------------------------------------------------------------------------------------

class Service:
    def __init__(self):
        self.run = None

    def hello(self, request):
        limit_threads(request.get("threads", 0))
        begin, versions, peers = clock(), {"python": platform.python_version()}, {}
        for text in request["peers"]:
            reason = availability(*parse_peer(text), versions)
            peers[text] = {"available": reason is None, "reason": reason}
        return {"worker": 1, "versions": versions, "peers": peers, "import_seconds": clock() - begin}

    def installed(self, request):
        return {"peers": {peer: {"reason": missing_module(peer), "version": installed_version(peer)}
                          for peer in request["peers"]}}

    def prepare(self, request):
        self.run = None
        gc.collect()  # its memory is free before the next one takes some
        limit_threads(request["threads"])
        work = Work(request["work"])
        samples = read_safetensors(request["samples"])
        arrays = Arrays(read_safetensors(request["weights"]), samples["images"], samples["labels"], work)
        self.run = Run(request["peer"], request["options"], work, arrays, request["device"], request["threads"], 0)
        return {"setup_seconds": self.run.setup_seconds, "compile_seconds": self.run.compile_seconds,
                "device": self.run.peer.device_name()}

    def prepared(self):
        if self.run is None:
            raise Unavailable("nothing is prepared")
        return self.run

    def step(self, request):
        return self.prepared().measure(request["count"], request["kind"], request["upload"])

    def queued(self, request):
        return self.prepared().queued(request["count"])

    def losses(self, request):
        return {"losses": self.prepared().losses(request["steps"], request["loss_scale"])}

    def memory(self, request):
        return self.prepared().memory()

    def answer(self, request):
        handlers = {"hello": self.hello, "installed": self.installed, "prepare": self.prepare, "step": self.step,
                    "queued": self.queued, "losses": self.losses, "memory": self.memory, "stop": lambda request: {}}
        try:
            return handlers[request["do"]](request)
        except Unavailable as error:
            return {"error": str(error), "unavailable": True}
        except Exception as error:
            say(traceback.format_exc())
            text = str(error).strip() or "no message"
            return {"error": "{}: {}".format(type(error).__name__, text), "unavailable": False}


def serve():
    # Whatever frameworks print goes to standard error, also from their C++ parts; the answers have a descriptor of their own.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    requests = queue.Queue()

    def listen():
        for line in sys.stdin:
            requests.put(line)
        os._exit(0)  # Ridgeline has ended: the result is no longer needed

    threading.Thread(target=listen, daemon=True).start()
    service = Service()
    while True:
        request = json.loads(requests.get())
        answer = dict(service.answer(request), id=request["id"])
        out.write(json.dumps(answer) + "\n")
        out.flush()
        if request["do"] == "stop":
            return 0


