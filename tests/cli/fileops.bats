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

@test "operations on names that start outside" {
	mkdir m.out
	does ext4 fileops_outside
}

@test "a shell that works from the root" {
	mkfs.ext4 -q "$LOOP"
	mount "$LOOP" m
	echo a >m/a
	mkdir m/dir
	cat >work <<-'EOS'
		cd /
		mv "${D#/}/m/a" "${D#/}/m/b"
		ln "${D#/}/m/b" "${D#/}/m/c"
		mkdir "${D#/}/m/dir/new"
	EOS
	run blkbox record --mount m -o out.bbx -- bash work
	[ "$status" = 0 ]
	blkbox show --json out.bbx >out.json
	for op in rename link mkdir; do
		jq -se "any(.[]; .op == \"$op\" and .ret == 0 and
			.dir_path == \"/\" and
			(.flags | contains([\"dir-absolute\"])))" out.json
	done
}

@test "data that cannot be read is a gap, and the rest is there" {
	mkfs.ext4 -q "$LOOP"
	mount "$LOOP" m
	"$BLKBOX_BUILD/tests/tools/fileops_unreadable" m/first ||
		skip "no userfaultfd"
	run blkbox record --mount m -o out.bbx -- \
		"$BLKBOX_BUILD/tests/tools/fileops_unreadable" m/f
	echo "$output"
	[ "$status" = 3 ]
	[[ $output == *"4196 bytes could not be read"* ]]
	blkbox show --data --json out.bbx >out.json || [ $? = 3 ]
	jq -c 'select(.op == "write" and .type == "file-op") |
		[.off, .ret, (.flags | contains(["data-unreadable"])),
		 .data_hex]' out.json >writes
	local zeroes bs
	zeroes=$(printf '0%.0s' {1..8192})
	bs=$(printf '42%.0s' {1..4096})
	[ "$(sed -n 1p writes)" = \
		"[$(((1 << 30) - 4096)),8192,true,\"$zeroes$bs\"]" ]
	[ "$(sed -n 2p writes)" = \
		"[$(((1 << 30) - 100)),4196,true,\"${zeroes:0:200}$bs\"]" ]
	[ "$(jq -c 'select(.type == "gap") |
		[.reason, .lost_type, .events, .bytes]' out.json)" = \
		'["unreadable","file-op",0,4096]
["unreadable","file-op",0,100]' ]
	run blkbox verify out.bbx
	[ "$status" = 3 ]
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
