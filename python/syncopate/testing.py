"""Checks that a program's own consistency model, storage, placement, policy or codec obeys the laws of its kind."""

from syncopate._core import BrokenLaw, check_codec, check_consistency, check_placement, check_policy, check_storage

__all__ = ["BrokenLaw", "check_codec", "check_consistency", "check_placement", "check_policy", "check_storage"]
