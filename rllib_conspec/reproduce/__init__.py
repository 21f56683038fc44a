"""The paper's figures as a table, and what came of them here: runs, verdicts, pictures."""
