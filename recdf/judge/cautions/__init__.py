"""Why a verdict is withheld or qualified: one record each in `table`, whose function in
`conditions` looks for it."""

# Level of the checks of the data: an experiment with thousands of users finds a broken one far
# beyond it.
HEALTH_ALPHA = 0.001
# Level of the checks of one metric: missing values, covariates, denominators.
UNEQUAL = 0.01
