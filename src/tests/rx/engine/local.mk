# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/engine: one line for each program; its source is the same name with .c.
# All but test_core and test_files use the server and client of src/tests/rx/api.

engine_arrival = src/tests/rx/engine/arrival.c src/tests/rx/engine/arrival.h

check_tests += src/tests/rx/engine/test_actions
src_tests_rx_engine_test_actions_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_admit
src_tests_rx_engine_test_admit_SOURCES = src/tests/rx/engine/test_admit.c $(engine_arrival)
src_tests_rx_engine_test_admit_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_callers
src_tests_rx_engine_test_callers_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_core
check_tests += src/tests/rx/engine/test_files
src_tests_rx_engine_test_files_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pthread_create
check_tests += src/tests/rx/engine/test_idle
src_tests_rx_engine_test_idle_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_inspect
src_tests_rx_engine_test_inspect_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_listener
src_tests_rx_engine_test_listener_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_locks
src_tests_rx_engine_test_locks_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_lookup
src_tests_rx_engine_test_lookup_SOURCES = src/tests/rx/engine/test_lookup.c $(engine_arrival)
src_tests_rx_engine_test_lookup_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_many
src_tests_rx_engine_test_many_SOURCES = src/tests/rx/engine/test_many.c $(support_asked)
src_tests_rx_engine_test_many_LDADD = $(harness_libs)
src_tests_rx_engine_test_many_LDFLAGS = $(AM_LDFLAGS) $(support_asked_flags)
check_tests += src/tests/rx/engine/test_memory
src_tests_rx_engine_test_memory_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_overload
src_tests_rx_engine_test_overload_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_place
src_tests_rx_engine_test_place_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_queue_role
src_tests_rx_engine_test_queue_role_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_receive
src_tests_rx_engine_test_receive_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_sealing
src_tests_rx_engine_test_sealing_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_senders
src_tests_rx_engine_test_senders_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_shared_sleep
src_tests_rx_engine_test_shared_sleep_LDADD = $(harness_libs)
src_tests_rx_engine_test_shared_sleep_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_unlock,--wrap=epoll_wait
check_tests += src/tests/rx/engine/test_timer
src_tests_rx_engine_test_timer_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_transmit
src_tests_rx_engine_test_transmit_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_bursts
src_tests_rx_engine_test_bursts_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_verify
src_tests_rx_engine_test_verify_LDADD = $(harness_libs)
src_tests_rx_engine_test_verify_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rxw_thread_create
check_tests += src/tests/rx/engine/test_waiting
src_tests_rx_engine_test_waiting_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_workers
src_tests_rx_engine_test_workers_LDADD = $(harness_libs)
