#!/usr/bin/env python3
"""Includes that go up, or round in a circle, or to where they may not, are found."""

import unittest

import layers
from base.small_tree import Tree


class Layers(Tree):
    def test_an_upward_include_is_found(self):
        self.write("src/sync/step.hpp", "")
        self.write("src/base/clock.cpp", '// Time.\n#include "sync/step.hpp"\n')
        self.finds(layers.findings(self.root), "src/base/clock.cpp", 2, "base/ may not include sync/")

    def test_downward_includes_pass(self):
        self.write("src/base/clock.hpp", "")
        self.write("src/sync/step.cpp", '#include "base/clock.hpp"\n#include "syncopate/dtype.hpp"\n#include <vector>\n')
        self.finds_nothing(layers.findings(self.root))

    def test_a_shelf_that_stands_lower_than_its_folder_is_a_layer_of_its_own(self):
        for path in ("server/message.hpp", "server/consistency.hpp", "server/placement.hpp", "compress/codec.hpp", "base/clock.hpp"):
            self.write(f"src/{path}", "")
        self.write("src/input/order.cpp", '#include "base/clock.hpp"\n#include "server/message.hpp"\n')
        self.write("src/server/consistency/ssp.cpp", '#include "base/clock.hpp"\n#include "compress/codec.hpp"\n')
        self.write("src/server/client.cpp", '#include "server/consistency.hpp"\n#include "compress/codec.hpp"\n')
        found = list(layers.findings(self.root))
        self.finds(found, "src/input/order.cpp", 2, "input/ may not include server/")
        self.finds(found, "src/server/consistency/ssp.cpp", 2, "server/consistency/ may not include compress/")
        self.assertEqual(len(found), 2)

    def test_a_commented_include_is_not_one(self):
        self.write("src/base/clock.cpp", '// #include "sync/step.hpp"\n/* #include "sync/step.hpp" */\n')
        self.finds_nothing(layers.findings(self.root))

    def test_programs_may_not_look_inside(self):
        self.write("src/base/clock.hpp", "")
        self.write("programs/main.cpp", '#include "base/clock.hpp"\n')
        self.finds(layers.findings(self.root), "programs/main.cpp", 1, "include/syncopate/ only")

    def test_foreign_libraries_stay_in_their_rooms(self):
        self.write("src/sync/step.cpp", "#include <torch/torch.h>\n#include <mpi.h>\n")
        self.finds(layers.findings(self.root), "src/sync/step.cpp", 1, "libtorch")
        self.finds(layers.findings(self.root), "src/sync/step.cpp", 2, "MPI")
        self.write("src/sync/step.cpp", "")
        self.write("programs/train/training.cpp", "#include <torch/torch.h>\n")
        self.finds_nothing(layers.findings(self.root))

    def test_a_low_folder_does_not_know_a_high_public_header(self):
        self.write("include/syncopate/synchronizer.hpp", "")
        self.write("src/kernel/reduce.cpp", '#include "syncopate/synchronizer.hpp"\n')
        self.finds(layers.findings(self.root), "src/kernel/reduce.cpp", 1, "belongs to sync/")

    def test_a_public_header_includes_no_private_one(self):
        self.write("include/syncopate/group.hpp", '#include "base/clock.hpp"\n#include <fmt/format.h>\n')
        self.finds(layers.findings(self.root), "include/syncopate/group.hpp", 1, "public headers include")
        self.finds(layers.findings(self.root), "include/syncopate/group.hpp", 2, "public headers include")

    def test_headers_for_our_own_programs_are_not_for_users(self):
        self.write("include/syncopate/tooling/predict.hpp", "")
        self.write("include/syncopate/tooling/simulate.hpp", '#include "syncopate/tooling/predict.hpp"\n')
        for tree in ("programs", "test", "bench"):
            self.write(f"{tree}/main.cpp", '#include "syncopate/tooling/predict.hpp"\n')
        self.finds_nothing(layers.findings(self.root))
        for path in ("example/main.cpp", "include/syncopate/group.hpp"):
            self.write(path, '#include "syncopate/tooling/predict.hpp"\n')
            self.finds(layers.findings(self.root), path, 1, "syncopate/tooling/ is for")

    def test_a_file_outside_the_folders_is_found(self):
        self.write("src/stray.cpp", "// Stray.\n")
        self.finds(layers.findings(self.root), "src/stray.cpp", 1, "lives in one of the folders")


class Rooms(Tree):
    """Folders inside a folder of src/."""

    def includes(self, path, target):
        self.write(f"src/{target}", "")
        self.write(f"src/{path}", f'#include "{target}"\n')

    def test_rooms_are_entered_from_above_only(self):
        self.includes("transport/tcp/link.cpp", "transport/membership/control.hpp")
        self.includes("transport/membership/tree.cpp", "transport/connect/rendezvous/rendezvous.hpp")
        self.includes("collective/engine/execute.cpp", "collective/plan/program.hpp")
        self.finds_nothing(layers.findings(self.root))
        self.includes("transport/connect/rendezvous/host.cpp", "transport/tcp/link.hpp")
        self.includes("collective/pattern/ring.cpp", "collective/plan/program.hpp")
        self.finds(layers.findings(self.root), "src/transport/connect/rendezvous/host.cpp", 1, "connect/ stands below tcp/")
        self.finds(layers.findings(self.root), "src/collective/pattern/ring.cpp", 1, "pattern/ stands below plan/")

    def test_a_circle_of_folders_is_found(self):
        self.includes("transport/shm/link.cpp", "transport/tcp/stream.hpp")
        self.finds_nothing(layers.findings(self.root))
        self.includes("transport/tcp/link.cpp", "transport/inproc/hub.hpp")
        self.includes("transport/inproc/hub.cpp", "transport/shm/pages.hpp")
        self.finds(layers.findings(self.root), "src/transport/shm/link.cpp", 1, "part of a circle")
        self.finds(layers.findings(self.root), "src/transport/inproc/hub.cpp", 1, "part of a circle")

    def test_a_circle_through_a_file_beside_the_folders_is_found(self):
        self.includes("schedule/policy/online.cpp", "schedule/policy.hpp")
        self.includes("schedule/dispatch.cpp", "schedule/policy/online.hpp")
        self.finds_nothing(layers.findings(self.root))
        self.includes("schedule/policy.hpp", "schedule/policy/online.hpp")
        self.finds(layers.findings(self.root), "src/schedule/policy.hpp", 1, "part of a circle")


if __name__ == "__main__":
    unittest.main()
