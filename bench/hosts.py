"""What a network costs: ranks on hosts of their own, which are network namespaces of this machine (needs root).

    python bench/hosts.py [--rates 0.1 1 10] [--hosts 2 4] [--steps 25000] [-- OPTIONS OF fastpong train]

Each host is a namespace with one address, joined to the others by a bridge; what it sends is limited to the rate
(Gbit/s) with tc's token bucket. MPI is made to use TCP, as between machines. For each rate and number of hosts: what
a sum of the default network's gradient takes, in float32 and bfloat16, what a sum of a single number takes (the
latency), and how fast two hosts train. Prints a Markdown table, then the fit of

    seconds of a sum = latency · log2(hosts) + 2 (hosts − 1) / hosts · bytes / rate

and what it says about 1536 hosts of one core. The latency here is that of namespaces, some 10 µs; a real network's is
to be put in its place.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from fastpong.config import make_config
from fastpong.policy import make_policy

NETWORK = "10.77.0"


def sh(command: str, check: bool = True) -> None:
    """Run a command of iproute2."""
    subprocess.run(command.split(), check=check, stderr=None if check else subprocess.DEVNULL)


def take_down(hosts: int) -> None:
    """Remove what `put_up` made, or what is left of it."""
    for host in range(hosts):
        sh(f"ip netns del fastpong{host}", check=False)
    sh("ip link del fastpong", check=False)


def put_up(hosts: int, rate: float) -> None:
    """Make a bridge and hosts that send `rate` Gbit/s each."""
    take_down(hosts)
    sh("ip link add fastpong type bridge")
    sh(f"ip addr add {NETWORK}.1/24 dev fastpong")
    sh("ip link set fastpong up")
    for host in range(hosts):
        inside = f"ip netns exec fastpong{host}"
        sh(f"ip netns add fastpong{host}")
        sh(f"ip link add fastpong-v{host} type veth peer name eth0 netns fastpong{host}")
        sh(f"ip link set fastpong-v{host} master fastpong up")
        sh(f"{inside} ip addr add {NETWORK}.{10 + host}/24 dev eth0")
        sh(f"{inside} ip link set eth0 up")
        sh(f"{inside} ip link set lo up")
        sh(f"{inside} tc qdisc add dev eth0 root tbf rate {rate * 1000:.0f}mbit burst 512k latency 100ms")


def mpiexec(hosts: int, *arguments: str) -> str:
    """Run Python on all hosts, a rank each, and return what it printed."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as file:
        file.write('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nhost=$1; shift\n')
        file.write('exec ip netns exec "$host" sh -c "$*"\n')
    os.chmod(file.name, 0o755)
    names = ",".join(f"fastpong{host}" for host in range(hosts))
    program = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
    launcher = [program, "-launcher", "ssh", "-launcher-exec", file.name, "-iface", "fastpong", "-hosts", names]
    done = subprocess.run(
        [*launcher, "-n", str(hosts), sys.executable, *arguments],
        capture_output=True, text=True, env={**os.environ, "UCX_TLS": "tcp,self", "FI_PROVIDER": "tcp"},
    )  # fmt: skip
    os.unlink(file.name)
    if done.returncode:
        take_down(hosts)
        sys.exit(done.stderr)
    return done.stdout


def time_sums(sizes: list[int]) -> None:
    """On a host: time sums of these sizes, in both formats, and print the medians (rank 0)."""
    from fastpong.ranks import connect

    ranks, medians = connect(), []
    for size in sizes:
        for wire in ("float32", "bfloat16"):
            buffer, times = np.ones(size, np.float32), []
            for _ in range(8):
                began = time.perf_counter()
                ranks.sum(buffer, wire)
                times.append(time.perf_counter() - began)
                buffer[:] = 1.0
            medians.append(statistics.median(times[1:]))
    if ranks.rank == 0:
        print(json.dumps(medians))


def train(hosts: int, steps: int, options: list[str]) -> float:
    """Train on all hosts; return steps/s after the first batch."""
    with tempfile.TemporaryDirectory() as folder:
        settings = ["--set", "eval_games=0", "--set", "log_steps=8192", "--target", "22", "--workers", "1"]
        run = ["--run", f"{folder}/run", "--steps", str(steps)]
        mpiexec(hosts, "-m", "fastpong", "train", "--envs", "64", *run, *settings, *options)
        lines = [json.loads(line) for line in Path(folder, "run", "metrics.jsonl").read_text().splitlines()]
    first, last = next(line for line in lines if line["updates"]), lines[-1]
    return float((last["steps"] - first["steps"]) / (last["wall_s"] - first["wall_s"]))


def main() -> None:
    """Measure, fit and extrapolate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--steps", type=int, default=25_000)
    parser.add_argument("options", nargs="*", help="options of fastpong train, after --")
    parser.add_argument("--sums", type=int, nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.sums:
        time_sums(arguments.sums)
        return
    config = make_config("fast")
    size = len(make_policy(config).weights)
    print(f"gradient: {size:,} numbers, {4 * size / 1e6:.2f} MB in float32\n")
    print(
        "| Gbit/s | hosts | sum, ms | in bfloat16, ms | latency, ms | training on them, steps/s |\n" + "|---" * 6 + "|"
    )
    latencies, errors = [], []
    for rate in arguments.rates:
        for hosts in arguments.hosts:
            put_up(hosts, rate)
            try:
                tiny, _, full, half = json.loads(mpiexec(hosts, __file__, "--sums", "1", str(size)))
                speed = f"{train(hosts, arguments.steps, arguments.options):.0f}" if hosts == 2 else "–"
            finally:
                take_down(hosts)
            cells = f"{1e3 * full:.2f} | {1e3 * half:.2f} | {1e3 * tiny:.3f} | {speed}"
            print(f"| {rate:g} | {hosts} | {cells} |", flush=True)
            latencies.append(tiny / math.log2(hosts))
            errors.append(full / seconds_of_sum(hosts, 4 * size, rate, tiny / math.log2(hosts)))
    latency = statistics.median(latencies)
    print(f"\nlatency: {1e6 * latency:.0f} µs; measured over modelled: {min(errors):.2f} … {max(errors):.2f}")
    sums = config.epochs * -(-config.rollout_steps * config.envs // config.minibatch)
    for rate in arguments.rates:
        total = sums * seconds_of_sum(1536, 4 * size, rate, latency)
        print(f"1536 hosts at {rate:g} Gbit/s: the {sums} sums of a batch of 8192 steps take {total:.2f} s (computed)")


def seconds_of_sum(hosts: int, size: int, rate: float, latency: float) -> float:
    """Return what the model says of a sum of `size` bytes at `rate` Gbit/s."""
    return latency * math.log2(hosts) + 2 * (hosts - 1) / hosts * 8 * size / (rate * 1e9)


if __name__ == "__main__":
    main()
