"""The metrics of a run: each key of a line of ``metrics.jsonl``, with its unit and meaning, defined once."""

from typing import NamedTuple


class Metric(NamedTuple):
    """One number of a line."""

    unit: str
    meaning: str
    only: str = ""  # the algorithm, or the preset, that alone has it


METRICS = {
    "wall_s": Metric("s", "wall-clock time from the start of the command, over all sessions of the run"),
    "steps": Metric("steps", "agent steps of frame_skip frames, over all envs"),
    "steps_per_s": Metric("steps/s", "speed since the line before"),
    "games": Metric("games", "finished games, matches to 21"),
    "score": Metric(
        "points", "mean points won minus lost of the last 100 games (or fewer) begun since the weights were drawn"
    ),
    "point_rate": Metric("share", "points won since the line before, of all points"),
    "game_length": Metric("steps", "mean length of the same games"),
    "running_reward": Metric("points", "running mean of the scores, or with windows of their rewards"),
    "updates": Metric("steps", "steps of the optimiser since the weights were drawn, one for each minibatch"),
    "phase": Metric("", "early, or late once the agent wins most points", "ppo"),
    "reinits": Metric("times", "how often the weights were drawn anew", "ppo"),
    "entropy": Metric("nats", "mean entropy of the policy over the last batch"),
    "approx_kl": Metric("nats", "KL divergence of the last batch, (ρ − 1) − log ρ, mean over all epochs", "ppo"),
    "clip_fraction": Metric("share", "samples whose ratio was clipped, mean over all epochs", "ppo"),
    "explained_variance": Metric("share", "variance of the returns that the policy's value explains", "ppo"),
    "learning_rate": Metric("", "step size of the optimiser for the last batch"),
    "batch_games": Metric("games", "games of the last batch", "ray"),
    "batch_s": Metric("s", "wall-clock time that its steps took", "ray"),
    "window_reward": Metric("points", "points won minus lost in the last window, per env", "ppg"),
    "per_kup": Metric("points", "reward gained per 1000 updates, over the last 100 windows", "ppg"),
    "world_size": Metric("ranks", "ranks that train together"),
    "comm_s": Metric("s", "time of rank 0 in communication so far, waiting included"),
    "replaced": Metric("processes", "env subprocesses or Ray actors that died or hung, and were replaced so far"),
}
