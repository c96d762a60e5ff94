"""The pure rules engine: no I/O, clock, randomness, protobuf or logging (DESIGN, section 1)."""
