"""Stable-Baselines3's PPO with its Atari settings on Pong, on the CPU. A peer to measure against, see peers.py.

    python -m bench.sb3 --seconds 60 [--seed 0]

The settings are those of RL Zoo (8 envs in subprocesses, 128 steps, 4 epochs in minibatches of 256, frames of 84×84
in stacks of 4, learning rate 2.5e-4 and clip 0.1 falling), with sticky actions 0.25 as ``ALE/Pong-v5`` has them. Prints
a line of JSON after every rollout.
"""

import argparse
import json
import statistics
import time


def main() -> None:
    """Train until the time is up."""
    began = time.perf_counter()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack

    class Lines(BaseCallback):  # type: ignore[misc]
        def _on_step(self) -> bool:
            return bool(time.perf_counter() - began < arguments.seconds)

        def _on_rollout_end(self) -> None:
            scores = [episode["r"] for episode in self.model.ep_info_buffer]
            score = statistics.fmean(scores) if scores else None
            line = {"wall_s": time.perf_counter() - began, "steps": self.num_timesteps, "score": score}
            print(json.dumps(line), flush=True)

    envs = make_atari_env(
        "ale_py:PongNoFrameskip-v4", n_envs=8, seed=arguments.seed, vec_env_cls=SubprocVecEnv,
        wrapper_kwargs={"action_repeat_probability": 0.25},
    )  # fmt: skip
    model = PPO(
        "CnnPolicy", VecFrameStack(envs, n_stack=4), n_steps=128, n_epochs=4, batch_size=256, device="cpu",
        learning_rate=lambda left: 2.5e-4 * left, clip_range=lambda left: 0.1 * left, ent_coef=0.01, vf_coef=0.5,
        seed=arguments.seed,
    )  # fmt: skip
    model.learn(10_000_000, callback=Lines())


if __name__ == "__main__":
    main()
