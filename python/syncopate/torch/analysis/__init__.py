"""Profiles and plans that predict the gain of an exchange, and recorders of trainings."""
