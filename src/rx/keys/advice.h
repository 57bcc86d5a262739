/* SPDX-License-Identifier: BSD-2-Clause */
/* Remedies for errors of Kerberos. */
#ifndef KEYS_ADVICE_H
#define KEYS_ADVICE_H

#include <stddef.h>
#include <stdint.h>

/*
 * "; renew it with kinit -R, ...", to be appended to the error's text; "" without a remedy. Static.
 */
const char *rxw_kerberos_advice(int32_t code);

/* Text and remedy for a code from another machine. Returns out. */
char *rxw_kerberos_text(int32_t code, char *out, size_t room);

#endif
