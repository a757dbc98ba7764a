#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# mark: a line of text into every recording under way.

setup_file() {
	if [ "$(id -u)" != 0 ]; then
		skip "needs root"
	fi
	if ! blkbox doctor >/dev/null; then
		skip "this machine cannot record (blkbox doctor)"
	fi
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	truncate -s 16M img
	LOOP=$(losetup -f --show img)
}

teardown() {
	[ -z "$LOOP" ] || losetup -d "$LOOP"
}

# recorded COMMAND: the marks that a recording of it holds, one a line, in
# ./marks; blkbox's own left out.
recorded() {
	blkbox record --device "$LOOP" --force -o out.bbx -- bash -c "$1"
	blkbox show --json --type mark out.bbx | jq -r .text |
		grep -v '^blkbox: ' >marks || true
	cat marks
}

@test "mark: the text is in the recording as it was typed" {
	recorded "blkbox mark 'half way: \"there\" \\ é'; blkbox mark -- -x"
	[ "$(sed -n 1p marks)" = 'half way: "there" \ é' ]
	[ "$(sed -n 2p marks)" = -x ]
}

@test "mark: 255 bytes are whole, more are refused" {
	local text
	text=$(printf '%255s' '' | tr ' ' m)
	recorded "blkbox mark $text; blkbox mark m$text"
	[ "$(cat marks)" = "$text" ]
	run blkbox mark "m$text"
	echo "$output"
	[ "$status" = 2 ]
	[[ $output == *"1 to 255 bytes"* ]]
}

@test "mark: one text, not none, not two, not an empty one" {
	run blkbox mark
	[ "$status" = 2 ]
	[[ $output == *"Try 'blkbox mark --help'"* ]]
	run blkbox mark one two
	[ "$status" = 2 ]
	run blkbox mark ''
	[ "$status" = 2 ]
}

@test "mark: from any process, it reaches each recording under way" {
	# With an end in sight, so that it detaches quickly.
	blkbox record --device "$LOOP" --for 50s -o other.bbx 3>&- 2>log &
	local pid=$!
	until grep -q '^recording' log; do :; done
	recorded "blkbox mark both"
	kill -TERM $pid
	wait $pid
	grep -qx both marks
	blkbox show --json --type mark other.bbx | jq -r .text | grep -qx both
}

@test "mark: a recorded program puts one by opening a name" {
	recorded 'cat "/blkbox:mark/by itself" 2>/dev/null; true'
	[ "$(cat marks)" = "by itself" ]
}

@test "mark: without a recording under way it goes nowhere, which is no error" {
	blkbox mark nobody
}

@test "mark: blkbox's own are not for the user" {
	run blkbox mark 'blkbox: end'
	echo "$output"
	[ "$status" = 2 ]
}

# The marks that bound a check's crash points must be this check's.
@test "mark: another check's begin and end do not count in a recording" {
	blkbox record --device "$LOOP" -o out.bbx -- bash -c '
		blkbox check --amplify none -k 0 --for 1ms -o inner.bbx -- true
		cat "/blkbox:mark/blkbox: end" 2>/dev/null; true'
	blkbox show --json --type mark out.bbx | jq -r .text >outer
	blkbox show --json --type mark inner.bbx | jq -r .text >inner
	cat outer inner
	[ "$(grep -cx 'blkbox: begin' inner)" = 1 ]
	[ "$(grep -cx 'blkbox: end' inner)" = 1 ]
	[ "$(grep -cx 'blkbox: begin' outer)" = 0 ]
	[ "$(grep -cx 'blkbox: end' outer)" = 0 ]
	# They are not lost either.
	[ "$(grep -c "another's end" outer)" = 2 ]
}
