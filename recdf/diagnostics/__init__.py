"""Why a number is what it is: checks of the data, conventions side by side, tables of hits, exposure and positions."""
