"""The table service: turns, clocks, seats and the event log of every table."""
