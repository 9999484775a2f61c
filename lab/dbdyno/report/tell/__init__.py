"""Sentences: findings, verdicts, a plan and a machine in words."""
