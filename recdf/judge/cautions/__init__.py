"""Why a verdict is withheld or qualified: one record each in `table`, with the limits that it
asks for."""

# Level of the checks of the data: an experiment with thousands of users finds a broken one far
# beyond it.
HEALTH_ALPHA = 0.001
# Level of the checks of one metric: missing values, covariates, denominators.
UNEQUAL = 0.01
# Users for any verdict about models, and those with a difference. Up to 8 % of equal models get a
# verdict where |γ|/√n is at most .14 and 50 units differ.
FEW_LISTS, FEW_UNITS, FEW_DIFFER = 30, 20, 50
# Fewer units than this in an arm, or fewer clusters, are named in a remark.
TINY = 20
MOSTLY_ZERO = 0.95  # share of users with the same from both models, or without a denominator
# A model whose lists end before the cut-off is held back by their length and not by their order.
# Where it is the better one all the same, or as many lists of both are short, nothing is in doubt.
MANY_SHORT = 0.2
