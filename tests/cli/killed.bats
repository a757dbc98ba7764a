#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Whatever ends a check, nothing of it stays: no loop device, mount, cgroup,
# directory or process.

setup_file() {
	if [ "$(id -u)" != 0 ]; then
		skip "needs root"
	fi
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	export TMPDIR=$PWD/tmp
	mkdir "$TMPDIR"
	head -c 65536 /dev/urandom >data
}

leftovers() {
	losetup -a | grep -i blkbox
	grep "$TMPDIR" /proc/mounts
	find /sys/fs/cgroup -maxdepth 4 -name 'blkbox-*' 2>/dev/null
	find "$TMPDIR" -maxdepth 1 -type d -name 'blkbox-??????'
	pgrep -a -f "$BATS_TEST_TMPDIR/marker" || true
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

# The program says that it runs, then waits to be ended.
start() {
	mkfifo started
	cat >program <<-'EOF'
		#!/bin/sh
		cp data copy
		echo >"$1"
		exec sleep 1000
	EOF
	chmod +x program
	blkbox check --input data --input program -o out.bbx -- \
		./program "$PWD/started" 3>&- >log 2>&1 &
	pid=$!
	read -r _ <started
}

@test "killed while the program runs" {
	start
	kill -KILL $pid
	wait $pid || true
	nothing_left
}

@test "interrupted while the program runs" {
	start
	kill -INT $pid
	status=0
	wait $pid || status=$?
	cat log
	[ "$status" = 2 ]
	nothing_left
}

@test "killed while it explores" {
	blkbox check --input data -k all --for 1000 -o out.bbx -- \
		sh -c 'for i in 1 2 3 4 5 6 7 8 9; do cp data $i; done' \
		3>&- >log 2>&1 &
	pid=$!
	for ((i = 0; i < 600; i++)); do
		[ -n "$(pgrep -P $pid)" ] && [ -s out.bbx ] && break
		sleep 0.1
	done
	kill -KILL $pid
	wait $pid || true
	nothing_left
}
