"""``fastpong train``: what the command line asks for, and how the run ended."""

import json

from fastpong.commands.evaluate import count, interval
from fastpong.errors import tell
from fastpong.show.display import Display
from fastpong.training.session import Request, train, what_next


def run(request: Request, progress: str | None, log: str | None, as_json: bool) -> int:
    """Train, print the result, and return the exit code; `progress` and `log` as for `Display`."""

    def after(text: str, result: bool) -> None:
        if not (result and as_json):
            tell(text, result=result)

    display = Display(progress, log=log, tell=after)
    result = train(request, display)
    best = result.evaluation
    if display.begun and as_json:
        summary = {"reason": result.reason, "run": str(result.path), **result.metrics, "best": best}
        tell(json.dumps(summary), result=True)
    elif display.begun:
        if best:
            tell(
                f"best.npz, the weights after {best['steps']:,} steps: mean score {best['mean']:.2f}{interval(best)} "
                f"over {count(best['games'], 'fresh ')}",
                result=True,
            )
        if progress != "none":
            tell(*what_next(result, request.engine))
    return 130 if result.reason == "interrupted" else 0
