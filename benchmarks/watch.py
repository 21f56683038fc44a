"""The live page of a run of 100,000 rows: when it shows a curve, and what its server costs then.

python benchmarks/watch.py [--rows N] [--seconds S]

Prints
    first_paint_s: until the first curve is on the screen, from the moment the address is opened
    server_core_share: CPU time of the server over wall time while a row comes every second

Rows are as long as those of `rllib train` (15 kB, two thirds of them the configuration), so that
100,000 need 1.5 GB in --directory, which is deleted afterwards. Needs chromium. Takes 1.5 minutes.
Expected on one idle core: below 2 s and below 0.05.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

TICKS = os.sysconf("SC_CLK_TCK")
# As long as a real configuration, and the same in every row.
CONFIG = json.dumps(
    {
        "num_env_runners": 2,
        "reward_models": {"conspec": {}},
        **{f"setting_{i}": "x" * 40 for i in range(200)},
    }
)


def line(i: int) -> str:
    values = {
        "training_iteration": i,
        "num_env_steps_sampled_lifetime": 1000.0 * i,
        "time_total_s": 2.0 * i,
        "time_this_iter_s": 2.0,
        "iterations_since_restore": i,
        "timestamp": int(time.time()),
        "env_runners": {"success_rate": (i * 7 % 16) / 16, "episode_return_mean": i / 1e5},
        "learners": {"default_policy": {f"metric_{k}": i * 0.1 + k for k in range(120)}},
        "conspec": {
            "successes": min(i, 16),
            "frozen": min(i // 9000, 8),
            "separation": {str(k): (i % (k + 2)) / 10 for k in range(8)},
        },
        "seconds": {phase: 0.5 for phase in ("sample", "score", "rl_update", "reward_model")},
        "fault_tolerance": {"num_healthy_workers": 2, "num_remote_worker_restarts": 0},
    }
    return f'{json.dumps(values)[:-1]}, "config": {CONFIG}}}\n'


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure(results: Path, rows: int, seconds: int) -> tuple[float, float]:
    server = subprocess.Popen(
        [sys.executable, "-m", "rllib_conspec.cli.main", "watch", str(results), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        address = server.stdout.readline().split()[2]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            page = browser.new_page()
            page.goto("about:blank")
            began = time.perf_counter()
            page.goto(address, wait_until="commit")
            page.wait_for_selector("#learning .plot .main-svg")
            paint = time.perf_counter() - began
            time.sleep(15)  # the reward models are imported meanwhile, once
            spent, began = cpu_seconds(server.pid), time.perf_counter()
            with (results / "trial_0" / "result.json").open("a") as stream:
                for i in range(rows + 1, rows + seconds + 1):
                    stream.write(line(i))
                    stream.flush()
                    time.sleep(1)
            share = (cpu_seconds(server.pid) - spent) / (time.perf_counter() - began)
            shown = page.locator("#facts dd").first.inner_text()
            assert shown == f"{rows + seconds:,}", f"the page shows iteration {shown}"
            browser.close()
    finally:
        server.terminate()
        server.wait()
    return paint, share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--directory", help="where the run is written, for as long as this lasts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as results:
        trial = Path(results) / "trial_0"
        trial.mkdir()
        with (trial / "result.json").open("w") as stream:
            stream.writelines(line(i) for i in range(1, options.rows + 1))
        paint, share = measure(Path(results), options.rows, options.seconds)
    print(f"first_paint_s: {paint:.2f}")
    print(f"server_core_share: {share:.4f}")


if __name__ == "__main__":
    main()
