#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Every file operation is recorded as it was done: programs that do each with
# known arguments (tests/tools/fileops_*.c) write down what must be recorded.

setup_file() {
	if [ "$(id -u)" != 0 ]; then
		skip "needs root"
	fi
	if ! blkbox doctor >/dev/null; then
		skip "this machine cannot record (blkbox doctor)"
	fi
	export PATH=$BLKBOX_BUILD/tests/tools:$PATH
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	export D=$PWD
	mkdir m
	truncate -s 320M img
	LOOP=$(losetup -f --show img)
	export LOOP
}

teardown() {
	cd /
	umount "$D/m" 2>/dev/null || true
	losetup -d "$LOOP"
}

# does FS TOOL OPTION...: what TOOL does on a new FS is recorded as it was done.
does() {
	local fs=$1 tool=$2
	shift 2
	"mkfs.$fs" -q "$LOOP"
	mount "$LOOP" m
	run blkbox record --mount m -o out.bbx "$@" -- \
		"$BLKBOX_BUILD/tests/tools/$tool" "$D/m" "$D/want"
	echo "$output"
	[ "$status" = 0 ]
	[ -s want ]
	fileops_list out.bbx "$tool" >got
	diff want got
}

@test "opens, writes, maps and copies on ext4" {
	does ext4 fileops_data
}

@test "opens, writes, maps and copies on xfs" {
	does xfs fileops_data
}

@test "opens, writes, maps and copies on btrfs" {
	does btrfs fileops_data
}

@test "operations on names" {
	does ext4 fileops_names
}

@test "operations on names on btrfs" {
	does btrfs fileops_names
}

@test "every way to close a file that was written" {
	does ext4 fileops_close
}

@test "every way to close a file that was written, on xfs" {
	does xfs fileops_close
}

@test "io_uring" {
	if [ "$(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null)" = 2 ]; then
		skip "io_uring is disabled"
	fi
	does ext4 fileops_uring
}

@test "nothing outside the file system and the process is recorded" {
	mkfs.ext4 -q "$LOOP"
	mount "$LOOP" m
	cat >work <<-'EOS'
		echo out >"$D/outside"
		echo in >"$D/m/inside"
	EOS
	# Somebody else, on the same file system, all the while.
	(while [ ! -e "$D/stop" ]; do echo x >"$D/m/other"; done) &
	local other=$!
	run blkbox record --mount m -o out.bbx -- bash work
	touch stop
	wait "$other"
	[ "$status" = 0 ]
	blkbox show --json out.bbx >out.json
	grep -q '"path":"[^"]*/m/inside"' out.json
	[ "$(grep -cE 'outside|/m/other' out.json)" = 0 ]
}
