"""Evaluations: who runs the episodes, what is kept of them, and how it is told."""
