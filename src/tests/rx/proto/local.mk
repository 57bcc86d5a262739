# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/proto: one folder for each module. Each program has one source of its own name.

proto_bench = src/tests/rx/proto/bench.c src/tests/rx/proto/bench.h $(support_host)

check_tests += src/tests/rx/proto/peer/test_exchange
src_tests_rx_proto_peer_test_exchange_SOURCES = src/tests/rx/proto/peer/test_exchange.c $(proto_bench)

check_tests += src/tests/rx/proto/peer/test_null
src_tests_rx_proto_peer_test_null_SOURCES = src/tests/rx/proto/peer/test_null.c $(proto_bench)

check_tests += src/tests/rx/proto/peer/test_class
src_tests_rx_proto_peer_test_class_SOURCES = src/tests/rx/proto/peer/test_class.c $(proto_bench)

check_tests += src/tests/rx/proto/conn/test_call
src_tests_rx_proto_conn_test_call_SOURCES = src/tests/rx/proto/conn/test_call.c $(proto_bench)

check_tests += src/tests/rx/proto/conn/test_input
src_tests_rx_proto_conn_test_input_SOURCES = src/tests/rx/proto/conn/test_input.c $(proto_bench)

check_tests += src/tests/rx/proto/conn/test_timer
src_tests_rx_proto_conn_test_timer_SOURCES = src/tests/rx/proto/conn/test_timer.c $(proto_bench)

check_tests += src/tests/rx/proto/conn/test_conn
src_tests_rx_proto_conn_test_conn_SOURCES = src/tests/rx/proto/conn/test_conn.c $(proto_bench)

check_tests += src/tests/rx/proto/conn/test_finished_call
src_tests_rx_proto_conn_test_finished_call_SOURCES = src/tests/rx/proto/conn/test_finished_call.c $(proto_bench)

check_tests += src/tests/rx/proto/conn/test_table
src_tests_rx_proto_conn_test_table_SOURCES = src/tests/rx/proto/conn/test_table.c $(proto_bench)

check_tests += src/tests/rx/proto/peer/test_run
src_tests_rx_proto_peer_test_run_SOURCES = src/tests/rx/proto/peer/test_run.c $(proto_bench)

check_tests += src/tests/rx/proto/peer/test_control
src_tests_rx_proto_peer_test_control_SOURCES = src/tests/rx/proto/peer/test_control.c $(proto_bench)

check_tests += src/tests/rx/proto/peer/test_validation
src_tests_rx_proto_peer_test_validation_SOURCES = src/tests/rx/proto/peer/test_validation.c $(proto_bench)

check_tests += src/tests/rx/proto/peer/test_peer
src_tests_rx_proto_peer_test_peer_SOURCES = src/tests/rx/proto/peer/test_peer.c $(proto_bench)

check_tests += src/tests/rx/proto/peer/test_wide
src_tests_rx_proto_peer_test_wide_SOURCES = src/tests/rx/proto/peer/test_wide.c $(proto_bench)

check_tests += src/tests/rx/proto/recv/test_ack
src_tests_rx_proto_recv_test_ack_SOURCES = src/tests/rx/proto/recv/test_ack.c $(proto_bench)

check_tests += src/tests/rx/proto/recv/test_queue
src_tests_rx_proto_recv_test_queue_SOURCES = src/tests/rx/proto/recv/test_queue.c $(proto_bench)

check_tests += src/tests/rx/proto/send/test_ack_input
src_tests_rx_proto_send_test_ack_input_SOURCES = src/tests/rx/proto/send/test_ack_input.c $(proto_bench)
check_tests += src/tests/rx/proto/send/test_pmtu
src_tests_rx_proto_send_test_pmtu_SOURCES = src/tests/rx/proto/send/test_pmtu.c $(proto_bench)

check_tests += src/tests/rx/proto/send/test_transmit
src_tests_rx_proto_send_test_transmit_SOURCES = src/tests/rx/proto/send/test_transmit.c $(proto_bench)

check_tests += src/tests/rx/proto/send/test_queue
src_tests_rx_proto_send_test_queue_SOURCES = src/tests/rx/proto/send/test_queue.c $(proto_bench)

check_tests += src/tests/rx/proto/send/test_sent
src_tests_rx_proto_send_test_sent_SOURCES = src/tests/rx/proto/send/test_sent.c $(proto_bench)

check_tests += src/tests/rx/proto/peer/test_slab
src_tests_rx_proto_peer_test_slab_SOURCES = src/tests/rx/proto/peer/test_slab.c $(proto_bench)

check_tests += src/tests/rx/proto/test_amplification
src_tests_rx_proto_test_amplification_SOURCES = src/tests/rx/proto/test_amplification.c $(proto_bench)

check_tests += src/tests/rx/proto/test_conformance_acks
src_tests_rx_proto_test_conformance_acks_SOURCES = src/tests/rx/proto/test_conformance_acks.c $(proto_bench)

check_tests += src/tests/rx/proto/test_conformance_auth
src_tests_rx_proto_test_conformance_auth_SOURCES = src/tests/rx/proto/test_conformance_auth.c $(proto_bench) \
	$(support_challenger)

check_tests += src/tests/rx/proto/test_conformance_calls
src_tests_rx_proto_test_conformance_calls_SOURCES = src/tests/rx/proto/test_conformance_calls.c $(proto_bench)

check_tests += src/tests/rx/proto/test_conformance_timers
src_tests_rx_proto_test_conformance_timers_SOURCES = src/tests/rx/proto/test_conformance_timers.c $(proto_bench)

check_tests += src/tests/rx/proto/test_scenarios
src_tests_rx_proto_test_scenarios_SOURCES = src/tests/rx/proto/test_scenarios.c $(proto_bench)
