"""``python -m fastpong`` is ``fastpong``."""

from fastpong.cli import main

if __name__ == "__main__":
    main()
