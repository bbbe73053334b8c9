"""``python -m fastpong`` is ``fastpong``."""

from fastpong.program import main

if __name__ == "__main__":
    main()
