"""`rllib watch`: a page in the browser that follows a run while it trains."""
