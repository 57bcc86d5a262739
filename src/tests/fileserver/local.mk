# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/fileserver: check_tests += src/tests/fileserver/test_NAME (see src/tests/local.mk).

fileserver_test_fixture = src/tests/fileserver/fixture.c src/tests/fileserver/fixture.h
fileserver_answer = src/tests/fileserver/callbacks/answer.c src/tests/fileserver/callbacks/answer.h
fileserver_test_libs = src/fileserver/libfileserver.la src/program/libprogram.la src/afs/libafs.la \
	src/rx/librxwire.la $(CHECK_LIBS) $(PTHREAD_LIBS)

check_tests += src/tests/fileserver/callbacks/test_callbacks
src_tests_fileserver_callbacks_test_callbacks_SOURCES = \
	src/tests/fileserver/callbacks/test_callbacks.c $(fileserver_test_fixture)
src_tests_fileserver_callbacks_test_callbacks_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/callbacks/test_clients
src_tests_fileserver_callbacks_test_clients_SOURCES = \
	src/tests/fileserver/callbacks/test_clients.c $(fileserver_test_fixture)
src_tests_fileserver_callbacks_test_clients_LDADD = $(fileserver_test_libs)
src_tests_fileserver_callbacks_test_clients_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_unlock

check_tests += src/tests/fileserver/callbacks/test_ledger
src_tests_fileserver_callbacks_test_ledger_SOURCES = \
	src/tests/fileserver/callbacks/test_ledger.c $(fileserver_test_fixture)
src_tests_fileserver_callbacks_test_ledger_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/callbacks/test_breaks
src_tests_fileserver_callbacks_test_breaks_LDADD = $(fileserver_test_libs)
src_tests_fileserver_callbacks_test_breaks_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pthread_cond_broadcast

check_tests += src/tests/fileserver/guard/test_acl
src_tests_fileserver_guard_test_acl_LDADD = $(fileserver_test_libs)

fileserver_fakecell = src/tests/fileserver/member/fakecell.c src/tests/fileserver/member/fakecell.h \
	$(fileserver_test_fixture)
check_tests += src/tests/fileserver/member/test_answers
src_tests_fileserver_member_test_answers_SOURCES = \
	src/tests/fileserver/member/test_answers.c $(fileserver_fakecell)
src_tests_fileserver_member_test_answers_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/test_member_server
src_tests_fileserver_test_member_server_SOURCES = \
	src/tests/fileserver/test_member_server.c $(fileserver_fakecell)
src_tests_fileserver_test_member_server_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/audit/test_audit
src_tests_fileserver_audit_test_audit_LDADD = $(fileserver_test_libs)
src_tests_fileserver_audit_test_audit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=write

check_tests += src/tests/fileserver/service/test_locks
src_tests_fileserver_service_test_locks_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/service/test_permits
src_tests_fileserver_service_test_permits_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/service/test_places
src_tests_fileserver_service_test_places_LDADD = $(fileserver_test_libs)
src_tests_fileserver_service_test_places_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pthread_mutex_lock

check_tests += src/tests/fileserver/control/test_control
src_tests_fileserver_control_test_control_LDADD = $(JANSSON_LIBS) $(fileserver_test_libs)

check_tests += src/tests/fileserver/cell/test_locations
src_tests_fileserver_cell_test_locations_SOURCES = src/tests/fileserver/cell/test_locations.c \
	src/tests/fileserver/cell/cell_store.h
src_tests_fileserver_cell_test_locations_LDADD = $(fileserver_test_libs)
check_tests += src/tests/fileserver/cell/test_relocate
src_tests_fileserver_cell_test_relocate_SOURCES = src/tests/fileserver/cell/test_relocate.c \
	src/tests/fileserver/cell/cell_store.h
src_tests_fileserver_cell_test_relocate_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/cell/test_transactions
src_tests_fileserver_cell_test_transactions_SOURCES = src/tests/fileserver/cell/test_transactions.c \
	src/tests/fileserver/cell/cell_store.h
src_tests_fileserver_cell_test_transactions_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/service/test_fs_service
src_tests_fileserver_service_test_fs_service_SOURCES = \
	src/tests/fileserver/service/test_fs_service.c $(fileserver_test_fixture) $(fileserver_answer)
src_tests_fileserver_service_test_fs_service_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/bos/test_bos_service
src_tests_fileserver_bos_test_bos_service_SOURCES = \
	src/tests/fileserver/bos/test_bos_service.c src/tests/fileserver/anycall.h $(fileserver_test_fixture)
src_tests_fileserver_bos_test_bos_service_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/pt/test_pt_service
src_tests_fileserver_pt_test_pt_service_SOURCES = \
	src/tests/fileserver/pt/test_pt_service.c src/tests/fileserver/anycall.h $(fileserver_test_fixture)
src_tests_fileserver_pt_test_pt_service_LDADD = $(fileserver_test_libs)

fileserver_shop = src/tests/fileserver/shop.c src/tests/fileserver/shop.h $(fileserver_test_fixture)
check_tests += src/tests/fileserver/service/test_store_service
src_tests_fileserver_service_test_store_service_SOURCES = \
	src/tests/fileserver/service/test_store_service.c $(fileserver_shop)
src_tests_fileserver_service_test_store_service_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/service/test_sessions
src_tests_fileserver_service_test_sessions_SOURCES = \
	src/tests/fileserver/service/test_sessions.c $(fileserver_shop)
src_tests_fileserver_service_test_sessions_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/service/test_remains
src_tests_fileserver_service_test_remains_SOURCES = \
	src/tests/fileserver/service/test_remains.c $(fileserver_shop)
src_tests_fileserver_service_test_remains_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/service/test_small_fetches
src_tests_fileserver_service_test_small_fetches_SOURCES = \
	src/tests/fileserver/service/test_small_fetches.c $(fileserver_test_fixture)
src_tests_fileserver_service_test_small_fetches_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/service/test_slow_clients
src_tests_fileserver_service_test_slow_clients_SOURCES = \
	src/tests/fileserver/service/test_slow_clients.c $(fileserver_shop)
src_tests_fileserver_service_test_slow_clients_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/service/test_waiting
src_tests_fileserver_service_test_waiting_SOURCES = \
	src/tests/fileserver/service/test_waiting.c $(fileserver_shop)
src_tests_fileserver_service_test_waiting_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/service/test_bounds
src_tests_fileserver_service_test_bounds_SOURCES = \
	src/tests/fileserver/service/test_bounds.c $(fileserver_shop)
src_tests_fileserver_service_test_bounds_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/service/test_slow_disk
src_tests_fileserver_service_test_slow_disk_SOURCES = \
	src/tests/fileserver/service/test_slow_disk.c src/tests/volume/store/spy.c src/tests/volume/store/spy.h \
	$(fileserver_shop)
src_tests_fileserver_service_test_slow_disk_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/test_store_server
src_tests_fileserver_test_store_server_SOURCES = \
	src/tests/fileserver/test_store_server.c $(fileserver_test_fixture)
src_tests_fileserver_test_store_server_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/guard/test_guard
src_tests_fileserver_guard_test_guard_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/base/test_trim
src_tests_fileserver_base_test_trim_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/base/test_volcounts
src_tests_fileserver_base_test_volcounts_SOURCES = src/tests/fileserver/base/test_volcounts.c
src_tests_fileserver_base_test_volcounts_LDADD = src/fileserver/libfileserver.la $(CHECK_LIBS) $(PTHREAD_LIBS)

check_tests += src/tests/fileserver/base/test_log
src_tests_fileserver_base_test_log_SOURCES = \
	src/tests/fileserver/base/test_log.c $(fileserver_test_fixture)
src_tests_fileserver_base_test_log_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/test_manager
src_tests_fileserver_test_manager_SOURCES = \
	src/tests/fileserver/test_manager.c $(fileserver_test_fixture)
src_tests_fileserver_test_manager_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/test_killed
src_tests_fileserver_test_killed_SOURCES = src/tests/fileserver/test_killed.c $(fileserver_test_fixture)
src_tests_fileserver_test_killed_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/test_stop
src_tests_fileserver_test_stop_SOURCES = \
	src/tests/fileserver/test_stop.c $(fileserver_test_fixture)
src_tests_fileserver_test_stop_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/test_protection
src_tests_fileserver_test_protection_SOURCES = \
	src/tests/fileserver/test_protection.c $(fileserver_test_fixture)
src_tests_fileserver_test_protection_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/io/test_readers
src_tests_fileserver_io_test_readers_SOURCES = \
	src/tests/fileserver/io/test_readers.c $(fileserver_test_fixture)
src_tests_fileserver_io_test_readers_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/io/test_fairrate
src_tests_fileserver_io_test_fairrate_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/io/test_saturation
src_tests_fileserver_io_test_saturation_SOURCES = \
	src/tests/fileserver/io/test_saturation.c $(fileserver_shop)
src_tests_fileserver_io_test_saturation_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/io/test_task
src_tests_fileserver_io_test_task_SOURCES = \
	src/tests/fileserver/io/test_task.c $(fileserver_test_fixture)
src_tests_fileserver_io_test_task_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/test_rxfsd_net
src_tests_fileserver_test_rxfsd_net_SOURCES = \
	src/tests/fileserver/test_rxfsd_net.c $(fileserver_test_fixture) $(support_ports)
src_tests_fileserver_test_rxfsd_net_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/test_state
src_tests_fileserver_test_state_SOURCES = \
	src/tests/fileserver/test_state.c $(fileserver_test_fixture)
src_tests_fileserver_test_state_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/location/test_vl_service
src_tests_fileserver_location_test_vl_service_SOURCES = \
	src/tests/fileserver/location/test_vl_service.c $(fileserver_test_fixture)
src_tests_fileserver_location_test_vl_service_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/test_watch
src_tests_fileserver_test_watch_SOURCES = \
	src/tests/fileserver/test_watch.c $(fileserver_test_fixture) $(fileserver_answer)
src_tests_fileserver_test_watch_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/service/test_vol_admin
src_tests_fileserver_service_test_vol_admin_SOURCES = \
	src/tests/fileserver/service/test_vol_admin.c src/tests/fileserver/anycall.h $(fileserver_shop)
src_tests_fileserver_service_test_vol_admin_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/service/test_vol_service
src_tests_fileserver_service_test_vol_service_SOURCES = \
	src/tests/fileserver/service/test_vol_service.c src/tests/fileserver/cell/cell_store.h \
	$(fileserver_test_fixture)
src_tests_fileserver_service_test_vol_service_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/service/test_xstats
src_tests_fileserver_service_test_xstats_SOURCES = \
	src/tests/fileserver/service/test_xstats.c $(fileserver_test_fixture)
src_tests_fileserver_service_test_xstats_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/test_rotation
src_tests_fileserver_test_rotation_SOURCES = \
	src/tests/fileserver/test_rotation.c $(fileserver_test_fixture)
src_tests_fileserver_test_rotation_LDADD = $(fileserver_test_libs)

check_tests += src/tests/fileserver/test_services_net
src_tests_fileserver_test_services_net_SOURCES = \
	src/tests/fileserver/test_services_net.c $(fileserver_test_fixture)
src_tests_fileserver_test_services_net_LDADD = $(fileserver_test_libs)

# When made by name, programs do not wait for BUILT_SOURCES.
fileserver_tests = breaks callbacks clients fs_service layer log manager protection readers rxfsd_net \
	rotation services_net state store vl_service vol_service volume watch xstats
$(fileserver_tests:%=src/tests/fileserver/test_%.$(OBJEXT)) \
		src/tests/fileserver/fixture.$(OBJEXT): $(afs_headers)

# The program itself: messages, exit status, signals.
check_scripts += src/tests/fileserver/rxfsd.sh

# Its unit.
check_scripts += src/tests/fileserver/unit.sh

# The benchmark's analysis of its time line.
check_scripts += src/tests/fileserver/timeline.sh
