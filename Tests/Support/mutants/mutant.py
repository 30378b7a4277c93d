"""The form of a mutant."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    module: str
    name: str
    # The part of the module's contract that the mutant violates.
    contract: str
    # Triples of a file in the folder of the module, a text that occurs in it exactly once, and its replacement.
    patches: tuple


def mutants_of(module):
    """Returns a function that makes a mutant of a module."""

    def mutant(name, contract, *patches):
        return Mutant(module, name, contract, patches)

    return mutant
