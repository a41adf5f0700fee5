#!/usr/bin/env python3
"""Reads traces with HolisticTraceAnalysis, as a user of PyTorch's profiler would.

usage: check_trace.py TRACE.json[.gz] ...

Prints, for each trace, the temporal breakdown and what else applies to it; exits with 1 when an analysis fails. The
package is no dependency of the project: put it into an environment of its own.

  python3 -m venv /tmp/hta && /tmp/hta/bin/pip install HolisticTraceAnalysis
  build/ridgeline profile mnist_cnn --trace mnist.json.gz
  /tmp/hta/bin/python scripts/check_trace.py mnist.json.gz

Samples to try without a graphics processor: build/tools/sample_trace cpu|gpu|gpu-graph FILE.json.gz
"""

import logging
import sys
import warnings
from pathlib import Path

try:
    import pandas as pd
    from hta.trace_analysis import TraceAnalysis
except ModuleNotFoundError as missing:
    sys.exit(f"check_trace: {missing}; see --help for how to install it")

GPU_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")


ROWS = 10


def show(title, found):
    """Prints tables, or the tables of a list or of a dictionary by rank, each cut after some rows."""
    print(f"-- {title}")
    tables = found.values() if isinstance(found, dict) else found if isinstance(found, (list, tuple)) else [found]
    for table in tables:
        if table is None:
            continue
        print(table.head(ROWS).to_string())
        if len(table) > ROWS:
            print(f"... {len(table) - ROWS} rows more")


def analyses_of(analysis, on_gpu):
    yield "temporal breakdown", lambda: analysis.get_temporal_breakdown(visualize=False)
    if not on_gpu:
        return
    yield "idle time", lambda: analysis.get_idle_time_breakdown(visualize=False)
    yield "kernels by kind", lambda: analysis.get_gpu_kernel_breakdown(visualize=False)
    yield "launches", lambda: analysis.get_cuda_kernel_launch_stats(visualize=False)
    yield "memory bandwidth", lambda: analysis.get_memory_bw_summary()
    yield "queue length", lambda: analysis.get_queue_length_summary()


def check(path):
    """The number of analyses that failed."""
    analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent))
    events = analysis.t.get_trace(0)
    names = analysis.t.symbol_table.get_sym_table()
    categories = events["cat"].map(lambda symbol: names[symbol])
    print(f"== {path}: {len(events)} events, iterations {sorted(int(i) for i in set(analysis.t.get_iterations(0)))}")
    show("events by category", categories.value_counts().rename("events").to_frame())
    on_gpu = bool(categories.isin(GPU_CATEGORIES).any())
    failed = 0
    for title, run in analyses_of(analysis, on_gpu):
        try:
            show(title, run())
        except Exception as error:  # each analysis counts by itself
            failed += 1
            print(f"-- {title}: FAILED: {type(error).__name__}: {error}")
    return failed


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    pd.set_option("display.width", 160, "display.max_colwidth", 60)
    return 1 if sum(check(Path(name).resolve()) for name in arguments) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
