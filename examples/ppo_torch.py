"""PPO in PyTorch on fastpong's envs: one file with nothing hidden, in the manner of CleanRL.

    python examples/ppo_torch.py --minutes 10 [--env ale]

It sees stacks of four grey 84×84 images, as everybody's Atari agents do, so that it can also learn on ale-py's own
vector env (--env ale) for comparison. Schulman et al., "Proximal policy optimization algorithms", 2017; the network of
Mnih et al., 2015.
"""

import argparse
import time

import gymnasium
import numpy as np
import torch
from ale_py import AtariVectorEnv
from torch import nn
from torch.distributions import Categorical

import fastpong.gym

gymnasium.register_envs(fastpong.gym)  # to import it is enough; this says so
STEPS, EPOCHS, MINIBATCHES = 128, 4, 4  # steps of each env in a batch
LEARNING_RATE, GAMMA, GAE_LAMBDA = 2.5e-4, 0.99, 0.95
CLIP, ENTROPY_COEF, VALUE_COEF, MAX_GRAD_NORM = 0.1, 0.01, 0.5, 0.5


def layer(module, gain=2**0.5):
    """Give a layer orthogonal weights."""
    nn.init.orthogonal_(module.weight, gain)
    nn.init.zeros_(module.bias)
    return module


class Network(nn.Module):
    """Images in, logits and value out."""

    def __init__(self, actions):
        super().__init__()
        self.body = nn.Sequential(
            layer(nn.Conv2d(4, 32, 8, 4)), nn.ReLU(), layer(nn.Conv2d(32, 64, 4, 2)), nn.ReLU(),
            layer(nn.Conv2d(64, 64, 3, 1)), nn.ReLU(), nn.Flatten(), layer(nn.Linear(3136, 512)), nn.ReLU(),
        )  # fmt: skip
        self.policy, self.value = layer(nn.Linear(512, actions), 0.01), layer(nn.Linear(512, 1), 1.0)

    def forward(self, images):
        """Return the distribution of actions and the value (n,)."""
        hidden = self.body(images.float() / 255)
        return Categorical(logits=self.policy(hidden)), self.value(hidden)[:, 0]


def make(kind, num_envs):
    """Make the envs; a step after the end of a game begins the next one."""
    if kind == "fastpong":
        return gymnasium.make_vec("fastpong/Pong-v0", num_envs=num_envs, obs="stack84")
    return AtariVectorEnv("pong", num_envs, noop_max=0, use_fire_reset=False, repeat_action_probability=0.25)


def main():
    """Train for some minutes."""
    options = argparse.ArgumentParser()
    options.add_argument("--env", choices=("fastpong", "ale"), default="fastpong")
    options.add_argument("--envs", type=int, default=16)
    options.add_argument("--minutes", type=float, default=10.0)
    options = options.parse_args()
    torch.manual_seed(0)
    began = time.perf_counter()  # emulators take their time to begin, in one env here, in the other later
    envs = make(options.env, options.envs)
    network = Network(envs.single_action_space.n)
    optimiser = torch.optim.Adam(network.parameters(), LEARNING_RATE, eps=1e-5)
    shape = (STEPS, options.envs)
    images = torch.zeros((*shape, 4, 84, 84), dtype=torch.uint8)
    actions, log_probs, rewards, values = (torch.zeros(shape) for _ in range(4))
    over, real = torch.zeros(shape), torch.zeros(shape, dtype=torch.bool)  # a step that only begins a game is not real
    print(f"{options.envs} games, a line after each {options.envs * STEPS:,} steps", flush=True)
    image, _ = envs.reset(seed=0)
    ended, points, scores, steps = np.zeros(options.envs, bool), np.zeros(options.envs), [], 0
    while time.perf_counter() < began + 60 * options.minutes:
        for t in range(STEPS):
            images[t] = torch.from_numpy(image)
            with torch.no_grad():
                policy, values[t] = network(images[t])
            actions[t] = action = policy.sample()
            log_probs[t], real[t] = policy.log_prob(action), torch.from_numpy(~ended)
            image, reward, terminated, truncated, _ = envs.step(action.numpy())
            ended, points = terminated | truncated, points + reward
            rewards[t], over[t] = torch.from_numpy(reward), torch.from_numpy(ended)
            scores += points[ended].tolist()
            points[ended] = 0
        with torch.no_grad():
            next_value = network(torch.from_numpy(image))[1]
        advantages, running = torch.zeros(shape), torch.zeros(options.envs)
        for t in reversed(range(STEPS)):  # generalised advantage estimation
            delta = rewards[t] + GAMMA * next_value * (1 - over[t]) - values[t]
            running = delta + GAMMA * GAE_LAMBDA * (1 - over[t]) * running
            advantages[t], next_value = running, values[t]
        returns = advantages + values
        chosen = real.flatten().nonzero()[:, 0]
        batch = [x.flatten(0, 1)[chosen] for x in (images, actions, log_probs, advantages, returns)]
        for _ in range(EPOCHS):
            for part in torch.randperm(len(chosen)).chunk(MINIBATCHES):
                x, action, before, advantage, target = (array[part] for array in batch)
                policy, value = network(x)
                ratio = (policy.log_prob(action) - before).exp()
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                gain = torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
                error = 0.5 * (value - target).square().mean()
                loss = VALUE_COEF * error - gain - ENTROPY_COEF * policy.entropy().mean()
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), MAX_GRAD_NORM)
                optimiser.step()
        steps, seconds = steps + len(chosen), time.perf_counter() - began
        score = np.mean(scores[-100:]) if scores else float("nan")
        print(f"{seconds:5.0f} s  {steps:9,} steps  {steps / seconds:5,.0f}/s  score {score:6.2f}", flush=True)
    envs.close()


if __name__ == "__main__":
    main()
