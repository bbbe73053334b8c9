"""Cartridges: the programs that come with ale-py."""

import hashlib
import importlib.util
from pathlib import Path

import numpy as np

from fastpong.arrays import U8
from fastpong.errors import EnvError

CARTRIDGE = 0x1000
"""Address bit that chooses the cartridge; of the others it looks at the lower 11 or 12."""

PONG_SHA256 = "41623e3c26148f96cbe77d56512845d224a63c8fe5bf90e38527155e39ec96d3"
"""Digest of Pong (*Video Olympics*, Atari 1977). Lists of cartridges name its MD5, 60e0ea3cbe0913d39803477945e9e5ec."""

SIZES = (2048, 4096)
"""Bytes of cartridges without bank switching."""


def read(name: str = "pong") -> U8:
    """Return the bytes of a cartridge, uint8 (2048,) or (4096,), by ale-py's name of it.

    Raises
    ------
    EnvError
        ale-py has no such cartridge, or the console cannot play it.
    """
    package = importlib.util.find_spec("ale_py")  # to import it takes 0.2 s: it registers all of its games
    path = Path(package.origin).parent / "roms" / f"{name}.bin" if package and package.origin else None
    if path is None or not path.is_file():
        raise EnvError(f"ale-py has no cartridge {name}.bin; `pip install --force-reinstall ale-py` brings them back")
    rom = np.fromfile(path, np.uint8)
    if len(rom) not in SIZES:
        raise EnvError(f"the cartridge {name} has {len(rom)} bytes; the console plays those of 2048 and 4096")
    return rom


def is_known(
    rom: U8,  # (2048 or 4096,)
) -> bool:
    """Return whether a cartridge is the Pong that the fast core was made for."""
    return hashlib.sha256(rom.tobytes()).hexdigest() == PONG_SHA256
