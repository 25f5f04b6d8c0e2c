"""HTML markup and SVG plots for the evaluation report and the admin page."""
