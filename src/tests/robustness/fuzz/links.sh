# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# Whether a compiler has libFuzzer: its libraries are a package of their own, and a compiler alone compiles all and
# then links nothing. To be sourced.

# links_targets COMPILER PROGRAM: 0 if it makes that program, a target that does nothing.
links_targets() {
	echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
		$1 -fsanitize=fuzzer,address,undefined -x c -o "$2" -
}
