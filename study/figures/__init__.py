"""The paper's figures and the study's own, drawn from committed cells."""
