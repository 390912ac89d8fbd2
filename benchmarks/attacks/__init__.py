"""The parts of the campaign of ``benchmarks/attack.py``."""
