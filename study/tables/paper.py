"""The numbers that the paper prints (Yu, Hu and Xu, arXiv 2607.28415)."""

PLANNING: dict[str, dict[str, tuple[float, float | None]]] = {
    "qqworld": {"two-room": (93.67, 3.44), "reacher": (85.33, 5.16), "pusht": (91.00, 5.76), "cube": (70.33, 7.31)},
    "lewm": {"two-room": (84.33, 4.23), "reacher": (82.67, 4.42), "pusht": (84.67, 6.53), "cube": (67.33, 5.01)},
    "sub-jepa": {"two-room": (93.67, 4.27), "reacher": (81.00, 2.10), "pusht": (89.00, 5.33), "cube": (69.00, 8.69)},
    "sd-jepa": {"two-room": (86.33, 6.12), "reacher": (85.00, 5.02), "pusht": (89.67, 4.27), "cube": (69.67, 5.13)},
    "smwm": {"two-room": (88.67, 7.12), "reacher": (73.00, 4.69), "pusht": (86.00, 2.53), "cube": (84.33, 4.97)},
    "pldm": {"two-room": (97.00, None), "reacher": (78.00, None), "pusht": (78.00, None), "cube": (65.00, None)},
}
"""Table 1: success in per cent, mean and standard deviation over six seeds; those without one are cited there."""
NORMALITY = {"qqworld": {"ks": 0.032, "ep": 82.294}, "lewm": {"ks": 0.038, "ep": 119.909}}
"""Table 2: averages over four tasks."""
PROBES = {
    "agent location": {
        "lewm": {"linear": (0.042, 0.979), "mlp": (0.001, 0.999)},
        "qqworld": {"linear": (0.041, 0.979), "mlp": (0.001, 1.000)},
    },
    "block location": {
        "lewm": {"linear": (0.022, 0.989), "mlp": (0.000, 1.000)},
        "qqworld": {"linear": (0.021, 0.990), "mlp": (0.000, 1.000)},
    },
    "block angle": {
        "lewm": {"linear": (0.176, 0.908), "mlp": (0.008, 0.996)},
        "qqworld": {"linear": (0.172, 0.910), "mlp": (0.007, 0.996)},
    },
}
"""Table 3: MSE and Pearson r on PushT."""
QUEUE = {
    (32, 1): (65.42, 3434.7),
    (32, 2): (80.67, 3434.9),
    (32, 3): (83.50, 3435.0),
    (32, 4): (81.75, 3435.1),
    (64, 1): (81.83, 6552.9),
    (64, 2): (81.00, 6553.1),
    (128, 1): (85.08, 12747.1),
    (128, 2): (80.83, 12747.8),
}
"""Table 4: batch and queue length K+1 to success in per cent, averaged over four tasks, and GPU memory in MB."""
QQ_RMSE = {"qqworld": 0.121, "lewm": 0.157}
TAIL_RATE = {"qqworld": 0.123, "lewm": 0.315}
"""Figure 1, on Two-Room with 192 dimensions, like `QQ_RMSE`."""


def planning(arm: str, task: str) -> str:
    """A cell of Table 1; "-" where the paper has none."""
    if arm not in PLANNING:
        return "-"
    mean, std = PLANNING[arm][task]
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"
