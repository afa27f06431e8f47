"""The pure heart: a stimulus and a time go in, instructions come out."""
