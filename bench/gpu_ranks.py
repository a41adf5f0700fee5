"""Several ranks on a machine with a GPU and many processors: whether they train as one process does, and how they scale.

usage: bench/gpu_ranks.py [--parts gpu,losses,scaling,torch] [--seconds 195] [--cpu-ranks 16] [--out FOLDER]

gpu      two ranks on GPUs, on one shared GPU where there are not two, joined by NCCL: mnist_cnn and resnet18 in fp32 and
         bf16: losses beside one rank's, whether the same call gives the same bits again, whether steps are recorded in a CUDA
         graph, a training that is resumed, and one whose rank is killed; the links' ceilings; the tests GpuRanks of
         build/program_tests where it was built
losses   ranks on the CPU with one thread each beside one process
scaling  resnet18 64x64, weak, beside as many unconnected processes; mnist_cnn and resnet18 strong
torch    the same ranks with PyTorch's DistributedDataParallel over gloo

Every part has a time limit of its own, and none begins without time left of --seconds. The table comes last; details are
written to FOLDER. Needs build/ridgeline and build/libridgeline_mpi.so, mpirun, for `gpu` libnccl.so.2 (the one of PyTorch's
packages is found), and for `torch` PyTorch in the interpreter that runs this script."""

import argparse
import ctypes
import glob
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import ranks

ROOT = ranks.ROOT
PROGRAM = ROOT / "build/ridgeline"


class Session:
    """The time that is left, the lines of the table, and where details go."""

    def __init__(self, seconds, out):
        self.end = time.monotonic() + seconds
        self.out = out
        self.rows = []
        self.environment = dict(os.environ)

    def left(self):
        return self.end - time.monotonic()

    def row(self, what, value, verdict=""):
        self.rows.append((what, value, verdict))
        print(f"{what}: {value} {verdict}", file=sys.stderr, flush=True)

    def run(self, words, limit, folder=None, **more):
        """The finished process, its output in the folder for details; None: out of time."""
        limit = min(limit, self.left())
        if limit < 2:
            return None
        words = [str(word) for word in words]
        process = subprocess.Popen(words, cwd=folder, env=dict(self.environment, **more), text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err += f"\nended after {limit:.0f} s"
            process.returncode = -9
        with (self.out / "log.txt").open("a") as log:
            log.write(f"$ {' '.join(words)}\nexit code {process.returncode}\n{err}\n{out[:20000]}\n\n")
        return subprocess.CompletedProcess(words, process.returncode, out, err)


def reason(done):
    if done is None:
        return "no time left"
    lines = [line for line in (done.stderr or "").splitlines() if line.strip()]
    return f"exit code {done.returncode}: {lines[-1] if lines else ''}"


def find_libraries(session):
    """Libraries that the loader does not find by itself: NCCL among Python's packages, MPI beside its mpirun."""
    folders = []
    try:
        ctypes.CDLL("libnccl.so.2")
    except OSError:
        for folder in sys.path:
            folders += glob.glob(f"{folder}/nvidia/nccl/lib")
    try:
        ctypes.CDLL("libmpi.so.40")
    except OSError:
        mpirun = shutil.which("mpirun")
        if mpirun:
            folders.append(str(pathlib.Path(mpirun).resolve().parent.parent / "lib"))
    if folders:
        before = session.environment.get("LD_LIBRARY_PATH", "")
        session.environment["LD_LIBRARY_PATH"] = ":".join(folders[:2] + ([before] if before else []))


def document(done):
    return json.loads(done.stdout) if done is not None and done.returncode == 0 else None


def losses_of(training):
    return [epoch["train_loss"] for epoch in training["epochs"]] + [training["final_test_loss"]]


def difference(ours, theirs):
    """The largest, relative."""
    return max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))


def state_of(folder):
    """The bytes of the last checkpoint."""
    last = (folder / "LAST").read_text().split()[0]
    return (folder / last / "state.safetensors").read_bytes()


# ---- GPUs.

GPU_CASES = [("mnist_cnn", "1x28x28:10:512", "28x28", 128, "fp32", 1e-4, []),
             ("mnist_cnn", "1x28x28:10:512", "28x28", 128, "bf16", 2e-2, []),
             ("resnet18", "3x64x64:10:160", "64x64", 32, "fp32", 1e-2, ["--sync-batch-norm"]),
             ("resnet18", "3x64x64:10:160", "64x64", 32, "bf16", 1e-1, ["--sync-batch-norm"])]


def gpu_training(model, data, image, batch, precision, *more):
    return [PROGRAM, "train", model, "--data", f"synthetic:{data}", "--image", image, "--batch", batch, "--precision", precision,
            "--device", "cuda", "--backend", "cuda", "--lr", 0.005, "--epochs", 2, "--no-store", "--telemetry", 0, "--json",
            *more]


def gpu_case(session, folder, case):
    model, data, image, batch, precision, limit, sync = case
    name = f"{model} {precision}"
    words = gpu_training(model, data, image, batch, precision)
    one = document(session.run(words, 20, folder))
    twice = []
    for again in ("a", "b"):
        done = session.run([*words, *sync, "--ranks", 2, "--checkpoint", f"{model}-{precision}-{again}"], 25, folder)
        if document(done) is None:
            return session.row(f"gpu: {name}", reason(done), "FAILED")
        twice.append(document(done))
    if one is None:
        return session.row(f"gpu: {name}", "one rank did not train", "FAILED")
    off = difference(losses_of(twice[0]), losses_of(one))
    same = state_of(folder / f"{model}-{precision}-a") == state_of(folder / f"{model}-{precision}-b")
    recorded = twice[0]["recorded_step"]
    session.row(f"gpu: {name}, 2 ranks", f"losses off by {off:.2g}, repeats bit for bit: {same}, in a CUDA graph: {recorded}, "
                f"{twice[0]['executor']['transport']}", "ok" if off <= limit and same and recorded else "FAILED")


def gpu_resume(session, folder):
    words = gpu_training(*GPU_CASES[0][:5])
    longer = document(session.run([*words, "--epochs", 3], 20, folder))
    done = session.run([*words, "--epochs", 3, "--checkpoint", "mnist_cnn-fp32-a", "--resume"], 20, folder)
    resumed = document(done)
    if longer is None or resumed is None:
        return session.row("gpu: resumed with one rank", reason(done), "FAILED")
    off = difference(losses_of(resumed), losses_of(longer))
    session.row("gpu: resumed with one rank", f"losses off by {off:.2g}", "ok" if off <= 1e-4 else "FAILED")


def rank_one_in(folder):
    for entry in pathlib.Path("/proc").iterdir():
        try:
            here = entry.name.isdigit() and os.readlink(entry / "cwd") == str(folder)
            if here and "OMPI_COMM_WORLD_RANK=1" in (entry / "environ").read_text().split("\0"):
                return int(entry.name)
        except OSError:
            continue
    return None


def gpu_kill(session, folder):
    """The job of a killed rank ends, goes on from its checkpoint, and ends with the bits of one that was left alone."""
    words = [*gpu_training(*GPU_CASES[0][:5]), "--ranks", 2, "--epochs", 4]
    if document(session.run([*words, "--checkpoint", "whole"], 25, folder)) is None:
        return session.row("gpu: killed rank", "the whole training failed", "FAILED")
    words = [str(word) for word in (*words, "--checkpoint-every", 1, "--restarts", 1, "--checkpoint", "killed")]
    job = subprocess.Popen(words, cwd=folder, env=session.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True, start_new_session=True)
    killed, end = None, time.monotonic() + min(20, session.left())
    while killed is None and time.monotonic() < end and job.poll() is None:
        if (folder / "killed/LAST").exists() and (pid := rank_one_in(folder)):
            os.kill(pid, signal.SIGKILL)
            killed = pid
        time.sleep(0.005)
    try:
        told = job.communicate(timeout=max(2, min(30, session.left())))[1]
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        return session.row("gpu: killed rank", "the job did not end", "FAILED")
    if killed is None or job.returncode:
        return session.row("gpu: killed rank", f"killed {killed}, exit code {job.returncode}: {told[-200:]}", "FAILED")
    same = state_of(folder / "killed") == state_of(folder / "whole")
    restarted = "starting again" in told
    session.row("gpu: killed rank", f"job started again: {restarted}, same bits in the end: {same}",
                "ok" if same and restarted else "FAILED")


def gpu_links(session, folder):
    done = session.run([PROGRAM, "env", "--measure", "--ranks", 2, "--device", "cuda", "--store", "links.db", "--json"], 25,
                       folder)
    found = document(done)
    if found is None:
        return session.row("gpu: links", reason(done), "FAILED")
    by_size = {c["capacity_bytes"]: c for c in found["ceilings"] if c["kind"] == "latency"}
    bus = max(c["high"] for c in found["ceilings"] if c["kind"] == "link" and c["path"] == "bus")
    session.row("gpu: links (a shared GPU)", f"4 bytes {1e3 * by_size[4]['value']:.2f} ms, bus {bus / 1e9:.2f} GB/s", "ok")


def gpu_tests(session, folder):
    tests = ROOT / "build/program_tests"
    if not tests.exists():
        return session.row("gpu: tests GpuRanks", "program_tests was not built")
    done = session.run([tests, "--gtest_filter=GpuRanks.*"], 80, folder)
    lines = [line for line in (done.stdout if done else "").splitlines() if line.startswith("[  ")]
    summary = "; ".join(line for line in lines if "PASSED" in line or "FAILED" in line or "SKIPPED" in line)
    session.row("gpu: tests GpuRanks", summary or reason(done), "ok" if done and done.returncode == 0 else "FAILED")


def part_gpu(session, _):
    folder = pathlib.Path(tempfile.mkdtemp(dir=session.out)).resolve()
    session.environment["RIDGELINE_SHARE_GPU"] = "1"
    for case in GPU_CASES:
        gpu_case(session, folder, case)
    gpu_resume(session, folder)
    gpu_kill(session, folder)
    gpu_links(session, folder)
    gpu_tests(session, folder)
    shutil.rmtree(folder, ignore_errors=True)


# ---- Processors.

def part_losses(session, arguments):
    for model, data, image, batch, epochs, sync in (("mnist_cnn", "1x28x28:10:4096", "28x28", 512, 2, []),
                                                    ("resnet18", "3x64x64:10:1024", "64x64", 256, 1, ["--sync-batch-norm"])):
        words = [PROGRAM, "train", model, "--data", f"synthetic:{data}", "--image", image, "--batch", batch, "--epochs", epochs,
                 "--lr", 0.005, "--no-store", "--telemetry", 0, "--json"]
        calls = [session.run(words, 25), session.run([*words, *sync, "--ranks", arguments.cpu_ranks, "--threads", 1], 25)]
        failed = [call for call in calls if document(call) is None]
        if failed:
            session.row(f"cpu: {model} losses", reason(failed[0]), "FAILED")
            continue
        one, many = (document(call) for call in calls)
        off = difference(losses_of(many), losses_of(one))
        session.row(f"cpu: {model}, {arguments.cpu_ranks} ranks", f"losses off by {off:.2g}", "ok" if off <= 1e-3 else "FAILED")


def measured(session, model, image, batch, counts, scaling, seconds, limit, *more):
    done = session.run([PROGRAM, "bench", model, "--image", image, "--classes", ranks.CLASSES, "--batch", batch, "--ranks",
                        ",".join(map(str, counts)), "--scaling", scaling, "--threads", 1, "--momentum", ranks.MOMENTUM,
                        "--max-seconds", seconds, "--no-store", "--no-split", "--telemetry", 0, "--json", *more], limit)
    found = document(done)
    if found is None:
        session.row(f"cpu: {model} {scaling}", reason(done), "FAILED")
        return {}
    (session.out / f"{model}-{scaling}.json").write_text(done.stdout)
    for point in found["scaling"]:
        if point["transport"] == "unconnected":
            continue
        efficiency = point["efficiency"]
        text = f"speed-up {point['speedup']:.2f}, efficiency {100 * efficiency['value']:.0f}%"
        verdict = ""
        if point["of_unconnected"]:
            of = point["of_unconnected"]
            text += f"; of unconnected {100 * of['value']:.1f}% [{100 * of['low']:.1f}–{100 * of['high']:.1f}]"
            if point["ranks"] == max(counts):
                verdict = "ok" if of["value"] >= 0.9 else "below 90%"
        session.row(f"cpu: {model} {image}x{image} {scaling}, {point['ranks']} ranks, batch {point['batch']}", text, verdict)
    return {result["ranks"]: result["median_ms"] for result in found["results"] if result["transport"] != "unconnected"}


def part_scaling(session, arguments):
    most = arguments.cpu_ranks
    counts = [count for count in (1, 2, 4, 8, 16, 32) if count <= most]
    weak = measured(session, "resnet18", 64, 16, [1, most], "weak", 8, 60, "--unconnected")
    strong = measured(session, "mnist_cnn", 28, 512, counts, "strong", 3, 40)
    measured(session, "resnet18", 64, 64, counts, "strong", 3, 45)
    arguments.ours = {("resnet18", "weak"): weak.get(most), ("mnist_cnn", "strong"): strong.get(most)}


def part_torch(session, arguments):
    most = arguments.cpu_ranks
    for case in (["resnet18", 64, 16, "weak"], ["mnist_cnn", 28, 512, "strong"]):
        best, version = None, ""
        for layout in ("nchw", "channels_last"):
            if session.left() < 12:
                break
            done = session.run([sys.executable, __file__, "--torch", json.dumps([case, most, layout])], 25)
            found = document(done)
            if found is None:
                session.row(f"cpu: PyTorch, {case[0]} {layout}", reason(done), "FAILED")
                continue
            version = found["version"]
            middle = 1e3 * statistics.median(found["seconds"])
            best = min(best or middle, middle)
        ours = getattr(arguments, "ours", {}).get((case[0], case[3]))
        if best is None or ours is None:
            session.row(f"cpu: {case[0]} beside PyTorch", "not measured" if best is None else f"PyTorch {best:.1f} ms")
            continue
        session.row(f"cpu: {case[0]} {case[3]}, {most} ranks, PyTorch {version} over ours",
                    f"{best:.1f} / {ours:.1f} ms = {best / ours:.2f}×", "ok" if best / ours >= 1.3 else "below 1.3×")


PARTS = {"gpu": part_gpu, "losses": part_losses, "scaling": part_scaling, "torch": part_torch}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seconds", type=float, default=195.0)
    parser.add_argument("--cpu-ranks", type=int, default=16)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    parser.add_argument("--torch", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.torch:
        case, count, layout = arguments.torch
        print(json.dumps(ranks.torch_times(case, count, argparse.Namespace(threads=1, seconds=6.0), layout)))
        return 0
    arguments.out.mkdir(parents=True, exist_ok=True)
    session = Session(arguments.seconds, arguments.out.resolve())
    find_libraries(session)
    for name in arguments.parts.split(","):
        begin = time.monotonic()
        try:
            PARTS[name](session, arguments)
        except Exception as error:  # one part that fails takes no other with it
            session.row(name, f"{type(error).__name__}: {error}", "FAILED")
        session.row(name, f"took {time.monotonic() - begin:.0f} s")
    print("| what | found | |\n|---|---|---|")
    for row in session.rows:
        print("| " + " | ".join(row) + " |")
    return 1 if any(row[2] == "FAILED" for row in session.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
