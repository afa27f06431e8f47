"""The commands of `interlock`, by what they are for."""
