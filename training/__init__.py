"""Training of the reading model. Not installed with the product; see README.md."""
