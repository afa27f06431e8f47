"""Plan and project files, read into checked records; nothing is executed here."""
