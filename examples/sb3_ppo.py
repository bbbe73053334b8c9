"""Stable-Baselines3's PPO on fastpong's envs, through a small adapter.

    python examples/sb3_ppo.py --minutes 10 [--env ale]

Stable-Baselines3 has a vector env of its own kind: games begin anew in the step in which they end, which fastpong's
``SameStep`` does, and ale-py's as well (--env ale).
"""

import argparse
import time

import gymnasium
import numpy as np
from ale_py import AtariVectorEnv
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

import fastpong.gym

gymnasium.register_envs(fastpong.gym)  # to import it is enough; this says so


class Adapter(VecEnv):
    """A gymnasium vector env with ``SameStep`` as one of Stable-Baselines3."""

    def __init__(self, envs):
        self.envs = envs
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self.points, self.steps, self.began = np.zeros(self.num_envs), np.zeros(self.num_envs, int), time.time()

    def reset(self):
        """Begin all games."""
        return self.envs.reset(seed=0)[0]

    def step_async(self, actions):
        """Keep the actions for `step_wait`."""
        self.actions = actions

    def step_wait(self):
        """Step all games."""
        seen, rewards, terminated, truncated, info = self.envs.step(self.actions)
        ended, infos = terminated | truncated, [{} for _ in range(self.num_envs)]
        self.points, self.steps = self.points + rewards, self.steps + 1
        for env in np.flatnonzero(ended):
            facts = {"r": self.points[env], "l": int(self.steps[env]), "t": time.time() - self.began}
            infos[env] = {"episode": facts, "TimeLimit.truncated": bool(truncated[env] and not terminated[env])}
            infos[env]["terminal_observation"] = info["final_obs"][env]
            self.points[env] = self.steps[env] = 0
        return seen, rewards.astype(np.float32), ended, infos

    def close(self):
        """Stop the envs."""
        self.envs.close()

    def env_is_wrapped(self, wrapper_class, indices=None):
        """No env is wrapped."""
        return [False] * self.num_envs

    def get_attr(self, attr_name, indices=None):
        """Return an attribute of all envs: there is one object for all of them."""
        return [getattr(self.envs, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name, value, indices=None):
        """Set nothing."""
        raise NotImplementedError

    def env_method(self, method_name, *arguments, indices=None, **options):
        """Call nothing."""
        raise NotImplementedError


class Report(BaseCallback):
    """Prints a line for each batch, and stops after some minutes."""

    def __init__(self, minutes):
        super().__init__()
        self.seconds, self.began = 60 * minutes, time.perf_counter()

    def _on_step(self):
        return time.perf_counter() < self.began + self.seconds

    def _on_rollout_end(self):
        seconds, scores = time.perf_counter() - self.began, [game["r"] for game in self.model.ep_info_buffer]
        score, steps = np.mean(scores) if scores else float("nan"), self.num_timesteps
        print(f"{seconds:5.0f} s  {steps:9,} steps  {steps / seconds:5,.0f}/s  score {score:6.2f}", flush=True)


def make(kind, num_envs):
    """Make the envs."""
    if kind == "fastpong":
        return gymnasium.make_vec("fastpong/Pong-v0", num_envs=num_envs, obs="stack84", autoreset_mode="SameStep")
    return AtariVectorEnv(
        "pong", num_envs, noop_max=0, use_fire_reset=False, repeat_action_probability=0.25, autoreset_mode="SameStep"
    )


def main():
    """Train with the settings that RL Zoo has for Atari."""
    options = argparse.ArgumentParser()
    options.add_argument("--env", choices=("fastpong", "ale"), default="fastpong")
    options.add_argument("--envs", type=int, default=16)
    options.add_argument("--minutes", type=float, default=10.0)
    options = options.parse_args()
    report = Report(options.minutes)
    envs = Adapter(make(options.env, options.envs))
    model = PPO(
        "CnnPolicy", envs, n_steps=128, n_epochs=4, batch_size=256, learning_rate=2.5e-4, clip_range=0.1, vf_coef=0.5,
        ent_coef=0.01, seed=0, device="cpu",
    )  # fmt: skip
    print(f"{options.envs} games, a line after each {options.envs * model.n_steps:,} steps", flush=True)
    model.learn(10**9, callback=report)
    envs.close()


if __name__ == "__main__":
    main()
