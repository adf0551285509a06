"""How good a run is: held-out errors, normality, probes, speed."""
