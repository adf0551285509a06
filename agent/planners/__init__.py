"""Planners, one a file; `agent.planner` says what they have in common and lists them."""
