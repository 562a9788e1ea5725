"""Many small cases in one test, where a test of its own for each would cost more than what it
tests."""

import contextlib


@contextlib.contextmanager
def case(*name):
    """Name the case of a loop in the message of whatever fails in it."""
    try:
        yield
    except BaseException as error:  # what pytest.fail and pytest.raises raise is no Exception
        error.add_note(f"in the case {' '.join(map(str, name))}")
        raise
