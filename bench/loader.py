#!/usr/bin/env python3
"""Images a second on one core: this project's loader, libjpeg-turbo alone and torchvision on PIL.

    /usr/bin/python3 bench/loader.py FOLDER [--build build] [--side 224] [--rounds 7]

FOLDER holds class folders (or train/). The stages take turns, round after round, so that a busy machine
disturbs all of them alike; medians of processor time are given.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time


def torchvision_stage(files, side, crop):
    from PIL import Image
    from torchvision import transforms as T

    if crop:
        transform = T.Compose([T.RandomResizedCrop(side), T.RandomHorizontalFlip(), T.PILToTensor()])
    else:
        transform = T.Compose([T.Resize(round(side * 256 / 224)), T.CenterCrop(side), T.PILToTensor()])

    def run():
        start = time.process_time()
        for path in files:
            with open(path, "rb") as file:
                transform(Image.open(file).convert("RGB"))
        return 1000 * (time.process_time() - start) / len(files)

    run()
    return run


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})
    import torch

    torch.set_num_threads(1)
    root = options.folder / "train" if (options.folder / "train").is_dir() else options.folder
    files = sorted(p for p in root.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    with tempfile.TemporaryDirectory() as folder:
        pack = pathlib.Path(folder) / "bench.pack"
        subprocess.run([options.build / "ridgeline", "data", "pack", options.folder, pack, "--size",
                        f"{options.side}x{options.side}"], check=True, stdout=subprocess.DEVNULL)

        def ours(stage):
            command = [options.build / "bench/loader", stage, options.folder, str(options.side)]
            return lambda: float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

        stages = {
            "libjpeg-turbo alone": ours("libjpeg"),
            "decode": ours("decode"),
            "decode + random resized crop": ours("crop"),
            "the host's part of it for a GPU": ours("job"),
            "torchvision RandomResizedCrop": torchvision_stage(files, options.side, True),
            "evaluation transform": ours("evaluate"),
            "torchvision Resize + CenterCrop": torchvision_stage(files, options.side, False),
            "decoded pack": ours(f"pack:{pack}"),
        }
        times = {name: [] for name in stages}
        for _ in range(options.rounds):
            for name, run in stages.items():
                times[name].append(run())
    median = {name: statistics.median(values) for name, values in times.items()}
    print(f"{len(files)} images of {options.folder.name}, side {options.side}, one core, "
          f"{options.rounds} interleaved rounds\n")
    print("| stage | ms an image (median) | least | most | images/s |\n|---|---|---|---|---|")
    for name, values in times.items():
        print(f"| {name} | {median[name]:.3f} | {min(values):.3f} | {max(values):.3f} | "
              f"{1000 / median[name]:.0f} |")
    print(f"\ndecode against libjpeg-turbo alone: "
          f"{100 * median['libjpeg-turbo alone'] / median['decode']:.0f}%")
    print(f"random resized crop against torchvision: "
          f"{median['torchvision RandomResizedCrop'] / median['decode + random resized crop']:.2f}x")
    print(f"evaluation against torchvision: "
          f"{median['torchvision Resize + CenterCrop'] / median['evaluation transform']:.2f}x")
    print(f"decoded pack against the folder: {median['evaluation transform'] / median['decoded pack']:.1f}x "
          f"(evaluation), {median['decode + random resized crop'] / median['decoded pack']:.1f}x (training crops)")


if __name__ == "__main__":
    main()
