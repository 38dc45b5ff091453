"""What comes from files and goes into them: models, sets of models, tables, recourse."""
