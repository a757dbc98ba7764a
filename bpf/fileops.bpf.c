// SPDX-License-Identifier: GPL-2.0-or-later
/* The one definition of what fileops.h declares. */
#include "fileops.h"

struct calls_map calls SEC(".maps");
struct written_map written_files SEC(".maps");
struct saved_map saved_paths SEC(".maps");
struct scratch_map scratches SEC(".maps");
