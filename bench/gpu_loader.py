#!/usr/bin/env python3
"""Training from a folder of JPEG files on a GPU: how fast each decoder brings images, and how long training waits.

usage: bench/gpu_loader.py TAR [--files 20000] [--batches 128,256] [--workers 0] [--epochs 4] [--decoders cpu,gpu,...]
                           [--backend cuda] [--build build] [--tests PROGRAM] [--folder FOLDER] [--out FILE]
                           [--seconds 100]

TAR holds an image folder (train/CLASS/*.jpg). Its training photographs are copied until there are --files files. Then
1. the GPU tests of loading run, where build/engine_tests is there;
2. each decoder brings random crops of 224x224 to the device, without training (build/bench/batches);
3. resnet18 trains in bf16 with each decoder; the step alone, on one batch that stays on the device, is measured too.
The first epoch, which finds files and kernels cold, does not count. After --seconds no further measurement begins.
Details go to --out as JSON; the table comes last.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

DECODERS = ["cpu", "gpu", "nvjpeg", "nvjpeg-cuda"]
START = time.monotonic()


def run(command, limit):
    try:
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired as error:
        return subprocess.CompletedProcess(command, 124, "", f"took longer than {error.timeout:.0f} s")


def copied_folder(tar, root, files):
    """The photographs of the archive again and again: root/train/CLASS/N.jpg, and its test part once."""
    with tempfile.TemporaryDirectory() as unpacked:
        with tarfile.open(tar) as archive:
            archive.extractall(unpacked, filter="data")
        top = next(path.parent for path in pathlib.Path(unpacked).rglob("train"))
        photos = sorted(path for path in (top / "train").rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
        contents = [(path.parent.name, path.read_bytes()) for path in photos]
        for name in {name for name, _ in contents}:
            (root / "train" / name).mkdir(parents=True, exist_ok=True)
        for number in range(files):
            name, data = contents[number % len(contents)]
            (root / "train" / name / f"{number:06d}.jpg").write_bytes(data)
        if (top / "test").is_dir():
            shutil.copytree(top / "test", root / "test", dirs_exist_ok=True)
    return len(contents), sum(len(data) for _, data in contents) / len(contents)


class Bench:
    def __init__(self, options):
        self.options = options
        self.found = {"loading": [], "training": [], "alone": [], "differences": [],
                      "skipped": {}}

    def left(self):
        return self.options.seconds - (time.monotonic() - START)

    def tests(self):
        program = self.options.tests or self.options.build / "engine_tests"
        if not program.exists():
            return f"not run: there is no {program}"
        result = run([program, "--gtest_brief=1", "--gtest_filter=GpuImages*:ImageJob*:ThreadsPlace*"], 120)
        print(result.stdout + result.stderr)
        self.found["tests"] = result.stdout
        return "passed" if result.returncode == 0 else f"FAILED (exit code {result.returncode})"

    def loading(self, decoder, batch, workers):
        if self.left() < 6:
            return
        result = run([self.options.build / "bench/batches", decoder, self.options.folder, 224, batch, workers, 4], 40)
        if result.returncode != 0:
            self.found["skipped"][decoder] = result.stderr.strip()[-300:]
            return
        self.found["loading"].append({"decoder": decoder, "batch": batch, "workers": workers,
                                      "images_per_second": float(result.stdout)})

    def difference(self, decoder):
        if decoder in self.found["skipped"] or self.left() < 6:
            return
        result = run([self.options.build / "bench/batches", f"difference:{decoder}", self.options.folder], 40)
        if result.returncode == 0:
            mean, most = result.stdout.split()
            self.found["differences"].append({"decoder": decoder, "mean": float(mean), "most": int(most)})

    def training(self, decoder, batch):
        if decoder in self.found["skipped"] or self.left() < 15:
            return
        result = run([self.options.build / "ridgeline", "train", "resnet18", "--data", self.options.folder, "--device",
                      "cuda", "--backend", self.options.backend, "--precision", "bf16", "--batch", batch, "--epochs",
                      self.options.epochs, "--eval-every", 1000, "--last-batch", "drop", "--lr", 0.005, "--decoder",
                      decoder, "--workers", self.options.workers, "--no-store", "--telemetry", 0, "--json"], 90)
        if result.returncode != 0:
            self.found["skipped"][f"training {decoder} {batch}"] = result.stderr.strip()[-300:]
            return
        epochs = json.loads(result.stdout)["epochs"][1:]
        seconds = sum(epoch["seconds"] for epoch in epochs)
        waited = sum(epoch["data_wait_seconds"] for epoch in epochs)
        rates = [epoch["samples_per_second"] for epoch in epochs]
        self.found["training"].append({"decoder": decoder, "batch": batch, "epochs": len(epochs), "wait": waited / seconds,
                                       "images_per_second": sorted(rates)[len(rates) // 2], "rates": rates})

    def alone(self, batch):
        if self.left() < 10:
            return
        result = run([self.options.build / "ridgeline", "bench", "resnet18", "--device", "cuda", "--backend",
                      self.options.backend, "--precision", "bf16", "--batch", batch, "--image", 224, "--classes", 2,
                      "--warmup", 10, "--iterations", 100, "--no-store", "--no-split", "--telemetry", 0, "--json"], 60)
        if result.returncode == 0:
            row = json.loads(result.stdout)["results"][0]
            self.found["alone"].append({"batch": batch, "images_per_second": 1000 * batch / row["median_ms"]})
        else:
            self.found["skipped"][f"alone {batch}"] = result.stderr.strip()[-300:]

    def table(self):
        text = "| decoder | batch | loading alone, img/s | training, img/s | waits for data | step alone, img/s |\n"
        text += "|---|---|---|---|---|---|\n"
        cell = lambda rows, key, **what: next((row[key] for row in rows if all(row[k] == v for k, v in what.items())), None)
        number = lambda value: "n/a" if value is None else f"{value:,.0f}"
        for batch in self.options.batches:
            for decoder in self.options.decoders:
                wait = cell(self.found["training"], "wait", decoder=decoder, batch=batch)
                text += (f"| {decoder} | {batch} | "
                         f"{number(cell(self.found['loading'], 'images_per_second', decoder=decoder, batch=batch))} | "
                         f"{number(cell(self.found['training'], 'images_per_second', decoder=decoder, batch=batch))} | "
                         f"{'n/a' if wait is None else f'{100 * wait:.1f}%'} | "
                         f"{number(cell(self.found['alone'], 'images_per_second', batch=batch))} |\n")
        return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tar", type=pathlib.Path)
    parser.add_argument("--files", type=int, default=20000)
    parser.add_argument("--batches", default="128,256")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--decoders", default=",".join(DECODERS))
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--tests", type=pathlib.Path, help="the program with the tests [default: the build's]")
    options = parser.parse_args()
    options.batches = [int(batch) for batch in options.batches.split(",")]
    options.decoders = options.decoders.split(",")
    options.workers = options.workers or len(os.sched_getaffinity(0))
    made = None
    if options.folder is None:
        options.folder = made = pathlib.Path(tempfile.mkdtemp(prefix="gpu_loader"))
    try:
        photos, size = copied_folder(options.tar, options.folder, options.files)
        print(f"{options.files} files of {photos} photographs, {size / 1000:.1f} kB each; {options.workers} threads; "
              f"made after {time.monotonic() - START:.1f} s")
        bench = Bench(options)
        tests = bench.tests()
        print(f"tests of loading: {tests}, after {time.monotonic() - START:.1f} s")
        for decoder in options.decoders:
            bench.loading(decoder, options.batches[0], options.workers)
        for batch in options.batches:
            for decoder in options.decoders:
                bench.training(decoder, batch)
            bench.alone(batch)
        for decoder in options.decoders:
            if len(options.batches) > 1 and decoder != "cpu":
                bench.loading(decoder, options.batches[-1], options.workers)
            bench.difference(decoder)
        if options.out:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(bench.found, indent=1))
        for row in bench.found["differences"]:
            print(f"{row['decoder']}: pixels differ from libjpeg-turbo's by {row['mean']:.3f} grey levels in the mean, at "
                  f"most {row['most']}")
        for what, reason in bench.found["skipped"].items():
            print(f"without {what}: {reason}")
        print(f"tests of loading: {tests}; {time.monotonic() - START:.0f} s in all\n\n{bench.table()}", end="")
        return 1 if tests.startswith("FAILED") else 0
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
