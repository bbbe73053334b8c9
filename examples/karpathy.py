"""Pong from pixels in a hundred lines of NumPy: the whole algorithm of Andrej Karpathy's program, many games at once.

    python examples/karpathy.py --minutes 10

The input is the difference of two 80×80 images. A hidden layer of 200 units and one output say how probable "up" is.
After each batch, actions that led to a won point are made more probable, those that led to a lost one less. In ten
minutes on two cores (1.6 million steps) its mean score rises from −20.4 to −13.9.
"""

import argparse
import time

import gymnasium
import numpy as np

import fastpong.gym

gymnasium.register_envs(fastpong.gym)  # to import it is enough; this says so
HIDDEN, GAMMA, LEARNING_RATE, DECAY, EPSILON = 200, 0.99, 1e-3, 0.99, 1e-5
RNG = np.random.default_rng(0)


def play(envs, weights, images, steps, scores):
    """Play some steps of all games; return what was seen, done and won: (steps, games, …)."""
    seen = np.zeros((steps, envs.num_envs, 6400), np.int8)
    actions, rewards = np.zeros((2, steps, envs.num_envs), np.float32)
    for t in range(steps):
        seen[t] = images.reshape(-1, 6400)
        _, up = forward(weights, seen[t])
        actions[t] = RNG.random(len(up)) < up
        images, rewards[t], _, _, info = envs.step(1 - actions[t].astype(int))  # action 0 is up
        if "score" in info:
            scores += (info["score"] - info["opponent"])[info["_score"]].tolist()
    return images, seen, actions, rewards


def forward(weights, x):
    """Return the hidden units (n, 200) and the probability of "up" (n,)."""
    hidden = np.maximum(x.astype(np.float32) @ weights["w1"], 0)
    return hidden, 1 / (1 + np.exp(-hidden @ weights["w2"]))


def returns_of(rewards):
    """Return the discounted returns within each point, and which steps belong to points that are over."""
    returns, known = np.zeros_like(rewards), np.zeros(rewards.shape, bool)
    running, over = np.zeros(rewards.shape[1], np.float32), np.zeros(rewards.shape[1], bool)
    for t in reversed(range(len(rewards))):
        over |= rewards[t] != 0
        running = np.where(rewards[t] != 0, rewards[t], GAMMA * running)  # a point is a game of its own
        returns[t], known[t] = running, over
    return returns, known


def gradients(weights, seen, actions, advantages):
    """Return the gradient of Σ advantage · log p(action), a thousand samples at a time."""
    total = {name: np.zeros_like(array) for name, array in weights.items()}
    for begin in range(0, len(seen), 1000):
        part = slice(begin, begin + 1000)
        x = seen[part].astype(np.float32)
        hidden, up = forward(weights, x)
        grad_logit = (actions[part] - up) * advantages[part]  # d log p / d logit is y − p
        total["w2"] += grad_logit @ hidden
        total["w1"] += x.T @ (np.outer(grad_logit, weights["w2"]) * (hidden > 0))
    return total


def main():
    """Train for some minutes, and print the mean of the last 100 games."""
    options = argparse.ArgumentParser()
    options.add_argument("--minutes", type=float, default=10.0)
    options.add_argument("--envs", type=int, default=32)
    options.add_argument("--steps", type=int, default=400, help="of each game in a batch")
    options = options.parse_args()
    weights = {"w1": RNG.standard_normal((6400, HIDDEN), np.float32) / 80}
    weights["w2"] = RNG.standard_normal(HIDDEN, np.float32) / np.float32(np.sqrt(HIDDEN))
    mean_square = {name: np.zeros_like(array) for name, array in weights.items()}
    envs = gymnasium.make_vec("fastpong/Pong-v0", num_envs=options.envs, obs="karpathy", actions=2)
    images, _ = envs.reset(seed=0)
    scores, steps, began = [], 0, time.perf_counter()
    print(f"{options.envs} games, a line after each {options.envs * options.steps:,} steps", flush=True)
    while time.perf_counter() < began + 60 * options.minutes:
        images, seen, actions, rewards = play(envs, weights, images, options.steps, scores)
        returns, known = returns_of(rewards)
        advantages = (returns[known] - returns[known].mean()) / (returns[known].std() + 1e-8)
        gradient = gradients(weights, seen[known], actions[known], advantages)
        for name, array in weights.items():  # RMSProp, uphill
            mean_square[name] = DECAY * mean_square[name] + (1 - DECAY) * gradient[name] ** 2
            array += LEARNING_RATE * gradient[name] / (np.sqrt(mean_square[name]) + EPSILON)
        steps += actions.size
        seconds = time.perf_counter() - began
        score = np.mean(scores[-100:]) if scores else float("nan")
        print(f"{seconds:5.0f} s  {steps:9,} steps  {steps / seconds:5,.0f}/s  score {score:6.2f}", flush=True)
    envs.close()


if __name__ == "__main__":
    main()
