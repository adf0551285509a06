"""The paper's tables and the study's own, from committed cells, beside the paper's numbers."""
