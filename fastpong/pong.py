"""What Pong looks like and how it is played: the screen, its colours, the court, and the sets of actions."""

SCREEN = (210, 160)
"""Height and width of a screen in pixels."""

COURT_TOP = 34
COURT = (160, 80)
"""The part of a screen that a policy sees: rows 34 … 193, and of these every second column."""

COLOURS = {
    0: (0, 0, 0), 14: (236, 236, 236), 34: (144, 72, 17), 56: (213, 130, 74), 138: (101, 111, 228),
    200: (92, 186, 92), 210: (53, 95, 24), 228: (109, 118, 43), 250: (210, 182, 86),
}  # fmt: skip
"""Red, green and blue of the indices of ALE's NTSC palette that Pong shows."""

BACKGROUND = (0, 34, 48, 128, 144, 160, 176, 192, 206, 228)
"""Indices of that palette whose red is one of `BACKGROUND_RED`. In Pong's court 34 is the table."""

BACKGROUND_RED = (0, 109, 144)
"""What the reference programs erase: 0, and the red of the frame and of the table."""

ACTIONS = ("RIGHT", "LEFT", "NOOP", "FIRE", "RIGHTFIRE", "LEFTFIRE")
"""ALE's names of the actions: RIGHT moves the paddle up, LEFT moves it down. A policy has the first two or three."""

STAY = 255
"""In place of an action: the env does not take the step."""

ACTION_SETS: dict[int, tuple[int, ...]] = {2: (0, 1), 3: (0, 1, 2), 6: (2, 3, 0, 1, 4, 5)}
"""For a number of actions, what each means, as indices into `ACTIONS`: 6 are as ``ALE/Pong-v5`` has them."""

WINNING = 21
"""Points that end a game."""

MAX_FRAMES = 108_000
"""Frames after which a game is cut off (half an hour), as in ``ALE/Pong-v5``."""
