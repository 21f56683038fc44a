"""The page that `rllib report` writes, and the look that all pages share (style.css)."""
