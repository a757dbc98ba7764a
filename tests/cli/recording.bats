#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# show and verify, on a small recording with a record of each type.

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	mkdir seeds
	"$BLKBOX_BUILD/tests/tools/seed_recording" seeds
	# the first byte of a seed is the fuzzer's
	tail -c +2 seeds/file >whole.bbx
}

@test "verify: a closed recording with a gap is incomplete" {
	run blkbox verify --json v.json whole.bbx
	[ "$status" = 3 ]
	[[ $output == *"whole: closed properly"* ]]
	[[ $output == *"gaps 1: lost 1 events and 2 bytes"* ]]
	jq -e '.state == "closed" and .exit_status == 3 and .gaps == 1 and
		.events == 6 and .expected_states == 1' v.json
}

@test "verify: a cut recording says at which byte" {
	size=$(stat -c %s whole.bbx)
	head -c $((size - 5)) whole.bbx >cut.bbx
	run blkbox verify cut.bbx
	[ "$status" = 3 ]
	[[ $output == *"cut: whole up to byte "*" of $((size - 5))"* ]]
	run blkbox show cut.bbx
	[ "$status" = 3 ]
	[[ $output == *"the recording was cut off"* ]]
}

@test "verify: a changed byte is damage, with frame and place" {
	printf 'X' | dd of=whole.bbx bs=1 seek=400 conv=notrunc
	run blkbox verify --json v.json whole.bbx
	[ "$status" = 2 ]
	[[ $output =~ "is damaged: frame "[0-9]+" at byte "[0-9]+ ]]
	jq -e '.state == "damaged" and (.error | length > 0)' v.json
	run blkbox show whole.bbx
	[ "$status" = 2 ]
}

@test "verify: what is no recording is refused" {
	echo text >text
	run blkbox verify text
	[ "$status" = 2 ]
	run blkbox verify nonexistent
	[ "$status" = 2 ]
	[[ $output == *nonexistent* ]]
	run blkbox verify
	[ "$status" = 2 ]
	[[ $output == *"blkbox verify --help"* ]]
}

@test "show: every line of --json is an object with the promised members" {
	blkbox show --json whole.bbx >out || [ $? = 3 ]
	jq -es 'length == 10 and all(has("seq") and has("time_ns") and
		has("type") and has("dev"))' out
	jq -es '.[] | select(.type == "issue") | .sector == 0 and
		.sectors == 1 and .op == "write" and .flags == []' out
	jq -es '.[] | select(.type == "complete") | .issue == 1 and
		.op == "write" and .sectors == 1' out
}

@test "show: a name that is no text harms neither JSON nor terminal" {
	blkbox show --json --type file-op whole.bbx >out || [ $? = 3 ]
	jq -e '.path_hex == "61ff1b5b33316d"' out
	[ "$(LC_ALL=C grep -c '[^ -~]' out)" = 0 ]
	blkbox show whole.bbx >out || [ $? = 3 ]
	[ "$(LC_ALL=C grep -c '[^ -~]' out)" = 0 ]
}

@test "show: payload only on request" {
	run blkbox show whole.bbx
	[[ $output != *"68 65 6c 6c 6f"* ]]
	run blkbox show --data whole.bbx
	[[ $output == *"68 65 6c 6c 6f"*"hello"* ]]
	run blkbox show --json whole.bbx
	[[ $output != *data_hex* ]]
	blkbox show --json --data --type file-op whole.bbx >out || [ $? = 3 ]
	jq -e '.data_hex == "68656c6c6f"' out
}

@test "show: selection by type, number and device" {
	run blkbox show --json --type block --from 2 --to 3 whole.bbx
	[ "${#lines[@]}" = 2 ]
	run blkbox show --json --dev 7:0 --type issue --type mark whole.bbx
	[ "${#lines[@]}" = 1 ]
	run blkbox show --type nonsense whole.bbx
	[ "$status" = 2 ]
	run blkbox show --from x whole.bbx
	[ "$status" = 2 ]
	run blkbox show --dev 7 whole.bbx
	[ "$status" = 2 ]
}

@test "show: --head is the head and nothing else" {
	blkbox show --head whole.bbx | jq -e '.format == "blkbox recording"'
}

@test "show: a full output is an error" {
	run bash -c 'blkbox show whole.bbx >/dev/full'
	[ "$status" = 2 ]
	[[ $output == *"No space left"* ]]
}
