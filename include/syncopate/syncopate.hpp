// Everything a training program needs in one include.
#pragma once

#include "syncopate/collective.hpp"
#include "syncopate/combiner.hpp"
#include "syncopate/dtype.hpp"
#include "syncopate/error.hpp"
#include "syncopate/group.hpp"
#include "syncopate/log.hpp"
#include "syncopate/optimizer.hpp"
#include "syncopate/shared_work.hpp"
#include "syncopate/synchronizer.hpp"
#include "syncopate/trace.hpp"
#include "syncopate/version.hpp"
