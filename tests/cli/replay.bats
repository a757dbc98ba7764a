#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# replay as typed: disks at chosen moments, with chosen writes lost, and what
# it refuses.
#
# The recording is of a bare disk of 64 KiB, all "0" before. Letters go to it a
# block at a time, past the cache, so that nothing but these writes is in it:
#
#    A to block 1, then a flush; mark "half way"; B to block 2; C to block 1.

setup_file() {
	if [ "$(id -u)" != 0 ]; then
		skip "needs root"
	fi
	if ! blkbox doctor >/dev/null; then
		skip "this machine cannot record (blkbox doctor)"
	fi
	cd "$BATS_FILE_TMPDIR" || return 1
	local loop
	tr '\0' 0 </dev/zero | head -c 65536 >disk
	cp disk before
	loop=$(losetup -f --show disk)
	cat >work <<-EOF
		put() {
			tr '\0' \$1 </dev/zero | head -c 4096 |
				dd of=$loop bs=4096 seek=\$2 oflag=direct \
					iflag=fullblock conv=notrunc\$3 \
					status=none
		}
		put A 1 ,fsync
		blkbox mark 'half way'
		put B 2
		blkbox mark twice
		put C 1
		blkbox mark twice
	EOF
	blkbox record --device "$loop" --base full -o x.bbx -- bash -e work &&
		blkbox record --device "$loop" -o bare.bbx -- true
	local status=$?
	losetup -d "$loop"
	return $status
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	X=$BATS_FILE_TMPDIR/x.bbx
	mkdir m
}

teardown() {
	umount "$BATS_TEST_TMPDIR/m" 2>/dev/null || true
}

# The number of the write of this letter.
write_of() {
	blkbox show --json --data --type issue "$X" | jq "select(.data_hex and
		(.data_hex | startswith(\"$(printf %s "$1" | od -An -tx1 |
			tr -d ' ')\"))) | .seq"
}

# The letters of an image's first four blocks; each block is of one letter.
letters() {
	local i
	[ "$(stat -c %s "$1")" = 65536 ]
	for i in 0 1 2 3; do
		dd if="$1" bs=4096 skip=$i count=1 status=none | tr -s '\0-\377'
	done
}

# Waits for a loop device, held by nobody, to let go of its disk.
freed() {
	local i
	for ((i = 0; i < 100; i++)); do
		grep -qs 'blkbox replay' \
			"/sys/block/${1#/dev/}/loop/backing_file" || return 0
		sleep 0.05
	done
	return 1
}

refused() {
	run blkbox replay "$@"
	echo "$output"
	[ "$status" = 2 ]
}

@test "replay --at: just after a write was issued it is there, not before" {
	local b
	b=$(write_of B)
	blkbox replay "$X" --at $((b - 1)) -o before
	blkbox replay "$X" --at "$b" -o after
	[ "$(letters before)" = 0A00 ]
	[ "$(letters after)" = 0AB0 ]
}

@test "replay --at 0 is the base" {
	blkbox replay "$X" --at 0 -o image
	cmp image "$BATS_FILE_TMPDIR/before"
}

@test "replay --at-mark: the disk when the mark was put" {
	blkbox replay "$X" --at-mark 'half way' -o image
	[ "$(letters image)" = 0A00 ]
}

@test "replay --at-mark: a mark put twice asks which, and an unknown one fails" {
	refused "$X" --at-mark twice -o image
	[[ $output == *"there are 2 marks 'twice'"*"--at"* ]]
	refused "$X" --at-mark never -o image
	[[ $output == *"mark 'never'"* ]]
	[ ! -e image ]
}

@test "replay --end is the device" {
	blkbox replay "$X" --end -o image
	cmp image "$BATS_FILE_TMPDIR/disk"
	[ "$(letters image)" = 0CB0 ]
}

@test "replay --drop loses what was pending, all of it or a part" {
	local b c
	b=$(write_of B) c=$(write_of C)
	blkbox replay "$X" --end --drop "$c" -o one
	[ "$(letters one)" = 0AB0 ]
	blkbox replay "$X" --end --drop "$b,$c" -o two
	[ "$(letters two)" = 0A00 ]
	# Block 2 begins at sector 16.
	blkbox replay "$X" --end --torn 512 --drop "$b:17" -o part
	cmp <(head -c $((8192 + 512)) part | tail -c 512 | tr -s B) \
		<(printf B)
	cmp <(head -c $((8192 + 1024)) part | tail -c 512 | tr -s 0) \
		<(printf 0)
}

@test "replay --drop refuses what a crash could not lose, and says why" {
	local a b c
	a=$(write_of A) b=$(write_of B) c=$(write_of C)
	refused "$X" --end --drop "$a" -o image
	[[ $output == *"cannot drop $a: event "*" made it durable"* ]]
	refused "$X" --at "$b" --drop "$c" -o image
	[[ $output == *"it was not issued yet"* ]]
	refused "$X" --end --drop $((c + 1)) -o image
	[[ $output == *"is not a write"* ]]
	refused "$X" --end --drop "$b:17" -o image
	[[ $output == *"--torn"* ]]
	refused "$X" --end --drop "$b:17x" -o image
	refused "$X" --end --drop "" -o image
	refused "$X" --end --crash-model prefix --drop "$b" -o image
	[ ! -e image ]
}

@test "replay --crash-model epoch: a flush spares what was issued before it" {
	local c
	c=$(write_of C)
	refused "$X" --end --crash-model epoch --drop "$(write_of A)" -o image
	blkbox replay "$X" --end --crash-model epoch --drop "$c" -o image
	[ "$(letters image)" = 0AB0 ]
}

@test "replay -o makes a file of the user's alone, and overwrites none" {
	blkbox replay "$X" --end -o image
	[ "$(stat -c %a image)" = 600 ]
	echo precious >image
	refused "$X" --end -o image
	[[ $output == *"--force"* ]]
	[ "$(cat image)" = precious ]
	blkbox replay "$X" --end --force -o image
	[ "$(letters image)" = 0CB0 ]
}

@test "replay --force leaves recordings and devices alone" {
	cp "$X" copy.bbx
	refused copy.bbx --end --force -o copy.bbx
	cmp copy.bbx "$X"
	refused "$X" --end --force -o /dev/null
	[[ $output == *"not a regular file"* ]]
	[ -c /dev/null ]
}

@test "replay --base: the disk as it was, where the recording has none" {
	run blkbox replay "$BATS_FILE_TMPDIR/bare.bbx" --end -o image
	echo "$output"
	[ "$status" = 3 ]
	[[ $output == *"--base FILE"* ]]
	blkbox replay "$BATS_FILE_TMPDIR/bare.bbx" --end -o whole \
		--base "$BATS_FILE_TMPDIR/disk"
	cmp whole "$BATS_FILE_TMPDIR/disk"
	refused "$BATS_FILE_TMPDIR/bare.bbx" --end -o another --base nowhere
	[[ $output == *nowhere* ]]
}

@test "replay of a recording that was cut says so and exits 3" {
	local a
	a=$(write_of A)
	cp "$X" cut.bbx
	truncate -s -10 cut.bbx
	run blkbox replay cut.bbx --end -o image
	echo "$output"
	[ "$status" = 3 ]
	[[ $output == *"was cut off"* ]]
	[ -s image ]
	# What is whole is whole.
	blkbox replay cut.bbx --at "$a" -o early
	[ "$(letters early)" = 0A00 ]
}

@test "replay: a moment outside of the recording is refused" {
	refused "$X" --at 100000000 -o image
	[[ $output == *"there is no event 100000000"* ]]
	refused "$X" --at -1 -o image
	refused "$X" --at half -o image
	[ ! -e image ]
}

@test "replay: one moment and one place are needed" {
	refused "$X" -o image
	[[ $output == *"--at"*"Try 'blkbox replay --help'"* ]]
	refused "$X" --at 1 --end -o image
	refused "$X" --end
	[[ $output == *"--mount DIR"* ]]
	refused --end -o image
	refused "$X" "$X" --end -o image
	refused nonexistent --end -o image
	[[ $output == *nonexistent* ]]
	[ ! -e image ]
}

@test "replay --mount: the files as they were, until the unmount" {
	local loop
	head -c 20000 /dev/urandom >data
	blkbox check --amplify none -k 0 --for 1ms --input data -o fs.bbx -- \
		sh -c 'cp data copy; sync; blkbox mark copied; rm copy; sync'
	blkbox replay fs.bbx --at-mark copied --mount m
	cmp m/copy data
	loop=$(awk -v m="$PWD/m" '$2 == m { print $1 }' /proc/mounts)
	umount m
	freed "$loop"
	blkbox replay fs.bbx --end --mount m
	[ ! -e m/copy ]
	[ -e m/data ]
	umount m
}

@test "replay --mount where it cannot be leaves nothing behind" {
	local loop
	refused "$X" --end --mount m
	[[ $output == *file\ system* ]]
	blkbox check --amplify none -k 0 --for 1ms -o fs.bbx -- true
	losetup -a | grep 'blkbox replay' >had || true
	refused fs.bbx --end --mount nowhere
	[[ $output == *nowhere* ]]
	for loop in $(losetup -a | grep 'blkbox replay' | grep -vFf had |
		cut -d: -f1); do
		freed "$loop"
	done
}
