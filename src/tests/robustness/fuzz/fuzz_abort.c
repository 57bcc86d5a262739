/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: bodies of ABORT packets, and the texts of their codes. */

#include "fuzz.h"

#include <string.h>

#include <rxwire/error.h>

#include "base/wire.h"

const char fuzz_name[] = "abort";
const size_t fuzz_max = 16;
const unsigned fuzz_cost = 1;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int32_t code = 0, portable;

	if (!rxw_abort_get(data, size, &code)) {
		FUZZ_CHECK(size < 4);
		return 0;
	}
	FUZZ_CHECK(code != 0);
	FUZZ_CHECK(strlen(rxw_code_text(code)) > 0);
	FUZZ_CHECK(strlen(rxw_strerror(code)) > 0);
	portable = rxw_code_from_errno(rxw_code_to_errno(code));
	FUZZ_CHECK(portable != 0);
	return 0;
}
