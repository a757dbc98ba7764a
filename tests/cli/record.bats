#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What record promises: the stream rebuilds the disk, and what is not in it is
# counted.

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
	LOOP=
}

teardown() {
	cd /
	fsfreeze -u "$D/m" 2>/dev/null || true
	umount "$D/m" 2>/dev/null || true
	[ -z "$LOOP" ] || losetup -d "$LOOP"
}

# disk SIZE: a disk over ./img, as $LOOP.
disk() {
	truncate -s "$1" img
	LOOP=$(losetup -f --show img)
	export LOOP
}

# Waits until the recorder in the background says that it records.
recording() {
	until grep -q '^recording' log 2>/dev/null; do :; done
}

# Sets the variables that tally prints.
tally_of() {
	tally "$1" >tally.out
	cat tally.out
	# shellcheck disable=SC1091
	source ./tally.out
}

rebuilds() {
	rebuild out.bbx rebuilt
	cmp rebuilt img
}

# Writes of every kind, between a mount and an unmount of its own.
all_kinds() {
	cat >work <<-'EOS'
		set -e
		mount "$LOOP" "$D/m"
		cd "$D/m"
		cp -r /usr/share/perl-base . 2>/dev/null ||
			cp -r /usr/lib/x86_64-linux-gnu/perl-base .
		cp "$(command -v bash)" big
		head -c 20000000 /dev/urandom >random
		dd if=/dev/urandom of=direct bs=64k count=40 oflag=direct \
			status=none
		dd if=/dev/urandom of=small bs=4096 count=100 oflag=dsync \
			status=none
		fallocate -p -o 65536 -l 262144 direct
		sync
		rm -rf perl-base random
		fstrim . || true
		truncate -s 1000 big
		cd /
		umount "$D/m"
	EOS
}

rebuilds_fs() {
	command -v "mkfs.$1" >/dev/null || skip "no mkfs.$1"
	disk "$2"
	"mkfs.$1" -q "$3" img
	losetup -d "$LOOP"
	LOOP=$(losetup -f --show img)
	all_kinds
	# In a mount namespace of its own: who copies ours meanwhile (any other
	# blkbox) would keep the file system mounted after the unmount.
	blkbox record --device "$LOOP" --mount m --base full -o out.bbx \
		-- unshare -m bash work
	blkbox verify out.bbx
	rebuilds
	tally_of out.bbx
	# shellcheck disable=SC2154
	[ "$stray_completes" = 0 ] && [ "$missing" = 0 ] &&
		[ "$issues" = "$completes" ] && [ "$flushes" -gt 0 ]
}

@test "an ext4 disk is rebuilt from its recording byte for byte" {
	rebuilds_fs ext4 200M -F
}

@test "an xfs disk is rebuilt from its recording byte for byte" {
	rebuilds_fs xfs 320M -f
}

@test "a btrfs disk is rebuilt from its recording byte for byte" {
	rebuilds_fs btrfs 320M -f
}

@test "a base copied while the disk is written to, with the stream, is the disk" {
	disk 200M
	mkfs.ext4 -q -F "$LOOP"
	mount "$LOOP" m
	head -c 30000000 /dev/urandom >m/old
	cat >writer <<-'EOS'
		while [ ! -e "$D/enough" ]; do
			i=$(((i + 1) % 20))
			head -c 300000 /dev/urandom >"$D/m/f$i"
			sync -f "$D/m"
		done
		touch "$D/ended"
	EOS
	bash writer 3>&- &
	until [ -e m/f5 ]; do :; done
	blkbox record --mount m --base full -o out.bbx --ring 256M -- \
		bash -c 'touch enough
			until [ -e ended ]; do :; done
			sync -f m; fsfreeze -f m'
	fsfreeze -u m
	rebuild out.bbx rebuilt
	# What came after the freeze is not in the recording.
	umount m
	e2fsck -fy rebuilt >/dev/null || [ $? = 1 ]
	mount -o loop,ro rebuilt m
	(cd m && md5sum f* old) >sums
	umount m
	mount "$LOOP" m
	(cd m && md5sum -c --quiet "$D/sums")
}

@test "each data page names its file, metadata its device" {
	disk 64M
	mkfs.ext4 -q -b 4096 -F "$LOOP"
	mount "$LOOP" m
	blkbox record --mount m -o out.bbx -- bash -c '
		head -c 100000 /dev/urandom >m/file; sync; stat -c %i m/file >ino'
	blkbox show --json out.bbx >json
	# 100000 bytes are 25 pages.
	[ "$(jq -s "[.[] | select(.type == \"issue\") | .pages[]? |
		select(.ino == $(cat ino)) | .bytes] | add" json)" = 102400 ]
	[ "$(jq -s "[.[] | select(.type == \"issue\") | .pages[]? |
		select(.ino == $(cat ino)) | .off] | min" json)" = 0 ]
	jq -e -s 'any(.[] | select(.type == "issue") | .pages[]?;
		.flags | index("blockdev"))' json
}

@test "data that does not fit the ring is counted to the byte" {
	disk 64M
	run blkbox record --device "$LOOP" -o out.bbx --ring 64K -- \
		dd if=/dev/urandom of="$LOOP" bs=1M count=20 oflag=direct \
		status=none
	echo "$output"
	[ "$status" = 3 ]
	[[ ${lines[-1]} == *LOST*--ring*"would have avoided it"* ]]
	tally_of out.bbx
	# shellcheck disable=SC2154
	[ "$issue_bytes" = 20971520 ] &&
		[ $((data_bytes + gap_bytes)) = 20971520 ] && [ "$missing" = 0 ]
}

@test "the ring size that a lossy recording names loses nothing" {
	disk 64M
	local write=(dd if=/dev/urandom "of=$LOOP" bs=1M count=20 oflag=direct)
	run blkbox record --device "$LOOP" -o out.bbx --ring 64K -- \
		"${write[@]}"
	[ "$status" = 3 ]
	local ring=${output##*--ring }
	blkbox record --device "$LOOP" -o out2.bbx --ring "${ring%% *}" -- \
		"${write[@]}"
}

# The recorder is CMD's parent: stopped, it drains nothing.
lose_events() {
	disk 64M
	cat >work <<-EOS
		kill -STOP \$PPID
		dd if=/dev/urandom of="$LOOP" bs=4096 count=$1 oflag=direct \
			status=none
		kill -CONT \$PPID
	EOS
	run blkbox record --device "$LOOP" -o out.bbx --ring 64K -- bash work
	echo "$output"
	[ "$status" = 3 ]
	blkbox verify out.bbx || [ $? = 3 ]
	tally_of out.bbx
	[ $((data_bytes + gap_bytes)) = $(($1 * 4096)) ]
	[ "$missing" = 0 ]
	[ "$gap_events" -gt "$1" ]
}

@test "events that do not fit the ring are counted one by one" {
	lose_events 5000
}

@test "also when the notices of lost events are lost" {
	lose_events 15000
}

@test "a recorder that is killed leaves a whole prefix" {
	disk 64M
	run blkbox record --device "$LOOP" -o out.bbx -- bash -c "
		dd if=/dev/urandom of=$LOOP bs=1M count=20 oflag=direct
		blkbox mark done
		kill -KILL \$PPID"
	run blkbox verify out.bbx
	echo "$output"
	[ "$status" = 3 ]
	tally out.bbx
}

@test "SIGTERM ends a recording properly" {
	disk 16M
	blkbox record --device "$LOOP" -o out.bbx 3>&- 2>log &
	local recorder=$!
	recording
	kill -TERM $recorder
	wait $recorder
	blkbox verify out.bbx
}

@test "--for ends a recording properly" {
	disk 16M
	blkbox record --device "$LOOP" --for 200ms -o out.bbx
	blkbox verify out.bbx
}

@test "a mark stands between what happened before and after it" {
	disk 16M
	blkbox record --device "$LOOP" -o out.bbx -- bash -c "
		dd if=/dev/urandom of=$LOOP bs=4096 count=1 oflag=direct
		blkbox mark 'half way: there'
		dd if=/dev/urandom of=$LOOP bs=4096 count=1 oflag=direct"
	[ "$(blkbox show --json out.bbx | jq -r '
		if .type == "issue" then "issue"
		elif .type == "mark" then .text else empty end' | tr '\n' ,)" = \
		"issue,half way: there,issue," ]
}

@test "CMD's file operations are recorded, other processes' are not" {
	disk 64M
	mkfs.ext4 -q -F "$LOOP"
	mount "$LOOP" m
	mkfifo go2
	blkbox record -v --mount m -o out.bbx -- bash -c '
		mkfifo go; (read -r _ <go; : >m/grandchild) & echo >go; wait
		read -r _ <go2; : >m/child' 3>&- 2>log &
	local recorder=$!
	recording
	: >m/stranger
	echo >go2
	wait $recorder
	blkbox show --json out.bbx | jq -r 'select(.type == "file-op") |
		.path // empty' >paths
	cat paths
	grep -q grandchild paths
	grep -q 'm/child' paths
	! grep -q stranger paths
}

@test "--pid follows a process that was running already" {
	disk 64M
	mkfs.ext4 -q -F "$LOOP"
	mount "$LOOP" m
	mkfifo go
	bash -c 'read -r _ <go; bash -c ": >m/by-child"; : >m/by-pid' 3>&- &
	local pid=$!
	blkbox record --mount m --pid $pid -o out.bbx 3>&- 2>log &
	local recorder=$!
	recording
	: >m/by-stranger
	echo >go
	wait $pid
	kill -TERM $recorder
	wait $recorder
	blkbox show --json out.bbx | jq -r 'select(.type == "file-op") |
		.path // empty' >paths
	cat paths
	grep -q by-child paths
	grep -q by-pid paths
	! grep -q by-stranger paths
}

@test "recording onto the disk that is recorded is refused" {
	disk 64M
	mkfs.ext4 -q -F "$LOOP"
	mount "$LOOP" m
	run blkbox record --mount m -o m/out.bbx
	[ "$status" = 2 ]
	[[ $output == *"would lie on"* ]]
	[ ! -e m/out.bbx ]
}

@test "a file that is there is not overwritten unless asked" {
	disk 16M
	echo precious >out.bbx
	run blkbox record --device "$LOOP" -o out.bbx -- true
	[ "$status" = 2 ]
	[ "$(cat out.bbx)" = precious ]
	blkbox record --device "$LOOP" -o out.bbx --force -- true
	[ "$(stat -c %a out.bbx)" = 600 ]
}

@test "CMD's exit status is reported" {
	disk 16M
	run blkbox record --device "$LOOP" -o out.bbx --json s.json -- \
		sh -c 'exit 7'
	[ "$status" = 0 ]
	[[ $output == *"exited with status 7"* ]]
	[ "$(jq .command_status s.json)" = 7 ]
}

@test "HEAD tells the kernel's own values, the disk and how hooks are attached" {
	disk 16M
	blkbox record --device "$LOOP" -o out.bbx -- true
	tally --head out.bbx >head.json
	cat head.json
	jq -e '.request_ops.REQ_OP_WRITE == 1 and
		.request_flags.__REQ_FUA > 8 and
		(.devices[0].sectors == 32768) and
		([.hooks[] | select(.event == "block_rq_issue")][0]
			.attached_by | test("tp"))' head.json
}

@test "wrong use says so and exits 2" {
	for args in "" "--device /dev/null -o x" "--device /nonexistent -o x" \
		"--bogus" "--mount /proc -o x"; do
		# shellcheck disable=SC2086
		run blkbox record $args
		echo "$args: $output"
		[ "$status" = 2 ]
	done
	run blkbox record --help
	[ "$status" = 0 ]
}

@test "doctor says what works, in JSON too" {
	blkbox doctor --json d.json
	jq -e '.can_record and ([.examinations[] | select(.required) | .ok] |
		all)' d.json
}
