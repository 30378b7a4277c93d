"""Deliberate defects of Sources/Repository that the tests must detect."""

from mutant import mutants_of

mutant = mutants_of("Repository")

MUTANTS = []
