"""Views: what people see and type."""
