"""The history service: finished hands, written once and read by right."""
