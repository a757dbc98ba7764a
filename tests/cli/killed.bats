#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Whatever ends a check, an exploration or a recorder, nothing of it stays: no
# loop device, mount, cgroup, directory, BPF program or process.

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
	export TMPDIR=$PWD/tmp
	mkdir "$TMPDIR"
	head -c 65536 /dev/urandom >data
	pid=
	LOOP=
}

# The janitor among ours is given time to clean up before it is ended, too.
teardown() {
	local p i
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
	for ((i = 0; i < 100; i++)); do
		[ -n "$(ours)" ] || break
		sleep 0.1
	done
	for p in $(ours); do
		kill -KILL "$p" 2>/dev/null || true
	done
	[ -z "$LOOP" ] || losetup -d "$LOOP"
}

# begin ARGUMENT...: blkbox in the background, as $pid. It and all that comes
# of it is known by its environment. A shell has its background processes ignore
# what the terminal sends; ours is not to.
begin() {
	BLKBOX_KILLED=$TMPDIR env --default-signal=INT,QUIT \
		blkbox "$@" 3>&- >log 2>&1 &
	pid=$!
}

# ends: waits for $pid, but not for ever; its exit status in $status.
ends() {
	local i
	for ((i = 0; i < 600; i++)); do
		if ! kill -0 $pid 2>/dev/null; then
			status=0
			wait $pid || status=$?
			return 0
		fi
		sleep 0.05
	done
	echo "still there after 30 s:"
	cat log
	return 1
}

# The processes that came of begin.
ours() {
	grep -lsz "^BLKBOX_KILLED=$TMPDIR\$" /proc/[0-9]*/environ |
		cut -d/ -f3
}

# until_is COMMAND...: waits for it to be true, while $pid lives.
until_is() {
	until "$@"; do
		if ! kill -0 $pid 2>/dev/null; then
			cat log
			return 1
		fi
	done
}

has_worker() {
	local p
	for p in $(ours); do
		grep -qs '^blkbox-w' "/proc/$p/comm" && return 0
	done
	return 1
}

# larger FILE BYTES
larger() {
	[ "$(stat -c %s "$1")" -gt "$2" ]
}

# What it holds now, to be looked for when it is dead: the loop devices, with
# the inode below each, and the BPF programs.
take_stock() {
	local p
	for p in $(ours); do
		find "/proc/$p/fd" -lname '/dev/loop*' -printf '%l\n' \
			2>/dev/null || true
	done | sort -u >names
	losetup -n -O NAME,BACK-INO | grep -wFf names >loops || true
	cat /proc/$pid/fdinfo/* 2>/dev/null | awk '$1 == "prog_id:" { print $2 }' |
		sort -u >programs
	awk '{ print "holds " $0 }' loops
	echo "and $(wc -l <programs) programs"
}

leftovers() {
	local id p
	for p in $(ours); do
		ps -o pid=,args= -p "$p"
	done
	losetup -n -O NAME,BACK-INO | grep -xFf loops
	while read -r id; do
		bpftool prog show id "$id" 2>/dev/null
	done <programs
	find /sys/fs/bpf -name '*blkbox*' 2>/dev/null
	find /sys/fs/cgroup -maxdepth 4 -name "blkbox-$pid-*" 2>/dev/null
	grep "$TMPDIR" /proc/mounts
	find "$TMPDIR" -maxdepth 1 -type d -name 'blkbox-??????'
}

nothing_left() {
	local i
	for ((i = 0; i < 100; i++)); do
		[ -z "$(leftovers)" ] && return 0
		sleep 0.1
	done
	leftovers
	return 1
}

# A check whose program says that it runs, then waits to be ended.
start_program() {
	mkfifo started
	cat >program <<-'EOP'
		#!/bin/sh
		cp data copy
		echo >"$1"
		exec sleep 1000
	EOP
	chmod +x program
	begin check --input data --input program -o out.bbx -- \
		./program "$PWD/started"
	read -r _ <started
	take_stock
	[ -s loops ]
	[ -s programs ]
}

# A check or an exploration that takes its time, and is in the midst of it.
start_exploring() {
	begin "$@"
	until_is stock_of_worker
}

# A worker may be between two lives: the one that reads the start ends soon.
stock_of_worker() {
	has_worker || return 1
	take_stock >/dev/null
	[ -s loops ]
}

@test "a check killed while its program runs leaves nothing" {
	start_program
	kill -KILL $pid
	ends
	nothing_left
}

@test "a check interrupted while its program runs leaves nothing" {
	start_program
	kill -INT $pid
	ends
	cat log
	[ "$status" = 2 ]
	nothing_left
}

@test "a check killed while it explores leaves nothing" {
	start_exploring check --input data --amplify none -o out.bbx \
		--check 'sleep 1000' -- cp data copy
	kill -KILL $pid
	ends
	nothing_left
}

@test "an exploration killed leaves nothing, its checkers neither" {
	blkbox check --input data --amplify none -k 0 --for 1ms -o out.bbx -- \
		cp data copy
	start_exploring explore --check 'sleep 1000' out.bbx
	kill -KILL $pid
	ends
	nothing_left
	# The recording is read, not written.
	blkbox verify out.bbx
}

@test "an exploration interrupted twice ends at once and leaves nothing" {
	local i
	blkbox check --input data --amplify none -k 0 --for 1ms -o out.bbx -- \
		cp data copy
	start_exploring explore --check 'sleep 1000' out.bbx
	# The first lets the site under way end; two at once may be taken for
	# one.
	for ((i = 0; i < 100; i++)); do
		kill -INT $pid 2>/dev/null || break
		sleep 0.05
	done
	ends
	[ "$status" != 0 ]
	nothing_left
}

@test "a recorder killed leaves a recording whole up to its last frame" {
	local size
	truncate -s 32M img
	LOOP=$(losetup -f --show img)
	# With an end in sight, so that it is detached quickly.
	begin record --device "$LOOP" --base full --for 50s -o out.bbx
	until_is grep -q '^recording' log
	take_stock
	[ -s programs ]
	dd if=/dev/urandom of="$LOOP" bs=64k count=200 oflag=direct status=none
	# Until frames with much of it are in the file.
	until_is larger out.bbx 4000000
	kill -KILL $pid
	ends
	nothing_left
	run blkbox verify --json v.json out.bbx
	echo "$output"
	[ "$status" = 3 ]
	[[ $output == *"cut: whole up to"* ]]
	size=$(stat -c %s out.bbx)
	jq -e ".state == \"cut\" and .whole_bytes > 1000000 and
		.whole_bytes <= $size and .events > 20" v.json
	# What is whole can be used: the disk of then is the disk up to a write.
	blkbox replay out.bbx --end -o image || [ $? = 3 ]
	cmp -n "$(first_bytes)" image img
}

# How far from its beginning on the disk is in the recording.
first_bytes() {
	blkbox show --json --type issue out.bbx 2>/dev/null |
		jq -s 'map(select(.op == "write") | .sector + .sectors) |
			max * 512'
}
