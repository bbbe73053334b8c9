"""What a network costs: ranks on hosts of their own, which are network namespaces of this machine (needs root).

    python -m bench.hosts [--rates 0.1 1 10] [--hosts 2 4] [--steps 200000] [--set KEY=VALUE …]

Each host is a namespace with one address, joined to the others by a bridge; what it sends is limited to the rate
(Gbit/s) with tc's token bucket. MPI is made to use TCP, as between machines. For each rate and number of hosts: what
an allreduce of the default network's gradient takes, what one of a single number takes (the latency), and how fast two
hosts train. Prints a Markdown table, then the fit of

    seconds of an allreduce = latency · log2(hosts) + 2 (hosts − 1) / hosts · bytes / rate

and what it says about 1536 hosts of one core. The latency here is that of namespaces, some 10 µs; a real network's is
to be put in its place.
"""

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.common import allreduces, output_of, parser, train_on_ranks
from fastpong.config import make_config
from fastpong.config_sources import parse_assignments
from fastpong.policy import make_policy

NETWORK = "10.77.0"

SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
exec ip netns exec "$host" sh -c "$*"
"""
"""What mpiexec calls in place of ssh, with options, a host and a command."""


def sh(command: str, check: bool = True) -> None:
    """Run a command of iproute2."""
    subprocess.run(command.split(), check=check, stderr=None if check else subprocess.DEVNULL)


def take_down(hosts: int) -> None:
    """Remove the hosts and their bridge, or what is left of them."""
    for host in range(hosts):
        sh(f"ip netns del fastpong{host}", check=False)
        # A process that a killed run left in the namespace keeps that, and the cable to it.
        sh(f"ip link del fastpong-v{host}", check=False)
    sh("ip link del fastpong", check=False)


@contextmanager
def network(hosts: int, rate: float) -> Iterator[list[str]]:
    """Make a bridge and hosts that send `rate` Gbit/s each; give the launcher of a rank on each."""
    take_down(hosts)
    try:
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
        with tempfile.TemporaryDirectory() as folder:
            ssh = Path(folder) / "ssh"
            ssh.write_text(SSH)
            ssh.chmod(0o755)
            names = ",".join(f"fastpong{host}" for host in range(hosts))
            mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
            remote = ["-launcher", "ssh", "-launcher-exec", str(ssh), "-iface", "fastpong", "-hosts", names]
            yield [mpiexec, *remote, "-n", str(hosts)]
    finally:
        take_down(hosts)


def seconds_of_allreduce(hosts: int, size: int, rate: float, latency: float) -> float:
    """Return what the model says of an allreduce of `size` bytes at `rate` Gbit/s."""
    return latency * math.log2(hosts) + 2 * (hosts - 1) / hosts * 8 * size / (rate * 1e9)


def main() -> None:
    """Measure, fit and extrapolate."""
    options = parser(__doc__)
    options.add_argument("--rates", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    options.add_argument("--hosts", type=int, nargs="+", default=[2, 4])
    options.add_argument("--steps", type=int, default=200_000)
    options.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for fastpong train")
    arguments = options.parse_args()
    os.environ |= {"UCX_TLS": "tcp,self", "FI_PROVIDER": "tcp"}
    config = make_config("fast", parse_assignments(arguments.set))
    size = len(make_policy(config).weights.flat)
    print(f"gradient: {size:,} numbers, {4 * size / 1e6:.2f} MB in float32\n")
    print("| Gbit/s | hosts | allreduce, ms | latency, ms | training on them, steps/s |\n" + "|---" * 5 + "|")
    latencies, errors = [], []
    for rate in arguments.rates:
        for hosts in arguments.hosts:
            with network(hosts, rate) as launcher:
                program = [sys.executable, "-m", "bench.ranks", "--allreduce", "1", str(size), "--rounds", "8"]
                tiny, full = json.loads(output_of([*launcher, *program]))
                speed = "–"
                if hosts == 2:
                    result = train_on_ranks(launcher, arguments.steps, arguments.set, ["--workers", "1"])
                    speed = f"{result['speed']:.0f}"
            print(f"| {rate:g} | {hosts} | {1e3 * full:.2f} | {1e3 * tiny:.3f} | {speed} |", flush=True)
            latencies.append(tiny / math.log2(hosts))
            errors.append(full / seconds_of_allreduce(hosts, 4 * size, rate, tiny / math.log2(hosts)))
    latency = statistics.median(latencies)
    print(f"\nlatency: {1e6 * latency:.0f} µs; measured over modelled: {min(errors):.2f} … {max(errors):.2f}")
    count = allreduces(config)
    for rate in arguments.rates:
        total = count * seconds_of_allreduce(1536, 4 * size, rate, latency)
        print(f"1536 hosts at {rate:g} Gbit/s: the {count} allreduces of a batch take {total:.2f} s (computed)")


if __name__ == "__main__":
    main()
