/* SPDX-License-Identifier: BSD-2-Clause */
/* What can be done about an error of Kerberos. */
#ifndef KEYS_ADVICE_H
#define KEYS_ADVICE_H

#include <stddef.h>
#include <stdint.h>

/* "; renew it with kinit -R, ...", to be put behind the error's text, or "" where nothing helps. Static. */
const char *rxw_kerberos_advice(int32_t code);

/* Text and advice for a code that another machine sent. Returns out. */
char *rxw_kerberos_text(int32_t code, char *out, size_t room);

#endif
