"""What every check shares: the tree's files, C++ text without comments, functions, findings."""
