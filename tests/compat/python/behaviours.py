"""Runs one behaviour after another and prints a line for each: name, tab, pass or fail or skip, tab, detail."""
import time
import traceback


def _print(name, result, detail):
    print(f"{name}\t{result}\t{' '.join(str(detail).split())}", flush=True)


def _where(error):
    own = [at for at in traceback.extract_tb(error.__traceback__) if "tests/compat" in at.filename]
    return f" at {own[-1].filename.rsplit('/', 1)[-1]}:{own[-1].lineno}" if own else ""


def behaviour(name, body):
    try:
        body()
        _print(name, "pass", "")
    except Exception as error:
        _print(name, "fail", f"{type(error).__name__}: {error}{_where(error)}")


async def behaviour_async(name, body):
    try:
        await body()
        _print(name, "pass", "")
    except Exception as error:
        _print(name, "fail", f"{type(error).__name__}: {error}{_where(error)}")


def skip(why, *names):
    for name in names:
        _print(name, "skip", why)


def same(got, expected, what):
    assert got == expected, f"{what}: expected {expected!r}, got {got!r}"


def fails(name, body):
    """What `name` (of a class or of a Kafka error) is expected to be thrown by."""
    try:
        body()
    except Exception as error:
        names = {type(error).__name__, *(each.name() for each in error.args if hasattr(each, "name"))}
        assert name in names, f"expected {name}, got {names}: {error}"
        return
    raise AssertionError(f"no {name}")


def until(what, condition, seconds=30):
    end = time.time() + seconds
    while not condition():
        assert time.time() < end, f"not in time: {what}"
