"""Files: tables, models, sets of models, jobs and what they leave."""
