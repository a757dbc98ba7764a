// SPDX-License-Identifier: GPL-2.0-or-later
/* The one definition of what common.bpf.h declares. */
#include "common.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct bpf_config config;
struct bpf_counters counters;

/* The rings' sizes are set when the programs are loaded. */
struct ring_map ring SEC(".maps");
struct ring_map notices SEC(".maps");
struct scope_map devs SEC(".maps");
struct scope_map file_systems SEC(".maps");
struct pids_map pids SEC(".maps");
