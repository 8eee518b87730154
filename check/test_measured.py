#!/usr/bin/env python3
"""Compared numbers without rows, rows that others disturbed, and what scripts/measure writes from rows."""

import importlib.machinery
import importlib.util
import json
import sys
import unittest
from unittest import mock

import measured
from base.small_tree import Tree
from base.tree import ROOT

_loader = importlib.machinery.SourceFileLoader("measure", str(ROOT / "scripts/measure"))
measure = importlib.util.module_from_spec(importlib.util.spec_from_loader("measure", _loader))
sys.modules["measure"] = measure  # where its dataclass looks for its own module
_loader.exec_module(measure)

ABOUT = {"table": "step_mlp", "run": "r", "turn": 1, "date": "2026-01-01", "commit": "abc", "machine": "m", "command": "syncopate bench",
         "elsewhere_cores": 0.1}


def step(contender, median, turn=1, run="r", codec="none"):
    return ABOUT | {"run": run, "turn": turn, "contender": contender, "codec": codec, "exchange": "none" if contender == "alone" else "allreduce",
                    "step_seconds": {"median": median, "min": median / 2, "max": median * 2}}


def turn(number, run="r", ours=0.5, gloo=1.0):
    return [step("alone", 0.25, number, run), step("ddp-gloo", gloo, number, run), step("syncopate-ddp", ours, number, run)]


class Measured(Tree):
    def pages(self, text):
        self.write("README.md", text)
        return measured.page_findings(self.root)

    def test_a_peer_and_a_quantity_outside_a_block_are_found(self):
        self.finds(self.pages("# a\n\nGloo takes 12 ms.\n"), "README.md", 3, "Gloo (12 ms)")
        self.finds(self.pages("# a\n\n- ours\n- MPICH x1.20\n"), "README.md", 4, "MPICH")
        self.finds(self.pages("| a | Gloo |\n|---|---|\n| 1 | 3.5 us |\n"), "README.md", 3, "3.5 us")

    def test_a_quantity_of_our_own_and_a_peer_without_one_pass(self):
        self.finds_nothing(self.pages("Ours takes 12 ms.\n\nGloo has two algorithms.\n\n- Gloo\n- 12 ms\n\n| a |\n|---|\n| Gloo |\n| 5 s |\n"))

    def test_blocks_and_fences_pass(self):
        self.finds_nothing(self.pages("<!-- measured: a -->\nGloo 12 ms\n<!-- end of measured -->\n\n```sh\nGloo 12 ms\n```\n"))

    def test_rows_that_others_disturbed_or_that_lack_their_origin_are_found(self):
        self.write("data/measured/a.jsonl", json.dumps(ABOUT | {"elsewhere_cores": 1.2}) + "\n" + json.dumps({"table": "a"}) + "\n")
        self.finds(measured.row_findings(self.root), "data/measured/a.jsonl", 1, "1.2 cores")
        self.finds(measured.row_findings(self.root), "data/measured/a.jsonl", 2, "lacks run")


class Written(unittest.TestCase):
    def newest(self, rows):
        with mock.patch.object(measure, "rows_of", lambda name: rows):
            return measure.newest_complete("step_mlp")

    def test_only_a_complete_run_counts_and_runs_are_not_mixed(self):
        first, second = [row for i in range(1, 6) for row in turn(i)], [row for i in range(1, 5) for row in turn(i, run="s")]
        self.assertEqual(first, self.newest(first + second))
        second += turn(5, run="s")
        self.assertEqual(second, self.newest(first + second))
        self.assertEqual([], self.newest(second[:-3]))

    def test_ratios_are_paired_within_turns(self):
        rows = [row for i, (ours, gloo) in enumerate([(1, 2), (10, 40), (3, 3)], 1) for row in turn(i, ours=ours, gloo=gloo)]
        line = next(line for line in measure.step_table(rows).splitlines() if "`syncopate-ddp`" in line)
        self.assertTrue(line.endswith("| 0.50 |"), line)  # the medians alone give 3 / 3
        self.assertIn("3 s (500 ms..20 s)", line)

    def test_a_contender_that_misses_a_turn_is_refused(self):
        with self.assertRaises(SystemExit):
            measure.step_table(turn(1) + turn(2)[:-1])

    def test_the_page_of_each_block_with_rows_has_its_mark(self):
        for page in measure.pages():
            measure.with_blocks(page, (ROOT / page).read_text())


if __name__ == "__main__":
    unittest.main()
