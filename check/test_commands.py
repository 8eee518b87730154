#!/usr/bin/env python3
"""Commands: the output that pages show is compared with the program's."""

import contextlib
import io
import unittest

import commands
from base.small_tree import Tree


class Commands(Tree):
    """Pages of one block, run without any program of the project but the shell's."""

    def page(self, *lines):
        self.write("docs/page.md", "\n".join(lines))
        return commands.findings(self.root, self.root)

    def test_what_a_command_prints_is_what_the_page_says(self):
        self.finds_nothing(self.page("```console", "$ echo one; echo two >&2", "two", "one", "$ cat \\", "/dev/null", "```"))
        self.finds(self.page("text", "```console", "$ echo one", "two", "```"), "docs/page.md", 3, "- two\n  + one")
        self.finds(self.page("```console", "$ echo one; echo one", "one", "```"), "docs/page.md", 2, "+ one")
        self.finds(self.page("```console", "$ true", "one", "```"), "docs/page.md", 2, "- one")

    def test_dots_stand_for_text_within_a_line_and_for_lines(self):
        self.finds_nothing(self.page("```console", "$ echo rank 7 is lost; echo rank 8", "… rank … lost …", "rank 8", "```"))
        self.finds_nothing(self.page("```console", "$ seq 9", "1", "…", "```"))
        self.finds(self.page("```console", "$ seq 9", "10", "…", "```"), "docs/page.md", 2, "- 10")

    def test_measured_values_differ_unless_the_block_is_exact(self):
        block = ("```console", "$ echo 'ring   12.3 ms  4 % at tcp://127.0.0.1:29501, 6.5 MiB/s x1.2'",
                 "ring 9 us 11.5 % at tcp://127.0.0.1:30000, 7 GiB/s x3", "```")
        self.finds_nothing(self.page(*block))
        self.finds(self.page("<!-- run: exact -->", *block), "docs/page.md", 3, "12.3 ms")
        self.finds(self.page("```console", "$ echo 12 buckets", "9 buckets", "```"), "docs/page.md", 2, "+ 12 buckets")

    def test_a_script_must_succeed_and_finds_what_earlier_blocks_left(self):
        self.finds_nothing(self.page("```sh", "echo 1 >file", "```", "```console", "$ cat file", "1", "```"))
        self.finds(self.page("```sh", "false", "true", "```"), "docs/page.md", 1, "exits with 1")

    def test_what_is_skipped_says_why(self):
        self.finds_nothing(self.page("<!-- run: skip, it takes hours -->", "```sh", "false", "```"))
        self.finds(self.page("<!-- run: skip -->", "```sh", "false", "```"), "docs/page.md", 2, "without a reason")
        self.finds(self.page("<!-- run: later -->", "```sh", "true", "```"), "docs/page.md", 2, "run: later is unknown")
        self.finds(self.page("```", "syncopate run", "```"), "docs/page.md", 1, "without a language")
        self.finds_nothing(self.page("```text", "syncopate run", "```"))

    def test_emulated_hosts_are_asked_for_before_they_are_needed(self):
        self.write("syncopate", "#!/bin/sh\necho 'no namespaces'; exit 1\n")
        (self.root / "syncopate").chmod(0o755)
        with contextlib.redirect_stdout(io.StringIO()) as told:
            self.finds_nothing(self.page("<!-- run: lab -->", "```sh", "false", "```"))
        self.assertIn("docs/page.md:2: not run, no emulated hosts here: no namespaces", told.getvalue())


if __name__ == "__main__":
    unittest.main()
