"""What will help and what happened: profiles, plans, and recorded trainings."""
