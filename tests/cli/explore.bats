#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# explore as typed: its bounds, models and checkers, and what it tells others
# by JSON, JUnit and exit status.

setup_file() {
	if [ "$(id -u)" != 0 ]; then
		skip "needs root"
	fi
	if ! blkbox doctor >/dev/null; then
		skip "this machine cannot record (blkbox doctor)"
	fi
	cd "$BATS_FILE_TMPDIR" || return 1
	base64 /dev/urandom | head -c 16384 >data
	local only=(--amplify none -k 0 --for 1ms --input data)
	blkbox check "${only[@]}" -o bad.bbx -- gzip data || [ $? = 1 ]
	# Marks tell a checker how far the program was.
	blkbox check "${only[@]}" -o good.bbx -- sh -c '
		gzip -k --synchronous data; blkbox mark zipped; sync; rm data;
		sync'
	# Twice as much, so that nothing of the others comes near it.
	cat data data >data2
	blkbox check "${only[@]}" --input data2 -o other.bbx -- mkdir d
	truncate -s 16M disk
	local loop
	loop=$(losetup -f --show disk)
	blkbox record --device "$loop" -o bare.bbx -- true
	losetup -d "$loop"
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	BAD=$BATS_FILE_TMPDIR/bad.bbx
	GOOD=$BATS_FILE_TMPDIR/good.bbx
}

# explore WANTED-STATUS ARGUMENT...: keeps result.json
explore() {
	local want=$1
	shift
	run blkbox explore --json result.json "$@"
	echo "$output"
	[ "$status" = "$want" ]
	[ "$(jq .exit_status result.json)" = "$want" ]
}

refused() {
	run blkbox explore "$@"
	echo "$output"
	[ "$status" = 2 ]
}

result() {
	jq "$1" result.json
}

@test "explore: exit status and verdict go together" {
	explore 1 "$BAD"
	[ "$(result .verdict)" = '"inconsistent"' ]
	explore 0 "$GOOD"
	[ "$(result .verdict)" = '"consistent"' ]
	explore 3 --max-sites 2 "$GOOD"
	[ "$(result .verdict)" = '"incomplete"' ]
	refused nonexistent
	[[ $output == *nonexistent* ]]
}

@test "explore: what it found stands, however little was looked at" {
	explore 1 --max-sites 30 -k all "$BAD"
	jq -e '.incomplete_why | type == "string"' result.json
}

@test "explore -k: the bound that was covered is named, and wider finds more" {
	local k sites=0
	for k in 0 1 2; do
		explore 0 -k "$k" "$GOOD"
		[ "$(result .covered_k)" = "$k" ]
		[ "$(result .sites)" -gt "$sites" ]
		sites=$(result .sites)
	done
	explore 0 -k all "$GOOD"
	[ "$(result .covered_all)" = true ]
	[ "$(result .covered_k)" -ge 2 ]
	[ "$(result .sites)" -ge "$sites" ]
}

@test "explore -k and -j: what is no number of theirs is refused" {
	local wrong
	for wrong in "-k -1" "-k x" "-k 1x" "-j 0" "-j -1" "--for 0" \
		"--for soon" "--torn 0" "--torn 500" "--threshold 0" \
		"--max-sites 0" "--crash-model fancy" "--discard maybe" \
		"--states none" "--dev 7" "--check-timeout 0"; do
		# shellcheck disable=SC2086
		refused $wrong "$GOOD"
		[[ $output == *"Try 'blkbox explore --help'"* ]]
	done
}

@test "explore: one recording, and standard output once" {
	refused
	refused "$GOOD" "$BAD"
	refused --json - --junit - "$GOOD"
	[[ $output == *stdout* ]]
}

@test "explore --for: without a finding, time that was too short is exit 3" {
	explore 3 --for 1ms "$GOOD"
	jq -e '.verdict == "incomplete" and
		(.incomplete_why | test("time was up"))' result.json
	explore 0 --for 60s "$GOOD"
}

@test "explore --crash-model: prefix loses nothing" {
	explore 0 -k all --crash-model prefix "$GOOD"
	[ "$(result .covered_k)" = 0 ]
	[ "$(result .covered_all)" = true ]
	explore 1 -k all --crash-model prefix "$BAD"
	[ "$(result '[.findings[].dropped[]] | length')" = 0 ]
}

@test "explore --crash-model: epoch's disks are among device's" {
	explore 1 -k 1 "$BAD"
	local sites
	sites=$(result .sites)
	explore 1 -k 1 --crash-model epoch "$BAD"
	[ "$(result .sites)" -le "$sites" ]
	[ "$(result .sites)" -gt 10 ]
}

@test "explore --torn: parts of writes are lost, too" {
	explore 0 -k 1 "$GOOD"
	local sites
	sites=$(result .sites)
	explore 0 -k 1 --torn 4096 "$GOOD"
	[ "$(result .sites)" -gt "$sites" ]
}

@test "explore --check: passing at each site is consistent" {
	explore 0 -k 1 --check 'test -s data || gzip -t data.gz' "$GOOD"
	[ "$(result .checked)" = true ]
}

@test "explore --check: failing at one is a finding, with what it said" {
	explore 1 -k 0 --check 'test -e data || { echo no data here; false; }' \
		"$GOOD"
	jq -e '.findings[0].kind == "check" and
		(.findings[0].detail | test("exit status 1(.|\n)*no data here"))
		' result.json
}

@test "explore --check: a checker that cannot run judges nothing" {
	refused -k 0 --check ./nowhere "$GOOD"
	[[ $output == *"could not be run"*"./nowhere: not found"* ]]
}

@test "explore --check: it knows where and when it is, and which marks were put" {
	cat >checker <<-EOF
		#!/bin/sh
		[ -d "\$BLKBOX_ROOT" ] && [ "\$BLKBOX_CRASH_POINT" -gt 0 ] || exit 1
		[ "\$PWD" = "\$BLKBOX_ROOT" ] || exit 2
		[ "\${BLKBOX_DROPPED+set}" = set ] || exit 3
		# One a line.
		case \$(printf %s "\$BLKBOX_MARKS" | tr '\n' ,) in
		'') echo none ;;
		zipped,) echo zipped ;;
		*) exit 4 ;;
		esac >>$PWD/seen
	EOF
	chmod +x checker
	explore 0 -k 0 -j 1 --check "$PWD/checker" "$GOOD"
	[ "$(sort -u seen | tr '\n' ,)" = none,zipped, ]
}

@test "explore --check-timeout: a checker that hangs is ended, and said" {
	explore 1 -k 0 --max-sites 2 --check-timeout 200ms \
		--check 'exec sleep 1000' "$GOOD"
	jq -e '.findings[0].detail | test("did not end in time")' result.json
}

@test "explore --check leaves its file system as it was for the next site" {
	explore 0 -k 0 -j 1 --check 'test ! -e litter && : >litter && sync' \
		"$GOOD"
	[ "$(result .judged)" -gt 5 ]
}

@test "explore --expected: the states of another run" {
	explore 0 --expected "$GOOD" "$GOOD"
	explore 1 --expected "$BAD" "$BAD"
	explore 1 -k 0 --expected "$BATS_FILE_TMPDIR/other.bbx" "$GOOD"
	[ "$(result '.findings[0].distance_bytes')" -gt 10000 ]
	refused --expected nowhere "$GOOD"
	[[ $output == *nowhere* ]]
}

@test "explore --threshold: less than that is not reported" {
	explore 0 -k 1 --threshold 1000000 "$BAD"
	[ "$(result .max_distance_bytes)" -gt 10000 ]
}

@test "explore --states: stop and trace agree on the verdicts" {
	local states
	for states in stop trace; do
		explore 1 --states "$states" "$BAD"
		explore 0 --states "$states" "$GOOD"
	done
}

@test "explore: a recording without a base cannot be explored, and says so" {
	refused "$BATS_FILE_TMPDIR/bare.bbx"
	[[ $output == *"--base FILE"* ]]
}

@test "explore: a recording that was cut is incomplete, or inconsistent" {
	local whole
	cp "$GOOD" cut.bbx
	truncate -s -10 cut.bbx
	explore 3 cut.bbx
	[[ $(result .incomplete_why) == *"cut off"* ]]
	cp "$BAD" cut.bbx
	truncate -s -10 cut.bbx
	explore 1 cut.bbx
	# So much gone that no disk can be rebuilt from it.
	whole=$(stat -c %s "$GOOD")
	head -c $((whole / 10)) "$GOOD" >cut.bbx
	run blkbox explore cut.bbx
	echo "$output"
	[ "$status" = 2 ] || [ "$status" = 3 ]
}

@test "explore: a damaged recording is refused" {
	cp "$GOOD" damaged.bbx
	printf X | dd of=damaged.bbx bs=1 seek=3000 conv=notrunc status=none
	refused damaged.bbx
	[[ $output == *damaged* ]]
}

# The contract: members are added, never changed.
contract() {
	jq -e '
		def count: type == "number" and . >= 0 and floor == .;
		(.version == 1) and
		(.verdict | IN("consistent", "inconsistent", "incomplete")) and
		(.exit_status | IN(0, 1, 3)) and
		(.covered_k | . == null or count) and
		(.crash_points | count) and (.sites | count) and
		(.distinct | count) and (.judged | count) and
		(.seconds | type == "number" and . > 0) and
		(.judged <= .distinct) and (.distinct <= .sites) and
		(.findings | type == "array") and
		all(.findings[];
			(.site | test("^p[0-9]+")) and
			(.kind | IN("distance", "durability", "unmountable",
				"kernel-warning", "check")) and
			(.crash_point | count) and
			(.dropped | type == "array" and all(count)) and
			(.distance_bytes | count) and
			has("expected") and
			(.expected | type | IN("string", "null")) and
			(.files | type == "array") and
			all(.files[]; (.path | type == "string") and
				(.fate | type == "string") and
				(.words | type == "string")) and
			has("run") and
			(.run | IN("plain", "sync", "commit", null)))' \
		"$1" >/dev/null
}

@test "explore --json: every promised member, of the right type" {
	explore 1 "$BAD"
	contract result.json
	[ "$(result '.findings | length')" -gt 0 ]
	[ "$(result '[.findings[] | select(.files | length > 0)] | length')" \
		-gt 0 ]
	explore 0 "$GOOD"
	contract result.json
	explore 3 --max-sites 1 "$GOOD"
	contract result.json
}

@test "check --json: the same contract, and each finding names its run" {
	run blkbox check --json result.json -k 0 --for 1ms \
		--input "$BATS_FILE_TMPDIR/data" -o out.bbx -- \
		sort -o data data
	[ "$status" = 1 ]
	contract result.json
	jq -e '[.findings[].run] | unique | . != [] and
		(. - ["plain", "sync", "commit"] == [])' result.json
}

@test "explore --json -: nothing else is on standard output" {
	blkbox explore --json - "$BAD" >out 2>err || [ $? = 1 ]
	contract out
	blkbox explore --json - "$GOOD" >out 2>err
	contract out
}

@test "explore --json to where nothing can be written is exit 2" {
	refused --json nowhere/result.json "$GOOD"
	[[ $output == *nowhere/result.json* ]]
}

@test "explore --junit: well-formed, with the verdict as JUnit has it" {
	command -v python3 >/dev/null || skip "no python3"
	cat >read.py <<-'EOF'
		import sys, xml.dom.minidom
		d = xml.dom.minidom.parse(sys.argv[1])
		s = d.getElementsByTagName("testsuite")[0]
		c = d.getElementsByTagName("testcase")
		kinds = [e.tagName for e in c[0].childNodes
			 if e.nodeType == e.ELEMENT_NODE]
		print(len(c), s.getAttribute("failures"),
		      s.getAttribute("errors"), *kinds)
	EOF
	blkbox explore --junit bad.xml "$BAD" || [ $? = 1 ]
	[ "$(python3 read.py bad.xml)" = "1 1 0 failure" ]
	blkbox explore --junit good.xml "$GOOD"
	[ "$(python3 read.py good.xml)" = "1 0 0 system-out" ]
	blkbox explore --max-sites 1 --junit cut.xml "$GOOD" || [ $? = 3 ]
	[ "$(python3 read.py cut.xml)" = "1 0 1 error" ]
}

@test "explore --junit: names that XML cannot hold do it no harm" {
	command -v python3 >/dev/null || skip "no python3"
	run blkbox check --amplify none -k 0 --for 1ms --junit odd.xml \
		-o odd.bbx --setup "cp /bin/true '<&\"'\$(printf '\\001\\377]]>')" \
		-- sh -c 'gzip ./*]*'
	echo "$output"
	[ "$status" = 1 ]
	python3 -c 'import xml.dom.minidom as m; m.parse("odd.xml")'
}

@test "explore: SIGTERM ends it with what was covered" {
	blkbox explore -k all --check 'sleep 0.05' --json result.json "$GOOD" \
		3>&- >log 2>&1 &
	local pid=$! status=0
	# Workers have begun once it has children.
	until [ -n "$(pgrep -P $pid)" ]; do :; done
	kill -TERM $pid
	wait $pid || status=$?
	cat log
	[ "$status" = 3 ]
	[[ $(result .incomplete_why) == *interrupted* ]]
}
