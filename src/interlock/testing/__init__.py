"""For tests of Interlock and of what is built on it: seeded worlds on a virtual clock."""
