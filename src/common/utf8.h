/* SPDX-License-Identifier: BSD-2-Clause */
/* Characters of UTF-8. */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

#include <stddef.h>

/* The bytes of the character at `at`, in a text that ends with a NUL. 0: there is none that is valid. */
static inline size_t utf8_character_bytes(const unsigned char *at)
{
	size_t length = *at < 0x80   ? 1
			: *at < 0xc2 ? 0
			: *at < 0xe0 ? 2
			: *at < 0xf0 ? 3
			: *at < 0xf5 ? 4
				     : 0;

	for (size_t i = 1; i < length; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	/* Refuse what is longer than needed, surrogates, and numbers beyond the last character. */
	if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) ||
	    (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f))
		return 0;
	return length;
}
#endif
