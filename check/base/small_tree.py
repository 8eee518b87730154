"""A small tree for the tests of the checks, which exists for one test."""

import tempfile
import unittest
from pathlib import Path


class Tree(unittest.TestCase):
    """A small tree of its own for each test."""

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.root = Path(self._folder.name).resolve()
        self.write("include/syncopate/dtype.hpp", "// Element types.\n#pragma once\n")

    def tearDown(self):
        self._folder.cleanup()

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def finds(self, check, path, line, part):
        found = [str(f) for f in check]
        self.assertTrue(any(f.startswith(f"{path}:{line}: ") and part in f for f in found), found)

    def finds_nothing(self, check):
        self.assertEqual([], [str(f) for f in check])
