#!/usr/bin/env python3
"""Pages of papers: which blocks of which figures scripts/reproduce runs, and which numbers it reports."""

import importlib.machinery
import importlib.util
import unittest

from base.tree import ROOT

_loader = importlib.machinery.SourceFileLoader("reproduce", str(ROOT / "scripts/reproduce"))
reproduce = importlib.util.module_from_spec(importlib.util.spec_from_loader("reproduce", _loader))
_loader.exec_module(reproduce)

PAGE = """# Paper
## Fig. 5(a), 6: sizes
```sh
## Fig. 9: no heading but a comment
```
## Table 2: costs
<!-- run: skip, measured: minutes -->
```sh
true
```
## Notes
"""


class Reproduce(unittest.TestCase):
    def setUp(self):
        self.sections = reproduce.sections(PAGE)

    def about(self, wanted):
        return [s.figures for s in self.sections if s.is_about(wanted)]

    def test_a_figure_is_named_as_a_reader_names_it(self):
        self.assertEqual([s.figures for s in self.sections], ["Fig. 5(a), 6", "Table 2"])
        for wanted in ("5", "5a", "5(A)", "fig. 5a", "Figure 6", "f6"):
            self.assertEqual(self.about(wanted), ["Fig. 5(a), 6"], wanted)
        for wanted in ("2", "table 2", "t2"):
            self.assertEqual(self.about(wanted), ["Table 2"], wanted)
        for wanted in ("table 5", "fig 2", "5b", "9"):
            self.assertEqual(self.about(wanted), [], wanted)

    def test_only_what_computes_runs_unasked(self):
        self.assertEqual([[reproduce.kind(b) for b in s.blocks] for s in self.sections], [["computed"], ["measured"]])

    def test_a_measured_number_may_be_a_quarter_off(self):
        self.assertEqual(list(reproduce.far_off(["ring 1.00 s"], ["ring 1100 ms", "tree 9 s"])), [])
        self.assertEqual(len(list(reproduce.far_off(["ring 1.00 s", "mst 2 s"], ["ring 1300 ms", "mst 2.1 s"]))), 1)


if __name__ == "__main__":
    unittest.main()
