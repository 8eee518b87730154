"""Arrows between the folders inside one folder of src/ go down only, and no folders include each other in a circle."""

from pathlib import Path

from base.tree import Finding, cpp_files, includes

# Folder of src/ -> its folders from the ground up; those of one row are neighbours and may include each other one way.
ROWS = {
    "transport": [{"socket"}, {"connect"}, {"membership"}, {"tcp", "shm", "inproc", "ucx", "mpi"}],
    "collective": [{"pattern"}, {"plan"}, {"algorithm"}, {"select", "engine"}, {"group"}],
}


def row(parts):
    """The row in ROWS of a path below src/; None for files that stand in the noun's own folder."""
    rows = ROWS.get(parts[0], [])
    return next((i for i, folders in enumerate(rows) if len(parts) > 2 and parts[1] in folders), None)


def room(path):
    """The node of a cycle: a folder, or, in a noun's own folder, each file, because its lowest and highest layers are there."""
    return str(path.parent) if len(path.parts) > 2 else str(path)


def arrows(root):
    """(including path below src/, line, included path below src/) of all private includes that leave their folder."""
    for path in cpp_files(root, "src"):
        for line, quote, target in includes((root / path).read_text(errors="replace")):
            if quote == '"' and (root / "src" / target).is_file():
                yield path.relative_to("src"), line, Path(target)


def rising_findings(every):
    for path, line, target in every:
        here, there = row(path.parts), row(target.parts)
        if path.parts[0] == target.parts[0] and here is not None and there is not None and there > here:
            order = " -> ".join(", ".join(sorted(folders)) for folders in ROWS[path.parts[0]])
            yield Finding(f"src/{path}", line, f"{path.parts[1]}/ stands below {target.parts[1]}/ and may not include it ({order})")


def circles(graph):
    """Strongly connected sets of more than one node: from each node, what it reaches that reaches it too."""
    def reached(start):
        seen, left = set(), [start]
        while left:
            new = graph.get(left.pop(), set()) - seen
            seen |= new
            left += new
        return seen

    reach = {node: reached(node) for node in graph}
    found = {frozenset(other for other in reach[node] if node in reach.get(other, ())) for node in graph if node in reach[node]}
    return [sorted(circle) for circle in found]


def circle_findings(every):
    graph, first = {}, {}
    for path, line, target in every:
        ends = room(path), room(target)
        if ends[0] != ends[1]:
            graph.setdefault(ends[0], set()).add(ends[1])
            first.setdefault(ends, (path, line))
    for circle in circles(graph):
        for (here, there), (path, line) in first.items():
            if here in circle and there in circle:
                yield Finding(f"src/{path}", line, f"{here} -> {there} is part of a circle of {', '.join(circle)}: turn one arrow round")


def room_findings(root):
    every = list(arrows(root))
    return [*rising_findings(every), *circle_findings(every)]
