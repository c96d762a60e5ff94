"""Bots: players that know the public API and nothing else."""
