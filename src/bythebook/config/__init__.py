"""Settings and presets."""
