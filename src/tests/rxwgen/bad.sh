#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# rxwgen rejects each input of bad/*.cases with the expected messages, and leaves no output file.
#
# A case is a line "== NAME [OPTION...]", the input, a line "--", and the messages. A blank line may follow. The input is
# NAME.xg to rxwgen. An input without messages is a file that others include. In inputs, \xNN is a byte, \c at the end
# of a line leaves its newline out, and a line "\repeat FIRST LAST TEXT" is the text with each number in place of "#".
#
# RXW_UPDATE=1 writes the messages into the cases instead; review them before a commit.

export LC_ALL=C
top=$(cd "${top_srcdir:-$(dirname "$0")/../../..}" && pwd) || exit 99
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
rxwgen=$build/src/rxwgen/rxwgen
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
status=0
count=0

# unpack FILE FOLDER: NAME.xg, NAME.expected and NAME.options for each case. Prints the names of those with messages.
unpack() {
	mkdir -p "$2/part" && awk -v folder="$2/" '
		function finish() { if (name != "") close(file); blanks = 0 }
		function hex(digits) { return 16 * (index(h, substr(digits, 1, 1)) - 1) + index(h, substr(digits, 2, 1)) - 1 }
		function input(text,   end) {
			end = "\n"
			if (text ~ /\\c$/) {
				text = substr(text, 1, length(text) - 2)
				end = ""
			}
			while (match(text, /\\x[0-9a-f][0-9a-f]/)) {
				printf "%s%c", substr(text, 1, RSTART - 1), hex(substr(text, RSTART + 2, 2)) > file
				text = substr(text, RSTART + 4)
			}
			printf "%s%s", text, end > file
		}
		function line(text,   part, i, copy) {
			if (messages) {
				print text > file
			} else if (text ~ /^\\repeat /) {
				split(text, part, " ")
				sub(/^[^ ]* [^ ]* [^ ]* /, "", text)
				for (i = part[2]; i <= part[3]; i++) {
					copy = text
					gsub(/#/, i, copy)
					input(copy)
				}
			} else {
				input(text)
			}
		}
		BEGIN { h = "0123456789abcdef" }
		/^== / {
			finish()
			name = $2
			messages = 0
			sub(/^== [^ ]* */, "")
			print > (folder name ".options")
			close(folder name ".options")
			file = folder name ".xg"
			next
		}
		name == "" { next }
		/^--$/ {
			finish()
			messages = 1
			file = folder name ".expected"
			print name
			next
		}
		/^$/ { blanks++; next }
		{
			for (; blanks; blanks--)
				line("")
			line($0)
		}' "$1"
}

# update FILE FOLDER: the messages of this run, FOLDER/NAME.messages, in place of the expected ones.
update() {
	awk -v folder="$2/" '
		/^== / {
			if (skip)
				print ""
			name = $2
			skip = 0
		}
		!skip { print }
		/^--$/ && name != "" {
			while ((getline text < (folder name ".messages")) > 0)
				print text
			skip = 1
		}' "$1" > "$2/updated" && cp "$2/updated" "$1"
}

mkdir "$dir/out"
for cases in "$top"/src/tests/rxwgen/bad/*.cases; do
	group=$(basename "$cases" .cases)
	in=$dir/$group
	names=$(unpack "$cases" "$in") && cd "$in" || exit 99
	for name in $names; do
		# shellcheck disable=SC2046 # the options are words
		"$rxwgen" $(cat "$name.options") -h -o "$dir/out/x.h" -M "$dir/out/x.d" "$name.xg" \
			> "$dir/stdout" 2> "$name.messages"
		code=$?
		if [ -z "$RXW_UPDATE" ] && ! diff -u "$name.expected" "$name.messages"; then
			echo "FAIL: $group.cases: $name: other messages"
			status=1
		fi
		[ $code -eq 1 ] || { echo "FAIL: $group.cases: $name: exit status $code, not 1"; status=1; }
		[ ! -s "$dir/stdout" ] || { echo "FAIL: $group.cases: $name: unexpected standard output"; status=1; }
		for file in "$dir"/out/* "$dir"/out/.[!.]*; do
			[ ! -e "$file" ] || { echo "FAIL: $group.cases: $name left ${file##*/}"; status=1; rm -f "$file"; }
		done
		count=$((count + 1))
	done
	[ -z "$RXW_UPDATE" ] || update "$cases" "$in" || exit 99
done
[ $count -ge 100 ] || { echo "FAIL: only $count inputs in bad/"; status=1; }
[ $status -ne 0 ] || echo "$count invalid inputs are rejected with the expected messages"
exit $status
