"""Training: the objectives, data windows, the trainer and its diagnostics. It reads files, never simulators."""

import os

# Read by OpenMP when torch is first imported: threads that wait asleep, not spinning, lose much less to other processes
# on the same cores, and nothing when they are alone.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
