# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/proto: one line for each program; its source is the same name with .c.

proto_bench = src/tests/rx/proto/bench.c src/tests/rx/proto/bench.h

check_tests += src/tests/rx/proto/test_ack
src_tests_rx_proto_test_ack_SOURCES = src/tests/rx/proto/test_ack.c $(proto_bench)

check_tests += src/tests/rx/proto/test_ackinput
src_tests_rx_proto_test_ackinput_SOURCES = src/tests/rx/proto/test_ackinput.c $(proto_bench)

check_tests += src/tests/rx/proto/test_amplification
src_tests_rx_proto_test_amplification_SOURCES = src/tests/rx/proto/test_amplification.c $(proto_bench)

check_tests += src/tests/rx/proto/test_call
src_tests_rx_proto_test_call_SOURCES = src/tests/rx/proto/test_call.c $(proto_bench)

check_tests += src/tests/rx/proto/test_callinput
src_tests_rx_proto_test_callinput_SOURCES = src/tests/rx/proto/test_callinput.c $(proto_bench)

check_tests += src/tests/rx/proto/test_calltimer
src_tests_rx_proto_test_calltimer_SOURCES = src/tests/rx/proto/test_calltimer.c $(proto_bench)

check_tests += src/tests/rx/proto/test_conformance_acks
src_tests_rx_proto_test_conformance_acks_SOURCES = src/tests/rx/proto/test_conformance_acks.c $(proto_bench)

check_tests += src/tests/rx/proto/test_conformance_auth
src_tests_rx_proto_test_conformance_auth_SOURCES = src/tests/rx/proto/test_conformance_auth.c $(proto_bench)

check_tests += src/tests/rx/proto/test_conformance_calls
src_tests_rx_proto_test_conformance_calls_SOURCES = src/tests/rx/proto/test_conformance_calls.c $(proto_bench)

check_tests += src/tests/rx/proto/test_conformance_timers
src_tests_rx_proto_test_conformance_timers_SOURCES = src/tests/rx/proto/test_conformance_timers.c $(proto_bench)

check_tests += src/tests/rx/proto/test_connauth
src_tests_rx_proto_test_connauth_SOURCES = src/tests/rx/proto/test_connauth.c $(proto_bench)

check_tests += src/tests/rx/proto/test_connection
src_tests_rx_proto_test_connection_SOURCES = src/tests/rx/proto/test_connection.c $(proto_bench)

check_tests += src/tests/rx/proto/test_conntable
src_tests_rx_proto_test_conntable_SOURCES = src/tests/rx/proto/test_conntable.c $(proto_bench)

check_tests += src/tests/rx/proto/test_control
src_tests_rx_proto_test_control_SOURCES = src/tests/rx/proto/test_control.c $(proto_bench)

check_tests += src/tests/rx/proto/test_ended
src_tests_rx_proto_test_ended_SOURCES = src/tests/rx/proto/test_ended.c $(proto_bench)

check_tests += src/tests/rx/proto/test_peer
src_tests_rx_proto_test_peer_SOURCES = src/tests/rx/proto/test_peer.c $(proto_bench)

check_tests += src/tests/rx/proto/test_recvq
src_tests_rx_proto_test_recvq_SOURCES = src/tests/rx/proto/test_recvq.c $(proto_bench)

check_tests += src/tests/rx/proto/test_run
src_tests_rx_proto_test_run_SOURCES = src/tests/rx/proto/test_run.c $(proto_bench)

check_tests += src/tests/rx/proto/test_scenarios
src_tests_rx_proto_test_scenarios_SOURCES = src/tests/rx/proto/test_scenarios.c $(proto_bench)

check_tests += src/tests/rx/proto/test_security_null
src_tests_rx_proto_test_security_null_SOURCES = src/tests/rx/proto/test_security_null.c $(proto_bench)

check_tests += src/tests/rx/proto/test_security_test
src_tests_rx_proto_test_security_test_SOURCES = src/tests/rx/proto/test_security_test.c $(proto_bench)

check_tests += src/tests/rx/proto/test_sendq
src_tests_rx_proto_test_sendq_SOURCES = src/tests/rx/proto/test_sendq.c $(proto_bench)

check_tests += src/tests/rx/proto/test_slab
src_tests_rx_proto_test_slab_SOURCES = src/tests/rx/proto/test_slab.c $(proto_bench)

check_tests += src/tests/rx/proto/test_question
src_tests_rx_proto_test_question_SOURCES = src/tests/rx/proto/test_question.c $(proto_bench)

check_tests += src/tests/rx/proto/test_strangers
src_tests_rx_proto_test_strangers_SOURCES = src/tests/rx/proto/test_strangers.c $(proto_bench)

check_tests += src/tests/rx/proto/test_transmit
src_tests_rx_proto_test_transmit_SOURCES = src/tests/rx/proto/test_transmit.c $(proto_bench)
