"""Rollout buffer: transitions of all envs that no update has used yet, one row per step of all envs."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpong.arrays import I64, Arrays
from fastpong.config import Config
from fastpong.kernels.preprocess import PIXELS, LastImages, Observation, record_changes, record_strips
from fastpong.kernels.structs import Inputs, RolloutArrays
from fastpong.parallel.sharding import ANY, Field, join, layout_of

_FIRST_ROWS = 256  # of the buffer, which grows as needed


class Encoding(NamedTuple):
    """How images are written down in the list of all of them."""

    image: str  # which of `fastpong.envs.engine.IMAGES` it reads
    record: Any  # a kernel, see `preprocess`
    dtype: type[np.generic]  # of the numbers in the list
    pixels: int  # of an env's last image, which its next one needs, at most


STRIPS = Encoding("courts", record_strips, np.int32, 0)
"""Vertical strips of set pixels."""
CHANGES = Encoding("screens", record_changes, np.int16, PIXELS)
"""Pixels that changed since the image before."""


def fields(config: Config, encoding: Encoding) -> dict[str, Field]:
    """Return the arrays of a state by name, of a run with these settings."""
    step, held = ("rows", "envs"), config.exploring_start_steps
    return {
        "lengths": Field(np.int64, step, 0, 2 * PIXELS),
        "steps_since_reset": Field(np.int64, step),
        "forced": Field(np.int16, step, -held, held),
        "actions": Field(np.uint8, step, 0, config.num_actions - 1),
        "log_probs": Field(np.float32, step, -ANY),
        "values": Field(np.float32, step, -ANY),
        "rewards": Field(np.int8, step, -128),
        "ended": Field(np.int8, step, 0, 1),
        "images": Field(encoding.dtype, ("images",), -ANY, lengths="lengths"),
        "first_unused": Field(np.int64, ("envs",)),
        "last_pixels": Field(np.int16, ("pixels",), 0, PIXELS - 1, lengths="last_counts"),
        "last_counts": Field(np.int64, ("envs",), 0, encoding.pixels),
    }


_FIELDS = fields(Config(), STRIPS)
LAYOUT = layout_of(_FIELDS)
"""Of the arrays of a state, see `fastpong.parallel.sharding`."""

_SAVED = tuple(name for name, field in _FIELDS.items() if field.shape == ("rows", "envs"))
_COLUMNS = {"offsets": np.int64, **{name: _FIELDS[name].dtype for name in _SAVED}}  # offsets follow from the lengths

_OUTCOMES = ("rewards", "ended")  # known one step later than the others

TAIL = {name: LAYOUT[name] for name in (*_SAVED, "images")}
"""Of the arrays of a `Rollout.tail`, see `fastpong.parallel.sharding`."""


class Rollout:
    """Transitions of all envs since the last batch, with the unfinished ones of before.

    Row t of each (rows, envs) array in `arrays` is one step of all envs; `inputs` are the same, flattened, as kernels
    take them. Their images are one long list, with `offsets` and `lengths` for each step. All of it grows as needed.
    There are `rows` so far; the last one has no outcome yet. `first_unused` int64 (envs,) is the first row of each env
    that no batch has used. Earlier rows are history: the network's inputs reach back `history` steps.
    """

    def __init__(self, config: Config, encoding: Encoding, history: int, num_envs: int):
        self.config, self.num_envs, self.history, self.encoding = config, num_envs, history, encoding
        self._last = LastImages(np.zeros((num_envs, encoding.pixels), np.int16), np.zeros(num_envs, np.int64))
        self.rows = 0
        self._end = 0  # of what is used of `_images`
        self._images = np.zeros(1 << 20, encoding.dtype)
        self.first_unused = np.zeros(self.num_envs, np.int64)
        self._hold({name: np.zeros((_FIRST_ROWS, self.num_envs), dtype) for name, dtype in _COLUMNS.items()})

    def new_row(self) -> int:
        """Open a row for the next step of all envs and return its index."""
        if self.rows == len(self.arrays.lengths):
            columns = self.arrays._asdict()
            self._hold({name: np.concatenate([array, np.zeros_like(array)]) for name, array in columns.items()})
        self.rows += 1
        return self.rows - 1

    def record(self, row: int, observation: Observation, rows: I64, members: I64) -> None:
        """Write down the images of the envs `members` int64 (n,), and what the step before a row brought.

        `rows` int64 (n,) are these envs' rows in the observation.
        """
        self._reserve(2 * PIXELS * len(members))  # as much as the fullest of screens could need
        self._end = self.encoding.record(
            observation, rows, members, self.inputs.arrays, row * self.num_envs, self._images, self._end, self._last
        )

    def release(self, rows: I64 | int) -> None:
        """Let go of the rows before these, int64 (envs,), but for history."""
        self.first_unused[:] = rows
        used = int(self.first_unused.min()) - self.history
        if used <= 0:
            return
        left = self.rows - used
        base = int(self.arrays.offsets[used].min()) if left else self._end
        for array in self.arrays:
            array[:left] = array[used : self.rows]
        self.arrays.offsets[:left] -= base
        self._images[: self._end - base] = self._images[base : self._end]
        self._end -= base
        self.rows = left
        self.first_unused -= used

    def state(self) -> Arrays:
        """Everything that the next batches need, by name; see `LAYOUT`."""
        columns = {name: getattr(self.arrays, name)[: self.rows].copy() for name in _SAVED}
        for array in columns.values():  # so that nothing is left of rows that only some envs have released
            array[np.arange(self.rows)[:, None] < self.first_unused - self.history] = 0
        images = self._images_of(0, columns["lengths"])
        pixels, counts = self._last
        last = np.concatenate([pixels[env, :count] for env, count in enumerate(counts)])
        used = {"first_unused": self.first_unused.copy(), "last_pixels": last, "last_counts": counts.copy()}
        return {**columns, "images": images, **used}

    def load_state(self, arrays: Arrays) -> None:
        """Continue from a `state`."""
        self.rows, self._end = len(arrays["lengths"]), len(arrays["images"])
        lengths = arrays["lengths"].T.reshape(-1)
        offsets = (np.cumsum(lengths) - lengths).reshape(self.num_envs, self.rows).T
        self._images = np.concatenate([arrays["images"], np.zeros(1 << 20, self._images.dtype)])
        columns = {}
        for name, dtype in _COLUMNS.items():
            columns[name] = np.zeros((max(_FIRST_ROWS, 2 * self.rows), self.num_envs), dtype)
            columns[name][: self.rows] = offsets if name == "offsets" else arrays[name]
        self._hold(columns)
        self.first_unused = arrays["first_unused"].copy()
        pixels, counts = self._last
        counts[:] = arrays["last_counts"]
        for env, (count, end) in enumerate(zip(counts, np.cumsum(counts), strict=True)):
            pixels[env, :count] = arrays["last_pixels"][end - count : end]

    def tail(self, count: int) -> Arrays:
        """Return the last `count` rows for another `Rollout` to `extend` itself with.

        Their ``rewards`` and ``ended`` are those of the row before each, for the last one has no outcome yet.
        """
        first = self.rows - count
        part = {name: getattr(self.arrays, name)[first : self.rows].copy() for name in _SAVED}
        for name in _OUTCOMES:
            part[name] = np.roll(getattr(self.arrays, name)[max(0, first - 1) : self.rows], 1, 0)[-count:]
        return {**part, "images": self._images_of(first, part["lengths"])}

    def extend(self, part: Arrays) -> None:
        """Append the `tail` of another one."""
        first, lengths, images = self.rows, part["lengths"].T.reshape(-1), part["images"]
        for _ in range(len(part["lengths"])):
            self.new_row()
        self._reserve(len(images))
        self._images[self._end : self._end + len(images)] = images
        offsets = self._end + np.cumsum(lengths) - lengths
        self._end += len(images)
        self.arrays.offsets[first : self.rows] = offsets.reshape(self.num_envs, -1).T
        for name in _SAVED:
            shift = name in _OUTCOMES
            known = shift and not first  # no row is before the first one
            getattr(self.arrays, name)[first + known - shift : self.rows - shift] = part[name][known:]

    def _images_of(self, first: int, lengths: I64) -> npt.NDArray[Any]:
        """Return the images of the rows from `first` on, with these `lengths`, env by env."""
        flat = lengths.T.reshape(-1)
        shifts = self.arrays.offsets[first : self.rows].T.reshape(-1) - (np.cumsum(flat) - flat)
        images: npt.NDArray[Any] = self._images[np.arange(int(flat.sum())) + np.repeat(shifts, flat)]
        return images

    def _reserve(self, most: int) -> None:
        """Make room for `most` numbers more in the list of images."""
        if self._end + most > len(self._images):
            grown = np.zeros(2 * len(self._images) + most, self._images.dtype)
            grown[: self._end] = self._images[: self._end]
            self._images = grown
            self._hold(self.arrays._asdict())

    def _hold(self, columns: Arrays) -> None:
        c = self.config
        self.arrays = RolloutArrays(**columns)
        flat = RolloutArrays(**{name: array.reshape(-1) for name, array in columns.items()})
        self.inputs = Inputs(self._images, flat, self.num_envs, c.frame_stack, c.action_history, c.num_actions)


def join_states(parts: list[Arrays]) -> Arrays:
    """Return the state of all envs from the states of consecutive shares; some may begin at an earlier row."""
    rows = max(len(part["lengths"]) for part in parts)
    aligned = []
    for part in parts:
        missing = rows - len(part["lengths"])
        late = {name: np.pad(part[name], ((missing, 0), (0, 0))) for name in _SAVED}
        aligned.append({**part, **late, "first_unused": part["first_unused"] + missing})
    return join(aligned, LAYOUT)
