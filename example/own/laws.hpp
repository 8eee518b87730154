// Reports what a component's check found: the programs of this folder share it.
#pragma once

#include <cstdio>
#include <optional>

#include "syncopate/testing.hpp"

/// Whether no law is broken; otherwise prints which one, and in which case.
inline bool holds(const std::optional<syncopate::BrokenLaw>& broken) {
  if (broken) std::fprintf(stderr, "%s\n", broken->text.c_str());
  return !broken;
}
