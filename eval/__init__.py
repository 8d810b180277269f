"""Evaluation: conflict resolution, open-ended questions, capability regressions."""
