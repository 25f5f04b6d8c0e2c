// Loads the style sheet of the formulas on every page.
import 'katex/dist/katex.min.css';
