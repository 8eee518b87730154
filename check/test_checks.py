#!/usr/bin/env python3
"""Every check finds what it is there for, and nothing in a tree that is well."""

import json
import subprocess
import unittest
from pathlib import Path
from unittest import mock

import headers
import prose
import shelves
import sizes
import tidy
from base.changed import MOST_COMMITS, since_full_run, with_includers
from base.clean import Clean
from base.functions import functions
from base.small_tree import Tree
from base.tree import CPP
from test_commands import Commands  # run together with those below
from test_convergence import Convergence  # run together with those below
from test_layers import Layers, Rooms  # run together with those below
from test_measured import Measured, Written  # run together with those below
from test_reproduce import Reproduce  # run together with those below
from test_staleness import Staleness  # run together with those below

import docs


class Sizes(Tree):
    def test_unusual_files_and_folders_are_advice_and_no_findings(self):
        self.write("src/base/log.cpp", "\n" * 501)
        self.write("src/base/tiny.hpp", "")
        for i in range(31):
            self.write(f"src/sync/s{i}.cpp", "\n" * 40)
        self.finds(sizes.advice(self.root), "src/base/log.cpp", 1, "501 lines")
        self.finds(sizes.advice(self.root), "src/base/tiny.hpp", 1, "belong to a neighbour")
        self.finds(sizes.advice(self.root), "src/sync", 1, "31 files")
        self.finds_nothing(sizes.findings(self.root))

    def test_a_long_function_is_found_where_it_begins(self):
        self.write("src/base/log.cpp", "\nnamespace a {\n\nvoid f(int) {\n" + "  g();\n" * 59 + "}\n}\n")
        self.finds(sizes.findings(self.root), "src/base/log.cpp", 4, "f has 61 lines")

    def test_the_lines_of_a_raw_literal_are_data(self):
        self.write("src/base/log.cpp", "auto f() {\n" + 'return R"(\n' + "x\n" * 70 + ')";\n}\n')
        self.finds_nothing(sizes.findings(self.root))

    def test_deep_nesting_is_found(self):
        self.write("src/base/log.cpp", "void f() {\nif (a) {\nfor (;;) {\nwhile (b) {\nif (c) {\nif (d) {\n}\n}\n}\n}\n}\n}\n")
        self.finds(sizes.findings(self.root), "src/base/log.cpp", 6, "nests 5 deep")

    def test_a_small_tree_passes(self):
        self.write("src/base/log.cpp", "void f(std::map<int, int> a, int b, int c, int d) { if (a) { g(); } }\n")
        self.finds_nothing(sizes.findings(self.root))


class Prose(Tree):
    def found(self, path, text):
        self.write(path, text)
        return [str(f) for f in prose.findings(self.root)]

    def test_what_a_rename_or_a_formatter_destroyed_is_found(self):
        torn = ('/// TensorSlice of the law of results.\nint a;\nbool b();  ///< false\n                    /// The first one.\nint c();\n'
                f'auto d =\n    "{"x" * 90} "\n    "they "\n    "are added.";\n')
        found = self.found("src/base/log.hpp", torn)
        self.assertEqual(["1", "4", "8"], [one.split(":")[1] for one in found])

    def test_short_lines_that_end_a_paragraph_or_a_text_pass(self):
        self.assertEqual([], self.found("src/base/log.hpp", f'/// Tensor of a rank.\nauto d =\n    "{"x" * 90}\\n"\n    "and\\n"\n    "so on.";\n'))

    def test_a_comment_that_begins_without_a_subject_is_found_in_its_line(self):
        found = self.found("src/base/log.hpp", "int a;\n/// Closes the file. Who leaves\n/// makes no edges.\nint b;\n")
        self.assertEqual(["src/base/log.hpp:2"], [f.split(": ")[0] for f in found])

    def test_words_are_found_in_comments_messages_and_pages(self):
        self.assertEqual(1, len(self.found("src/base/log.cpp", 'int a;  ///< begins anew\n')))
        self.assertEqual(2, len(self.found("src/base/fork.cpp", 'throw Misuse("the server says nothing");\n')))
        self.assertEqual(3, len(self.found("docs/a.md", "Text.\n\n- The server tells its state.\n")))

    def test_no_instead_of_not_a_is_found(self):
        self.assertEqual(1, len(self.found("src/base/log.cpp", 'throw Misuse("the text is no number");\n')))
        self.assertEqual([], self.found("src/base/log.cpp", 'throw Misuse("there is no rank that waits");\n'))

    def test_code_is_no_prose(self):
        self.assertEqual([], self.found("src/base/log.cpp", "Says says = tells(anew);  // reads `says`, a field\n"))
        self.assertEqual([], self.found("docs/a.md", "```sh\necho anew\n```\nRead `says` and [this](beside.md).\n"))

    def test_questions_and_plain_sentences_pass(self):
        self.assertEqual([], self.found("docs/a.md", "What is a codec? A codec is not a file. It is no longer than a page.\n"))


class Functions(unittest.TestCase):
    """The brace scanner that sizes and shelves stand on."""

    def scan(self, text):
        return [(f.name, f.lines, f.nesting, f.parameters) for f in functions(text)]

    def test_constructors_with_initialiser_lists(self):
        self.assertEqual([("A::A", 3, 0, 2)], self.scan("A::A(int b, int c)\n    : b_{b}, c_(c) {\n}\n"))

    def test_braces_in_literals_and_comments_do_not_count(self):
        self.assertEqual([("f", 4, 0, 0)], self.scan('void f() {\n  g("{", \'{\', R"x({)x");  // {\n  /* { */\n}\n'))

    def test_lambdas_and_initialisers_are_part_of_their_function(self):
        text = "int f() {\n  const auto g = [&](int x) {\n    if (x) {\n      h({1, 2});\n    }\n  };\n  return g({});\n}\nvoid k() {\n}\n"
        self.assertEqual([("f", 8, 1, 0), ("k", 2, 0, 0)], self.scan(text))

    def test_members_templates_and_operators(self):
        text = ("struct S {\n  S() = default;\n  template <class T, class U>\n  decltype(auto) with(T&& t) const noexcept { return t; }\n"
                "  int operator()(int a, int b) { return a; }\n  int x = 0;\n};\n")
        self.assertEqual([("with", 2, 0, 1), ("operator_call", 1, 0, 2)],
                         [(n, lines, deep, p if n == "with" else 2) for n, lines, deep, p in self.scan(text)])

    def test_else_if_chains_do_not_nest(self):
        text = "void f() {\n  if (a) {\n  } else if (b) {\n  } else if (c) {\n  } else {\n  }\n}\n"
        self.assertEqual([("f", 7, 1, 0)], self.scan(text))


GOOD_ENTRY = ("// Ring.\nnamespace syncopate::collective::algorithm {\nnamespace {\nint build() { return 1; }\n}\n"
              'extern constinit const Algorithm ring{"ring", build};\n}\n')


class Shelves(Tree):
    def setUp(self):
        super().setUp()
        self.write("src/CMakeLists.txt",
                   "syncopate_shelf(syncopate collective/algorithm syncopate::collective Algorithm algorithms algorithm.hpp)\n")
        self.write("docs/catalogue.md", "| `ring` |\n")
        self.write("src/collective/algorithm/ring.cpp", GOOD_ENTRY)

    def entry(self, text):
        self.write("src/collective/algorithm/ring.cpp", text)
        return shelves.findings(self.root)

    path = "src/collective/algorithm/ring.cpp"

    def test_a_good_entry_passes(self):
        self.finds_nothing(shelves.findings(self.root))

    def test_a_header_on_a_shelf_is_found(self):
        self.write("src/collective/algorithm/ring.hpp", "")
        self.finds(shelves.findings(self.root), "src/collective/algorithm/ring.hpp", 1, "is a shelf")

    def test_stem_symbol_and_name_are_one(self):
        self.finds(self.entry(GOOD_ENTRY.replace("Algorithm ring{", "Algorithm rung{")), self.path, 6, "the symbol is rung")
        self.finds(self.entry(GOOD_ENTRY.replace('{"ring"', '{"rung"')), self.path, 6, "first field")

    def test_a_missing_or_second_descriptor_is_found(self):
        self.finds(self.entry("// Ring.\n"), self.path, 1, "defines no")
        second = GOOD_ENTRY + 'extern constinit const Algorithm ring{"ring", 0};\n'
        self.finds(self.entry(second), self.path, 8, "one entry")

    def test_a_visible_function_is_found(self):
        self.finds(self.entry(GOOD_ENTRY.replace("namespace {\n", "").replace("}\nextern", "extern")), self.path, 3, "visible outside")

    def test_an_entry_missing_in_the_docs_is_found(self):
        self.write("docs/catalogue.md", "ring\n")
        self.finds(shelves.findings(self.root), "docs/catalogue.md", 1, "`ring`")


class Changed(Tree):
    """A repository with a commit in which b.hpp includes a.hpp, and c.cpp includes b.hpp."""

    def setUp(self):
        super().setUp()
        self.write("src/base/a.hpp", "// A.\n")
        self.write("src/base/b.hpp", '// B.\n#include "base/a.hpp"\n')
        self.write("src/base/c.cpp", '// C.\n#include "b.hpp"\n')
        self.write("src/base/d.cpp", "// D.\n")
        self.write(".clang-tidy", "")
        self.git("init", "-q")
        self.commit()
        self.write("check/tidy-base", self.git("rev-parse", "HEAD"))

    def git(self, *arguments):
        who = ["-c", "user.name=check", "-c", "user.email=check"]
        return subprocess.run(["git", "-C", self.root, *who, *arguments], capture_output=True, text=True, check=True).stdout

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "one", "--allow-empty")

    def reached(self):
        paths, found = since_full_run(self.root, [Path(".clang-tidy")])
        return paths and {str(path) for path in paths if path.suffix in CPP}, [str(each) for each in found]

    def test_files_that_include_a_changed_one_are_reached(self):
        self.assertEqual((set(), []), self.reached())
        self.write("src/base/a.hpp", "// A, changed.\n")
        self.write("src/base/new.cpp", "// New.\n")
        all_but_d = {f"src/base/{name}" for name in ("a.hpp", "b.hpp", "c.cpp", "new.cpp")}
        self.assertEqual((all_but_d, []), self.reached())
        self.commit()
        self.assertEqual((all_but_d, []), self.reached())

    def test_the_nearest_includers_are_reached_first(self):
        a, b, c = (Path(f"src/base/{name}") for name in ("a.hpp", "b.hpp", "c.cpp"))
        self.assertEqual([{a}, {a, b}, {a, b, c}], [with_includers(self.root, {a}, most) for most in range(3)])

    def test_changed_rules_reach_all_files(self):
        self.write(".clang-tidy", "Checks: x\n")
        self.assertEqual((None, []), self.reached())

    def test_a_full_run_that_is_unknown_or_too_old_reaches_all_files(self):
        for _ in range(MOST_COMMITS + 1):
            self.git("commit", "-qm", "more", "--allow-empty")
        paths, found = self.reached()
        self.assertIsNone(paths)
        self.assertIn(f"check/tidy-base:1: {MOST_COMMITS + 1} commits are newer", found[0])
        self.write("check/tidy-base", "0" * 40)
        self.assertEqual((None, []), self.reached())


class Headers(Tree):
    def test_a_header_that_needs_another_is_found(self):
        self.write("include/syncopate/dtype.hpp", "// The type of an element.\n#pragma once\ninline std::string f();\n")
        self.finds(headers.findings(self.root), "include/syncopate/dtype.hpp", 1, "does not compile alone")

    def test_a_header_that_its_source_includes_first_is_left_to_the_build(self):
        broken = "// The type of an element.\n#pragma once\ninline std::string f();\n"
        self.write("include/syncopate/dtype.hpp", broken)
        self.write("src/base/dtype.cpp", '// Names.\n#include <string>\n#include "syncopate/dtype.hpp"\n')
        self.finds(headers.findings(self.root), "include/syncopate/dtype.hpp", 1, "does not compile alone")
        self.write("src/base/dtype.cpp", '// The names of element types.\n#include "syncopate/dtype.hpp"\n')
        self.finds_nothing(headers.findings(self.root))

    def test_a_missing_pragma_is_found(self):
        self.write("include/syncopate/dtype.hpp", "// The type of an element.\n")
        self.finds(headers.findings(self.root), "include/syncopate/dtype.hpp", 2, "#pragma once")

    def test_a_missing_first_line_is_found(self):
        self.write("include/syncopate/dtype.hpp", "// The type of an element.\n#pragma once\n")
        self.finds_nothing(headers.findings(self.root))
        self.write("src/base/log.cpp", "#include <string>\n")
        self.write("check/one.py", "import sys\n")
        self.finds(headers.findings(self.root), "src/base/log.cpp", 1, "One sentence")
        self.finds(headers.findings(self.root), "check/one.py", 1, "one sentence")


class Docs(Tree):
    def setUp(self):
        super().setUp()
        self.write("example/allreduce.cpp", "int main() {}\n")
        self.write("README.md", "[map](src) [web](https://example.org)\n```cpp\nint main() {}\n```\n# Here\n")
        self.write("src/README.md", "[up](../README.md#here)\n")

    def test_whole_pages_pass(self):
        self.finds_nothing(docs.findings(self.root))

    def test_a_dead_link_is_found(self):
        self.write("src/README.md", "\n[gone](gone.md)\n")
        self.finds(docs.findings(self.root), "src/README.md", 2, "there is no gone.md")

    def test_a_link_to_a_heading_that_is_not_there_is_found(self):
        self.write("docs/page.md", "# Page\n## `sync`, and [its](a.md) end\n```sh\n# gone\n```\n[here](#sync-and-its-end) [there](page.md#gone)\n")
        self.finds(docs.findings(self.root), "docs/page.md", 6, "page.md#gone")

    def test_a_renamed_source_in_a_page_or_a_comment_is_found(self):
        self.write("src/sync/step.cpp", '// Steps; see sync/step.hpp.\n#include "sync/gone.hpp"\n// As in gone/\n// other.cpp.\n')
        self.write("src/sync/step.hpp", "// Steps.\n#pragma once\n")
        self.write("src/README.md", "Read `sync/step.cpp` and step.hpp, in every `.cpp`.\n\nThen `sync/moment.hpp`.\n")
        found = [str(f) for f in docs.findings(self.root)]
        self.assertEqual(2, len(found), found)
        self.finds(docs.findings(self.root), "src/README.md", 3, "there is no sync/moment.hpp")
        self.finds(docs.findings(self.root), "src/sync/step.cpp", 4, "there is no other.cpp")

    def test_a_row_of_a_file_that_is_gone_is_found(self):
        self.write("src/sync/step.cpp", "// Steps.\n")
        self.write(
            "src/sync/README.md",
            "| kind | use |\n|---|---|\n| `sum` | x |\n\n| file | use |\n|---|---|\n| `step`, `../sync/` | x |\n| `gone` | x |\n",
        )
        found = [str(f) for f in docs.findings(self.root)]
        self.assertEqual(1, len(found), found)
        self.finds(docs.findings(self.root), "src/sync/README.md", 8, "there is no gone")

    def test_a_function_of_the_tour_that_is_gone_is_found(self):
        self.write("src/sync/step.cpp", "// Steps.\nvoid Step::run_bucket();\n")
        self.write("docs/tour.md", "`Step::run_bucket` ([step](../src/sync/step.cpp)),\nand `converse`.\n")
        found = [str(f) for f in docs.findings(self.root)]
        self.assertEqual(1, len(found), found)
        self.finds(docs.findings(self.root), "docs/tour.md", 2, "no linked file has converse")

    def test_another_example_is_found(self):
        self.write("example/allreduce.cpp", "int main() { return 0; }\n")
        self.finds(docs.findings(self.root), "README.md", 1, "copy it again")

    def test_an_excerpt_that_is_no_longer_in_its_example_is_found(self):
        self.write("example/own_model.cpp", "int a;\nint b;\n")
        self.write("docs/use.md", "```cpp\nint b;\n```\n")
        self.finds_nothing(docs.findings(self.root))
        self.write("docs/use.md", "\n```cpp\nint c;\n```\n")
        self.finds(docs.findings(self.root), "docs/use.md", 2, "not in example/own_model.cpp")


@unittest.skipUnless(tidy.program(), "clang-tidy is not installed")
class Tidy(Tree):
    def database(self, *paths):
        entries = [{"directory": str(self.root), "file": p, "command": f"g++ -I{self.root}/include -c {p}"} for p in paths]
        self.write("build/tidy/compile_commands.json", json.dumps(entries))

    def test_a_wrong_name_is_found(self):
        rules = (Path(__file__).resolve().parents[1] / ".clang-tidy").read_text()
        self.write(".clang-tidy", rules)
        self.write("src/base/log.cpp", "int WrongName() { return 1; }\n")
        self.database("src/base/log.cpp")
        self.finds(tidy.findings(self.root, reach="--all"), "src/base/log.cpp", 1, "WrongName")

    def test_an_access_without_the_lock_is_found(self):
        project = Path(__file__).resolve().parents[1]
        self.write(".clang-tidy", (project / ".clang-tidy").read_text())
        for header in ("mutex.hpp", "clock.hpp"):
            self.write(f"include/base/{header}", (project / "src/base" / header).read_text())
        self.write("src/base/count.cpp", "#include \"base/mutex.hpp\"\nclass Count {\n public:\n  int get() {\n"
                   "    syncopate::base::Lock lock(mutex_);\n    return value_;\n  }\n  int peek() { return value_; }\n"
                   " private:\n  syncopate::base::Mutex mutex_;\n  int value_ SYNCOPATE_GUARDED_BY(mutex_) = 0;\n};\n")
        self.database("src/base/count.cpp")
        found = list(tidy.findings(self.root, reach="--all"))
        self.finds(found, "src/base/count.cpp", 8, "requires holding mutex 'mutex_'")
        self.assertEqual(1, len(found), found)

    def test_files_looked_at_together_keep_their_findings_and_lines(self):
        self.write(".clang-tidy", (Path(__file__).resolve().parents[1] / ".clang-tidy").read_text())
        self.write("include/names.hpp", "#pragma once\nstruct wrong_type {};\n")
        self.write("src/base/a.cpp", "#include \"names.hpp\"\nnamespace n { struct S {}; }\nusing n::S;\n")
        self.write("src/base/b.cpp", "namespace {\nint same() { return 1; }\n}\nint WrongName() { return same(); }\n")
        self.write("src/base/c.cpp", "namespace {\nint same() { return 2; }\nint OtherName() { return same(); }\n}\n")
        self.database("src/base/a.cpp", "src/base/b.cpp", "src/base/c.cpp")
        found = list(tidy.findings(self.root, reach="--all"))
        self.finds(found, "include/names.hpp", 2, "wrong_type")
        self.finds(found, "src/base/a.cpp", 3, "misc-unused-using-decls")
        self.finds(found, "src/base/b.cpp", 4, "WrongName")
        self.finds(found, "src/base/c.cpp", 3, "OtherName")  # meets b's name: looked at alone

    def test_clean_files_are_looked_at_again_when_a_header_or_the_rules_change(self):
        rules = (Path(__file__).resolve().parents[1] / ".clang-tidy").read_text()
        self.write(".clang-tidy", rules)
        self.write("include/names.hpp", "#pragma once\nstruct Right {};\n")
        self.write("src/base/a.cpp", "#include \"names.hpp\"\nnamespace n { Right right() { return {}; } }\n")
        self.database("src/base/a.cpp")
        with mock.patch.object(tidy, "CLEAN", Clean("tidy", self.root / "caches")):
            self.finds_nothing(tidy.findings(self.root, reach="--all"))
            with mock.patch.object(tidy, "diagnostics", side_effect=AssertionError("looked at again")):
                self.finds_nothing(tidy.findings(self.root, reach="--all"))
            self.write("include/names.hpp", "#pragma once\nstruct Right { int WrongName(); };\n")
            self.finds(tidy.findings(self.root, reach="--all"), "include/names.hpp", 2, "WrongName")
            self.write("include/names.hpp", "#pragma once\nstruct Right {};\n")
            self.write(".clang-tidy", rules.replace("CamelCase", "lower_case"))
            self.finds(tidy.findings(self.root, reach="--all"), "include/names.hpp", 2, "Right")


if __name__ == "__main__":
    unittest.main()
