"""Deliberate defects of Sources/DataStore that the tests must detect."""

from mutant import mutants_of

mutant = mutants_of("DataStore")

MUTANTS = []
