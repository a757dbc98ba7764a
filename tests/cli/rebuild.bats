#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Rebuilt at the end of its recording, a disk is the device, byte for byte:
# `blkbox replay --end` of what `blkbox record` kept of real programs, from
# before the mount to after the unmount.

setup_file() {
	if [ "$(id -u)" != 0 ]; then
		skip "needs root"
	fi
	if ! blkbox doctor >/dev/null; then
		skip "this machine cannot record (blkbox doctor)"
	fi
	export CASES
	CASES=$(cd "$BATS_TEST_DIRNAME/../cases" && pwd)
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	export D=$PWD
	mkdir m
	LOOP=
	awk 'BEGIN { for (i = 0; i < 4096; i++)
		printf "%08d the quick brown fox\n", (i * 7919) % 100000000 }' |
		head -c 65536 >data
	programs
}

teardown() {
	cd /
	umount "$D/m" 2>/dev/null || true
	[ -z "$LOOP" ] || losetup -d "$LOOP"
}

# The programs, each a function to be run in the file system.
programs() {
	cat >programs.sh <<-'EOF'
		set -e
		sort_onto_itself() {
			cp "$D/data" .
			sort -o data data
		}
		gzip_both_ways() {
			cp "$D/data" one
			cp "$D/data" two
			gzip one
			gzip --synchronous two
		}
		perl_in_place() {
			cp "$D/data" .
			perl -i -pe s/q/Q/ data
		}
		sqlite() {
			local mode
			for mode in delete wal; do
				sqlite3 $mode.db "pragma journal_mode=$mode;
					create table t(x);
					insert into t values(randomblob(30000));
					insert into t values(randomblob(30000));
					delete from t where rowid = 1;" >/dev/null
			done
		}
		make_incremental() {
			cp -r "$CASES/make-incremental/input" make
			(cd make && make && echo >>edited.c && make) >/dev/null
		}
		copy_and_remove_trees() {
			cp -r /usr/lib/x86_64-linux-gnu/perl-base tree
			cp -r tree again
			rm -r tree
			sync
			rm -r again/[a-m]*
		}
		truncate_and_punch() {
			cp "$D/data" .
			truncate -s 5000 data
			truncate -s 500000 data
			fallocate -l 300000 reserved
			fallocate -p -o 4096 -l 8192 reserved
			sync
			truncate -s 0 reserved
		}
	EOF
}

# equal FS SIZE PROGRAM...: makes the file system, records the programs there,
# and compares.
equal() {
	local fs=$1 size=$2 program
	shift 2
	command -v "mkfs.$fs" >/dev/null || skip "no mkfs.$fs"
	truncate -s "$size" img
	"mkfs.$fs" -q img
	LOOP=$(losetup -f --show img)
	export LOOP
	{
		cat programs.sh
		# shellcheck disable=SC2016
		echo 'mount "$LOOP" "$D/m"; cd "$D/m"'
		for program; do
			echo "mkdir $program; cd $program; $program; cd .."
		done
		# shellcheck disable=SC2016
		echo 'cd /; umount "$D/m"'
	} >work
	# In a mount namespace of its own: who copies ours meanwhile (any other
	# blkbox) would keep the file system mounted after the unmount.
	run blkbox record --device "$LOOP" --mount m --base full -o out.bbx \
		-- unshare -m bash work
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"exited with status 0"* ]]
	blkbox replay out.bbx --end -o image
	cmp image "$LOOP"
}

@test "sort -o: the disk rebuilt at the end is the device" {
	equal ext4 64M sort_onto_itself
}

@test "gzip: the disk rebuilt at the end is the device" {
	equal ext4 64M gzip_both_ways
}

@test "perl -i: the disk rebuilt at the end is the device" {
	equal ext4 64M perl_in_place
}

@test "SQLite: the disk rebuilt at the end is the device" {
	command -v sqlite3 >/dev/null || skip "no sqlite3"
	equal ext4 64M sqlite
}

@test "make: the disk rebuilt at the end is the device" {
	equal ext4 64M make_incremental
}

@test "cp -r and rm -r: the disk rebuilt at the end is the device" {
	equal ext4 64M copy_and_remove_trees
}

@test "truncation and holes: the disk rebuilt at the end is the device" {
	equal ext4 64M truncate_and_punch
}

@test "all of them on xfs: the disk rebuilt at the end is the device" {
	equal xfs 320M sort_onto_itself gzip_both_ways perl_in_place sqlite \
		make_incremental copy_and_remove_trees truncate_and_punch
}

@test "all of them on btrfs: the disk rebuilt at the end is the device" {
	equal btrfs 160M sort_onto_itself gzip_both_ways perl_in_place sqlite \
		make_incremental copy_and_remove_trees truncate_and_punch
}

@test "a write left out of the recording is seen by the comparison" {
	local seq
	equal ext4 64M sort_onto_itself
	# The last write to where the file's data went, gone.
	seq=$(blkbox show --json --type issue out.bbx | jq -s '
		[.[] | select(.op == "write" and
			any(.pages[]?; .flags == []))] | last | .seq')
	blkbox replay out.bbx --end --crash-model device --drop "$seq" \
		--ignore-flushes -o lossy
	run cmp lossy "$LOOP"
	[ "$status" = 1 ]
}
