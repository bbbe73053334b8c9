"""A stranger's checkpoint with a good digest: whatever is wrong in it, no kernel gets to see it."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from fastpong.envs.vector_env import VectorEnv
from fastpong.runs.checkpoint import CheckpointError
from fastpong.training.actor import Actor
from fastpong.training.trainer import Trainer
from tests.support.trainings import small

Arrays = dict[str, Any]


@pytest.fixture(scope="module", params=["fast", "karpathy"])
def trainer(request: pytest.FixtureRequest) -> Iterator[Trainer]:
    config = small(request.param)
    with VectorEnv.of(config, 2) as envs, contextlib.closing(Trainer(config, Actor(config, envs))) as trainer:
        trainer.start()
        for _ in range(150):
            trainer.step()
            trainer.learn_if_due()
        yield trainer


def at(index: Any, value: Any) -> Callable[[Any], Any]:
    """Return a function that returns an array with another value there."""

    def put(array: Any) -> Any:
        array = array.copy()
        array[index] = value
        return array

    return put


CHANGES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "an image beyond the court": ("rollout.images", lambda images: at(-1, np.iinfo(images.dtype).max)(images)),
    "an image before the court": ("rollout.images", lambda images: at(-1, np.iinfo(images.dtype).min)(images)),
    "images in another order": ("rollout.images", lambda images: images[::-1].copy()),
    "an image too few": ("rollout.images", lambda images: images[1:]),
    "an action that there is not": ("rollout.actions", at(-1, 250)),
    "a game that began before its beginning": ("rollout.steps_since_reset", at(-1, -(2**62))),
    "a batch that begins too late": ("rollout.first_unused", at(-1, 2**40)),
    "a length below 0": ("rollout.lengths", at(-1, -1)),
    "lengths of another type": ("rollout.lengths", lambda lengths: lengths.astype(np.int32)),
    "a row too few": ("rollout.values", lambda values: values[1:]),
    "a value that is no number": ("rollout.values", at(-1, np.nan)),
    "an env too few": ("envs.rows", lambda rows: rows[1:]),
    "states of another size": ("envs.rows", lambda rows: rows[:, :-64]),
    "states of another type": ("envs.rows", lambda rows: rows.view(np.int8)),
    "smaller images": ("envs.image", lambda images: images[:, 1:]),
    "a pixel too many": ("rollout.last_counts", at(-1, 6401)),
    "weights of another shape": ("policy.w1", lambda weights: weights[1:]),
    "infinite weights": ("policy.w2", at(-1, np.inf)),
    "a count too few": ("stats.counts", lambda counts: counts[1:]),
    "three running rewards": ("stats.running", lambda _: np.zeros(3)),
    "fewer than no updates": ("learner.updates", lambda _: np.array(-1)),
    "steps that are text": ("step", lambda _: np.array("many")),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_no_run_could_have_saved_is_refused_before_anything_changes(what: str, trainer: Trainer) -> None:
    arrays = trainer.state()
    name, change = CHANGES[what]
    name = name.replace("image", trainer.rollout.encoding.image) if name == "envs.image" else name
    with pytest.raises(CheckpointError, match="saved this checkpoint: "):
        trainer.load_state({**arrays, name: change(arrays[name])})
    for other, array in trainer.state().items():
        np.testing.assert_array_equal(array, arrays[other])


def test_no_array_is_missing_or_unknown(trainer: Trainer) -> None:
    arrays = trainer.state()
    for name in arrays:
        with pytest.raises(CheckpointError, match=f"{name} is missing"):
            trainer.load_state({other: array for other, array in arrays.items() if other != name})
    with pytest.raises(CheckpointError, match="rollout.more"):
        trainer.load_state({**arrays, "rollout.more": np.zeros(3)})
    trainer.load_state(arrays)


def test_a_row_that_reaches_back_too_far_is_refused() -> None:
    config = small("fast")
    with VectorEnv.of(config, 2) as envs, contextlib.closing(Trainer(config, Actor(config, envs))) as trainer:
        trainer.start()
        trainer.step(3)
        arrays: Arrays = trainer.state()
        trainer.load_state(arrays)
        with pytest.raises(CheckpointError, match="before the first row"):
            trainer.load_state({**arrays, "rollout.steps_since_reset": arrays["rollout.steps_since_reset"] + 1})
