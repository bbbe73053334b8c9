"""What `bench.faults` does for hours, for some rounds."""

import json
import subprocess
import sys


def test_a_run_that_is_killed_again_and_again_has_the_bits_of_one_that_is_not() -> None:
    """A random process of it, in each of three rounds; with exploring starts and the critic.

    After 5 s there is a checkpoint on a slow machine as well; `bench.faults` kills sooner, too, and more often.
    """
    seconds = "--shortest", "5", "--longest", "8"
    command = [sys.executable, "-m", "bench.faults", "crash", "--rounds", "3", *seconds]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["from a checkpoint"] >= 1, "nothing was resumed: to be equal shows nothing then"
    assert result["steps"] >= 2000 and result["different"] == []
