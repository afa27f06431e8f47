"""Where attempts run: on the event loop, in threads, in processes."""
