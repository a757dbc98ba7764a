#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What check says of real programs, typed as a user would.

setup_file() {
	if [ "$(id -u)" != 0 ]; then
		skip "needs root"
	fi
	export CASES="$BATS_TEST_DIRNAME/../cases"
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	awk 'BEGIN { for (i = 0; i < 4096; i++)
		printf "%08d the quick brown fox\n", (i * 7919) % 100000000 }' |
		head -c 65536 >data
}

# check WANTED-STATUS OPTION...: runs check, keeps result.json
check() {
	local want=$1
	shift
	run blkbox check --json result.json -o out.bbx --force "$@"
	echo "$output"
	[ "$status" = "$want" ]
	[ "$(jq .exit_status result.json)" = "$want" ]
}

# What every inconsistent result must hold.
finding() {
	jq -e '.verdict == "inconsistent" and (.findings | length > 0)' \
		result.json
}

@test "sort -o onto its input is inconsistent, by about the file's size" {
	check 1 --input data -- sort -o data data
	finding
	jq -e '.findings[0] | .kind == "distance" and
		.distance_bytes > 60000 and .distance_bytes <= 65536' result.json
	[[ $output == *"blkbox replay"* ]]
}

@test "gzip is inconsistent on ext4" {
	check 1 --input data -- gzip data
	finding
}

@test "gzip is inconsistent on xfs" {
	check 1 --fs xfs --input data -- gzip data
	finding
}

@test "gzip is inconsistent on btrfs" {
	check 1 --fs btrfs --input data -- gzip data
	finding
}

@test "gzip --synchronous is consistent" {
	check 0 --input data -- gzip --synchronous data
	jq -e '.covered_k >= 1 and .judged > 10' result.json
}

# perl -i (since 5.28) writes a new file and renames it over the old one. ext4
# sends the data out at such a rename, unless it is told not to. Whether the
# commit of the rename waits for it is another matter: with dioread_lock it
# does; by default (dioread_nolock) the blocks are zeroes to a reader until an
# update after the data's arrival has been committed, so that on a busy machine
# perl -i is seen to lose the file there, too.
@test "perl -i is inconsistent on xfs" {
	check 1 --fs xfs --input data -- perl -i -pe 's/q/Q/' data
	finding
}

@test "perl -i is inconsistent on ext4 without auto_da_alloc" {
	check 1 --mount-options noauto_da_alloc --input data -- \
		perl -i -pe 's/q/Q/' data
	finding
	jq -e '.findings[0].distance_bytes == 65536' result.json
}

@test "perl -i is consistent on ext4 that waits for what it flushed" {
	check 0 --mount-options dioread_lock --input data -- \
		perl -i -pe 's/q/Q/' data
}

@test "an incremental make is inconsistent: an object is empty or partial" {
	check 1 --case "$CASES/make-incremental"
	finding
	jq -e '[.findings[].files[] | select(.path == "edited.o" or
		.path == "prog")] | length > 0' result.json
}

@test "the Ted editor's save is inconsistent" {
	check 1 --case "$CASES/ted-save"
	finding
}

@test "write, fsync, rename, fsync directory is consistent on ext4" {
	check 0 --case "$CASES/safe-save"
}

@test "write, fsync, rename, fsync directory is consistent on xfs" {
	check 0 --fs xfs --case "$CASES/safe-save"
}

@test "write, fsync, rename, fsync directory is consistent on btrfs" {
	check 0 --fs btrfs --case "$CASES/safe-save"
}

@test "SQLite with a rollback journal passes its own check at every site" {
	check 0 --case "$CASES/sqlite-rollback"
}

@test "SQLite with a write-ahead log passes its own check at every site" {
	check 0 --case "$CASES/sqlite-wal"
}

@test "SQLite with synchronous=OFF fails its own check at some site" {
	check 1 --case "$CASES/sqlite-off"
	jq -e '[.findings[] | select(.kind == "check")] | length > 0' \
		result.json
}

@test "what was fsynced is there at every site" {
	check 0 --case "$CASES/fsync-durable"
}

@test "a device that lies about flushes is caught" {
	check 0 --case "$CASES/fsync-durable"
	run blkbox explore --ignore-flushes --json lie.json out.bbx
	echo "$output"
	[ "$status" = 1 ]
	jq -e '[.findings[] | select(.kind == "durability")] | length > 0' \
		lie.json
}

@test "the same verdict, run twice" {
	check 1 --input data -- sort -o data data
	jq -S '.findings[0] | {kind, distance_bytes, run}' result.json >first
	check 1 --input data -- sort -o data data
	jq -S '.findings[0] | {kind, distance_bytes, run}' result.json >second
	diff first second
}

@test "the command a finding names puts this very site in the user's hands" {
	check 1 --input data -- sort -o data data
	command=$(grep -o 'blkbox replay .*' <<<"$output" | head -n 1)
	[ -n "$command" ]
	mkdir site
	command=${command/--mount DIR/--mount site}
	run bash -c "$command"
	echo "$output"
	[ "$status" = 0 ]
	size=$(stat -c %s site/data)
	umount site
	[ "$size" != 65536 ]
}

@test "a program that fails is not judged" {
	run blkbox check --input data -- sh -c 'exit 3'
	echo "$output"
	[ "$status" = 2 ]
	[[ $output == *"status 3"* ]]
}

@test "states rebuilt from the trace lead to the same verdicts" {
	check 1 --states trace --input data -- gzip data
	check 0 --states trace --input data -- gzip --synchronous data
}

@test "wrong usage is said, with where to look" {
	run blkbox check --fs fat -- true
	[ "$status" = 2 ]
	[[ $output == *"ext4, xfs and btrfs"* ]]
	run blkbox check
	[ "$status" = 2 ]
	[[ $output == *"--help"* ]]
}

@test "the JSON on standard output is alone there" {
	blkbox check --json - --input data -- sort -o data data >out.json ||
		[ $? = 1 ]
	jq -e .verdict out.json
}
