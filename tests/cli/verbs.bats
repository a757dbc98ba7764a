#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What all verbs have in common, also without privileges: help, wrong options,
# exit statuses.

VERBS=(check record explore replay show verify mark doctor)

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
}

@test "blkbox --help lists every verb" {
	local verb
	run blkbox --help
	[ "$status" = 0 ]
	for verb in "${VERBS[@]}"; do
		grep -q "^  $verb " <<<"$output"
	done
}

@test "each verb's --help goes to standard output, and exits 0" {
	local verb
	for verb in "${VERBS[@]}"; do
		blkbox "$verb" --help >out 2>err
		head -n 1 out
		[[ $(head -n 1 out) == "Usage: blkbox $verb "* ]]
		[ ! -s err ]
	done
}

@test "each verb's --help fits a terminal" {
	local verb
	for verb in "${VERBS[@]}"; do
		blkbox "$verb" --help >out
		awk -v verb="$verb" 'length > 84 { print verb ": " $0; bad = 1 }
			END { exit bad }' out
	done
}

@test "an unknown option is named, with where to look, and exits 2" {
	local verb
	for verb in "${VERBS[@]}"; do
		run blkbox "$verb" --no-such-option
		echo "$output"
		[ "$status" = 2 ]
		[[ $output == *no-such-option* ]]
		[[ $output == *"Try 'blkbox $verb --help'."* ]]
	done
}

@test "an option without its value is named, and exits 2" {
	local pair
	for pair in "check --input" "record --device" "explore --check" \
		"replay --at" "show --from" "verify --json" "doctor --json"; do
		# shellcheck disable=SC2086
		run blkbox $pair
		echo "$output"
		[ "$status" = 2 ]
		[[ $output == *"Try 'blkbox ${pair% *} --help'."* ]]
	done
}

@test "complaints go to standard error" {
	local verb
	for verb in "${VERBS[@]}"; do
		run bash -c "blkbox $verb --no-such-option 2>/dev/null"
		[ -z "$output" ]
	done
}

@test "an unknown verb, and none, exit 2 and say where verbs are listed" {
	run blkbox fly
	[ "$status" = 2 ]
	[[ $output == *"'fly'"*"blkbox --help"* ]]
	run blkbox
	[ "$status" = 2 ]
	[[ $output == *"Usage: blkbox"* ]]
}

@test "--version says one" {
	run blkbox --version
	[ "$status" = 0 ]
	[[ $output =~ ^"blkbox "[0-9]+\.[0-9]+ ]]
}

@test "the offline half says of the live verbs that it has none" {
	local offline=$BLKBOX_BUILD/offline/blkbox verb
	[ -x "$offline" ] || skip "no offline build"
	for verb in check record mark doctor; do
		run "$offline" "$verb" --help
		[ "$status" = 2 ]
		[[ $output == *"BPF=0"* ]]
	done
	for verb in explore replay show verify; do
		"$offline" "$verb" --help >/dev/null
	done
}
