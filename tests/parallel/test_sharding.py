"""States that are cut by envs and joined again."""

import numpy as np

from fastpong.parallel.comm import env_range
from fastpong.parallel.sharding import Layout, cut, join


def test_states_are_cut_and_joined() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 4, (3, 5))
    layout: Layout = {"lengths": 1, "images": "lengths", "score": 0, "total": None}
    images = np.concatenate([np.full(int(lengths[:, env].sum()), env) for env in range(5)])
    whole = {"lengths": lengths, "images": images, "score": np.arange(5), "total": np.array(9)}
    parts = [cut(whole, layout, env_range(5, rank, 3)) for rank in range(3)]
    assert set(parts[1]["images"].tolist()) <= set(env_range(5, 1, 3))
    joined = join(parts, layout)
    for name, array in whole.items():
        np.testing.assert_array_equal(joined[name], array)
