"""Random models with dynamic axes, exported for every engine and judged at many sizes.

    python -m conformance.lab.fuzz --seed 1 --count 100 --tract 0.21,0.23 --shrink

The rule that it tests: an archive is right at every size of its declared range; what cannot be right there is refused
by export, or cannot run in the engine. `docs/explanation/fuzz.md` says what the verdicts mean and what was found.
"""
