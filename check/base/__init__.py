"""Code that all checks share: the tree's files, C++ text without comments, functions, findings."""
