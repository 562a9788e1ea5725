"""The registry of oracles: one slow, obvious function for each metric, registered under its
name."""

ORACLES = {}
OF_ALL_LISTS = set()
POOLED = {}


def pooled(function):
    """Register what a metric sums over lists with `pooled=True`: a function `pooled_NAME` of one
    list, a pair."""
    POOLED[function.__name__.removeprefix("pooled_")] = function
    return function


def oracle(function=None, *, of_all=False):
    """Register a function of one list, or with `of_all` a function of all lists together, as a
    metric's oracle."""
    if function is None:
        return lambda one: oracle(one, of_all=of_all)
    assert function.__name__ not in ORACLES, f"{function.__name__} has two oracles"
    ORACLES[function.__name__] = function
    if of_all:
        OF_ALL_LISTS.add(function.__name__)
    return function
