"""Our own Atari 2600, which plays Pong bit for bit as ALE does: processor, RAM, picture chip, paddles, cartridge.

Two cores emulate a frame. The plain one reads like a textbook: instruction by instruction, pixel by pixel. The fast one
is its twin: the cartridge as machine code, whole regions of the picture at once, and functions in place of the loops
that draw. What it cannot do, it leaves to the plain one. Tests compare the two, and the plain one with ALE.

To read from frame to pixel. Plain core: `plain`, `cpu` with `opcodes`, `alu`, `bus` with `cartridge`, `riot`, `tia`,
`registers`, `state`; what a player does is in `controls`. Fast core: `games`, `step`, `fast`, `translate` with
`disassemble`, `memory`, `variables`, `shortcuts`, `court`, `score`, `fast_tia`, `drawing`, `masks`.
"""
