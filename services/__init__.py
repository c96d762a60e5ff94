"""fivedraw: a distributed casino backend for five card draw poker."""

__version__ = "0.1.0"
