#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# doctor: what this machine can do, and what to do where it cannot.

setup_file() {
	if [ "$(id -u)" != 0 ]; then
		skip "needs root"
	fi
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
}

# As a user who may do nothing; the program must be where he can read it.
as_nobody() {
	install -m 755 "$(command -v blkbox)" "$BATS_FILE_TMPDIR/blkbox" ||
		return 1
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" \
		"$(dirname "$BATS_FILE_TMPDIR")"
	run setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$BATS_FILE_TMPDIR/blkbox" "$@"
	[ "$status" != 126 ] || skip "the directory of tests is root's alone"
}

@test "doctor: one line an examination, and what it came to by the exit status" {
	run blkbox doctor
	echo "$output"
	[ "${#lines[@]}" -ge 10 ]
	if [[ $output == *MISSING* ]]; then
		[ "$status" = 2 ]
	else
		[ "$status" = 0 ]
	fi
}

@test "doctor --json: an object a tool can read, in a file or on its own" {
	local has='
		(.version == 1) and (.can_record | type == "boolean") and
		(.examinations | length >= 10) and
		all(.examinations[]; (.name | test("^[a-z0-9_]+$")) and
			(.ok | type == "boolean") and
			(.required | type == "boolean") and
			(.what | type == "string") and
			(.ok or (.advice | type == "string"))) and
		(.can_record == all(.examinations[]; .ok or (.required | not)))'
	blkbox doctor --json d.json || [ $? = 2 ]
	jq -e "$has" d.json
	blkbox doctor --json - >out || [ $? = 2 ]
	jq -e "$has" out
}

@test "doctor: what it says works is what record then does" {
	blkbox doctor --json d.json || [ $? = 2 ]
	truncate -s 16M img
	local loop status=0
	loop=$(losetup -f --show img)
	blkbox record --device "$loop" -o out.bbx -- true || status=$?
	losetup -d "$loop"
	[ "$(jq .can_record d.json)" = "$([ $status = 0 ] && echo true ||
		echo false)" ]
}

@test "doctor: where a privilege is missing it says which, and exits 2" {
	as_nobody doctor
	echo "$output"
	[ "$status" = 2 ]
	[[ $output == *MISSING*privilege*"run as root"* ]]
}

@test "check, record and explore say that root is needed" {
	echo x >"$BATS_FILE_TMPDIR/x.bbx"
	chmod 644 "$BATS_FILE_TMPDIR/x.bbx"
	as_nobody check -- true
	echo "$output"
	[ "$status" = 2 ]
	[[ $output == *root* ]]
	as_nobody explore "$BATS_FILE_TMPDIR/x.bbx"
	echo "$output"
	[ "$status" = 2 ]
	[[ $output == *root* ]]
	as_nobody record --device /dev/loop0 -o /dev/null
	echo "$output"
	[ "$status" = 2 ]
}

@test "doctor --json to where nothing can be written is exit 2" {
	run blkbox doctor --json nowhere/d.json
	[ "$status" = 2 ]
	[[ $output == *nowhere/d.json* ]]
}
