/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to the harness: the handler and the encoding of requests. */
#ifndef TESTS_FACE_STREAMS_H
#define TESTS_FACE_STREAMS_H

#include "harness.h"

void h_encode_ask(uint8_t head[H_ASK_SIZE], const struct h_ask *ask);
bool h_decode_ask(const uint8_t head[H_ASK_SIZE], struct h_ask *ask);
/* The handler of all services; context is the bed. */
int32_t h_serve(rxw_call *call, void *context);
/* A descriptor of a file with the pattern's whole table. */
int h_pattern_file(void);

#endif
