"""How any service starts, serves, logs, measures, authenticates and stops."""
