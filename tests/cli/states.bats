#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Expected states come from two sources: snapshots at stops, and the recorded
# operations applied to the base. On programs that do not store through a
# mapping they are the same; where one does, the second says unknown and is
# never wrong.

setup_file() {
	if [ "$(id -u)" != 0 ]; then
		skip "needs root"
	fi
	if ! blkbox doctor >/dev/null; then
		skip "this machine cannot record (blkbox doctor)"
	fi
	export CASES="$BATS_TEST_DIRNAME/../cases"
	export PATH=$BLKBOX_BUILD/tests/tools:$PATH
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	awk 'BEGIN { for (i = 0; i < 4096; i++)
		printf "%08d the quick brown fox\n", (i * 7919) % 100000000 }' |
		head -c 65536 >data
}

# recorded CHECK-ARGUMENT...: what check records, in out.bbx. Its verdict is
# not asked for.
recorded() {
	run blkbox check --amplify none -k 0 --for 1ms -o out.bbx "$@"
	echo "$output"
	[ "$status" != 2 ]
}

# agree_where_stopped LEAST CHECK-ARGUMENT...: what stops there were show what
# the operations make, at least LEAST of them, and nothing is unknown.
agree_where_stopped() {
	local least=$1
	shift
	recorded "$@"
	run states --compare out.bbx
	echo "$output"
	[ "$status" = 0 ]
	[[ ${lines[-1]} =~ ^"agree "([0-9]+)" later 0 unknown 0 " ]]
	[ "${BASH_REMATCH[1]}" -ge "$least" ]
}

# As that, and there is a stop for each state that the operations make.
agree() {
	agree_where_stopped "$@"
	[[ ${lines[-1]} == *" alone-in-trace 0" ]]
}

@test "states agree: sort -o" {
	agree 3 --input data -- sort -o data data
}

@test "states agree: gzip" {
	agree 5 --input data -- gzip data
}

@test "states agree: gzip --synchronous" {
	agree 6 --input data -- gzip --synchronous data
}

@test "states agree: perl -i" {
	agree 5 --input data -- perl -i -pe 's/q/Q/' data
}

@test "states agree: cp, mv, rm, ln and mkdir of trees, on each file system" {
	local fs
	cat >work <<-'EOF'
		#!/bin/sh
		set -e
		mkdir -p a/b/c
		cp data a/b/one
		cp -p a/b/one a/two
		ln a/two a/b/hard
		ln -s ../two a/b/soft
		mv a/b/one a/b/c/moved
		mv a/b z
		rm a/two
		cp -r z y
		mv -T y/c y/d
		rm -r z
		rmdir y/d 2>/dev/null || rm y/d/moved
		rmdir y/d
		mkfifo fifo
		touch empty
		rm fifo
		mv data 'a name with spaces'
		sync
	EOF
	chmod +x work
	for fs in ext4 xfs btrfs; do
		rm -f out.bbx
		agree 25 --fs "$fs" --input data --input work -- ./work
	done
}

@test "states agree: dd that seeks, appends and writes past the end" {
	cat >work <<-'EOF'
		#!/bin/sh
		set -e
		dd if=data of=data bs=512 count=3 seek=7 conv=notrunc
		dd if=data of=data bs=1000 skip=2 seek=90 count=5 conv=notrunc
		dd if=data of=data bs=700 count=9 oflag=append conv=notrunc
		dd if=data of=sparse bs=4096 seek=100 count=2
		dd if=data of=direct bs=4096 count=4 oflag=direct
		dd if=data of=synced bs=4096 count=4 oflag=dsync
		dd if=data of=flushed bs=4096 count=4 conv=fsync
	EOF
	chmod +x work
	agree 12 --input data --input work -- sh -c './work 2>/dev/null'
}

@test "states agree: truncate, up, down and by open" {
	cat >work <<-'EOF'
		#!/bin/sh
		set -e
		truncate -s 100 data
		truncate -s 10000 data
		truncate -s 5000 new
		echo more >>data
		: >new
		echo again >new
		fallocate -l 20000 new
		fallocate -p -o 0 -l 4096 data
		touch done
	EOF
	chmod +x work
	agree 6 --input data --input work -- ./work
}

@test "states agree: a pipeline of several processes" {
	cat >work <<-'EOF'
		#!/bin/sh
		set -e
		sort data | tee sorted | awk '{ print > ($1 % 3 ".out") }'
		for i in 0 1 2; do
			(gzip -c $i.out >$i.gz; rm $i.out) &
		done
		wait
		cat 0.gz 1.gz 2.gz >all
		mv all data
	EOF
	chmod +x work
	# Where another process was faster there is no stop.
	agree_where_stopped 10 --input data --input work -- ./work
}

@test "states agree: an incremental make" {
	agree 5 --case "$CASES/make-incremental"
}

@test "states agree: SQLite with a rollback journal" {
	agree 20 --case "$CASES/sqlite-rollback"
}

@test "states of SQLite's write-ahead log: unknown where mapped, never wrong" {
	recorded --case "$CASES/sqlite-wal"
	run states --compare out.bbx
	echo "$output"
	[ "$status" = 0 ]
	[[ ${lines[-1]} =~ " unknown "([0-9]+)" " ]]
	[ "${BASH_REMATCH[1]}" -gt 0 ]
}

@test "states of a program that stores through a mapping: unknown, not wrong" {
	cat >work <<-'EOF'
		import mmap, os
		fd = os.open("data", os.O_RDWR)
		m = mmap.mmap(fd, 0)
		m[100:105] = b"STORE"
		open("other", "w").write("x")
		m[9000:9005] = b"STORE"
		m.flush()
		os.rename("other", "another")
	EOF
	command -v python3 >/dev/null || skip "no python3"
	recorded --input data --input work -- python3 work
	run states --compare out.bbx
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"unknown after"*rename* ]]
	run states out.bbx
	[[ $output == *" unknown "* ]]
}

@test "states: what nobody recorded is seen to differ" {
	local top own
	top=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[ -n "$top" ] || skip "no cgroup v2 is mounted"
	own=$top$(sed -n 's/^0:://p' /proc/self/cgroup)
	# A process that leaves the cgroup is out of the recorder's sight.
	cat >work <<-EOF
		(echo \$BASHPID >$own/cgroup.procs; exec cp data hidden)
		cp data seen
	EOF
	recorded --input data --input work -- bash work
	run states --compare out.bbx
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *"hidden: not in the one rebuilt"* ]]
	[[ $output == *"differs after"* ]]
}
