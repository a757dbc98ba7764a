#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# check where things are not as simple as one process in /tmp.
# shellcheck disable=SC2016 # programs in Perl and sh expand by themselves

setup_file() {
	if [ "$(id -u)" != 0 ]; then
		skip "needs root"
	fi
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	seq 10000 | head -c 32768 >data
}

# check WANTED-STATUS OPTION...: plain, at most one write lost, nothing kept
check() {
	local want=$1
	shift
	run timeout 100 blkbox check --for 0s --amplify none "$@"
	echo "$output"
	[ "$status" = "$want" ]
}

@test "threads that each fsync their file are consistent" {
	tool=${BLKBOX_BUILD:-$BATS_TEST_DIRNAME/../../build}/tests/tools
	[ -x "$tool/threads_save" ] || skip "threads_save is not built"
	check 0 --input data -- "$tool/threads_save"
}

@test "a program that stops when its child is stopped goes on" {
	command -v runuser || skip "runuser is not installed"
	check 0 --input data -- runuser -u root -- cp data copy
}

@test "a program that stops itself goes on" {
	check 0 --input data -- sh -c 'kill -STOP $$; cp data copy'
}

@test "a child that ends without closing before its parent syncs" {
	check 0 --input data -- perl -e '
		use IO::Handle;
		use POSIX;
		if (!fork) {
			open my $f, ">", "copy" or die;
			syswrite $f, "x" x 10000;
			POSIX::_exit(0);
		}
		wait;
		open my $f, "<", "data" or die;
		$f->sync or die for 1 .. 3'
}

@test "a program is found where it was typed" {
	printf '#!/bin/sh\ncp data copy\n' >saver
	chmod +x saver
	check 0 --input data -- ./saver
}

@test "TMPDIR may hold blanks, and be a symbolic link" {
	mkdir "a b"
	ln -s "$PWD/a b" link
	for TMPDIR in "$PWD/a b" "$PWD/link"; do
		export TMPDIR
		check 0 --input data -- cp data copy
	done
	[ -z "$(ls "a b")" ]
}

@test "in a process namespace of its own" {
	run timeout 100 unshare -pf --mount-proc \
		blkbox check --for 0s --amplify none --input data -- \
		sh -c 'cp data copy; mv copy other'
	echo "$output"
	[ "$status" = 0 ]
}

@test "SIGTERM while judging reports what was judged, as incomplete" {
	blkbox check --for 100s --amplify none --fs btrfs --input data -k all \
		-o out.bbx --json result.json -- cp data copy &
	pid=$!
	# The run is over when its recording is whole.
	until blkbox verify out.bbx; do
		kill -0 "$pid"
	done
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" = 3 ]
	jq -e '.exit_status == 3 and .verdict == "incomplete"' result.json
}

@test "a program that started from nothing has nothing to lose before" {
	check 0 --fs btrfs -- perl -e '
		use IO::Handle;
		open my $f, ">", "new" or die;
		syswrite $f, join("", map { chr(33 + $_ % 90) } 1 .. 65536)
			for 1 .. 40;
		$f->sync or die; close $f; rename "new", "file" or die;
		open my $d, "<", "." or die; $d->sync or die'
}
