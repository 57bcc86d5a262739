/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * assert() of the library. A failure names the file and the line, without the text of the condition: the texts of all
 * conditions are 6 KB.
 */
#ifndef RXW_BASE_ASSERT_H
#define RXW_BASE_ASSERT_H

__attribute__((noreturn, cold)) void rxw_assertion_failed(const char *file, int line);

#undef assert
#ifdef NDEBUG
#	define assert(condition) ((void)0)
#else
#	define assert(condition) ((condition) ? (void)0 : rxw_assertion_failed(__FILE__, __LINE__))
#endif

#endif
