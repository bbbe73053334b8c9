"""Write the documentation of all public names as HTML: ``python docs/make_reference.py DIR``."""

import sys
from pathlib import Path

import pdoc

import fastpong
import fastpong.gym

if __name__ == "__main__":
    for name in fastpong.__all__:
        getattr(fastpong, name)  # pdoc sees what is loaded
    pdoc.render.configure(docformat="numpy")
    pdoc.pdoc("fastpong", "fastpong.gym", output_directory=Path(sys.argv[1]))
