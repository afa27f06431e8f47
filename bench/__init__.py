"""Benchmarks of the kernel alone: `python -m bench`, or `python -m bench p7` for one of them.

Quality (P7, P8, P9) is measured in virtual time, so those figures are the same on every machine.
Cost (P2, P11) is a ratio of two measurements taken in turn in the same run.
"""
