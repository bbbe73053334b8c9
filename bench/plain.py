"""The reference programs' algorithm in plain NumPy: one env, one process. A peer to measure against, see peers.py.

    python -m bench.plain --seconds 60 [--seed 0]

Karpathy's program (https://gist.github.com/karpathy/a4166c7fe253700972fcbc77e4ea32c5) as Ray's example has it, with
gymnasium's ``ALE/Pong-v5`` (four frames a step, sticky actions 0.25) in place of gym's ``Pong-v0``: dense matrices, a
game at a time, an update after every ten. Prints a line of JSON after each game.
"""

import argparse
import json
import time
from typing import Any

import ale_py
import gymnasium
import numpy as np
import numpy.typing as npt

gymnasium.register_envs(ale_py)

HIDDEN, INPUTS = 200, 80 * 80
GAMMA, LEARNING_RATE, DECAY, BATCH_GAMES = 0.99, 1e-4, 0.99, 10
UP, DOWN = 2, 3


def preprocess(screen: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Crop, halve and binarise a (210, 160, 3) screen: float64 (6400,)."""
    image = screen[35:195:2, ::2, 0].copy()
    image[(image == 144) | (image == 109)] = 0
    image[image != 0] = 1
    return image.astype(np.float64).ravel()


def discounted(rewards: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the discounted sum of the rewards after each step, until the point ends."""
    returns, running = np.zeros_like(rewards), 0.0
    for t in reversed(range(len(rewards))):
        running = rewards[t] if rewards[t] != 0 else running * GAMMA
        returns[t] = running
    return returns


def play(env: Any, weights: dict[str, Any], rng: np.random.Generator) -> tuple[dict[str, Any], float, int]:
    """Play a game; return its gradient, its score and its steps."""
    screen, _ = env.reset()
    before, over = None, False
    inputs, hidden, errors, rewards = [], [], [], []
    while not over:
        now = preprocess(screen)
        x = now - before if before is not None else np.zeros(INPUTS)
        before = now
        h = np.maximum(weights["w1"] @ x, 0.0)
        up = 1.0 / (1.0 + np.exp(-weights["w2"] @ h))
        action = UP if rng.random() < up else DOWN
        screen, reward, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
        inputs.append(x)
        hidden.append(h)
        errors.append((action == UP) - up)
        rewards.append(reward)
    x, h = np.vstack(inputs), np.vstack(hidden)
    advantages = discounted(np.array(rewards, np.float64))
    slopes = np.array(errors) * (advantages - advantages.mean()) / advantages.std()
    grad_hidden = np.outer(slopes, weights["w2"]) * (h > 0)
    return {"w1": grad_hidden.T @ x, "w2": h.T @ slopes}, sum(rewards), len(rewards)


def main() -> None:
    """Play and learn until the time is up."""
    began = time.perf_counter()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    weights = {
        "w1": rng.standard_normal((HIDDEN, INPUTS)) / np.sqrt(INPUTS),
        "w2": rng.standard_normal(HIDDEN) / np.sqrt(HIDDEN),
    }
    gradient = {name: np.zeros_like(array) for name, array in weights.items()}
    cache = {name: np.zeros_like(array) for name, array in weights.items()}
    env = gymnasium.make("ALE/Pong-v5")
    env.reset(seed=arguments.seed)
    steps = 0
    scores: list[float] = []
    while time.perf_counter() - began < arguments.seconds:
        found, score, played = play(env, weights, rng)
        steps += played
        scores.append(score)
        for name, array in found.items():
            gradient[name] += array
        if len(scores) % BATCH_GAMES == 0:
            for name, array in gradient.items():
                cache[name] = DECAY * cache[name] + (1 - DECAY) * array**2
                weights[name] += LEARNING_RATE * array / (np.sqrt(cache[name]) + 1e-5)
                array[:] = 0.0
        line = {"wall_s": time.perf_counter() - began, "steps": steps, "score": float(np.mean(scores[-100:]))}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
