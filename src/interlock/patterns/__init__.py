"""Seven ways to organise parallel agents, each a thin layer on the public runtime."""
