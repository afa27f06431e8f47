"""The async shell around the kernel: feeds it, journals what it decides, and carries that out."""
