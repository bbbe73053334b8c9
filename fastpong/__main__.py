"""``python -m fastpong`` is ``fastpong``."""

from fastpong.main import main

if __name__ == "__main__":
    main()
