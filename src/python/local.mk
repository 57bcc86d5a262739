# SPDX-License-Identifier: BSD-2-Clause
# The Python packages rxwire, for modules that `rxwgen --python` writes, and rxafs: doc/python.md. Nothing is compiled.

python_files = \
	src/python/rxwire/__init__.py src/python/rxwire/__init__.pyi \
	src/python/rxwire/_abi.py src/python/rxwire/_metrics.py \
	src/python/rxwire/aio.py src/python/rxwire/aio.pyi \
	src/python/rxwire/core.py src/python/rxwire/core.pyi \
	src/python/rxwire/errors.py src/python/rxwire/errors.pyi \
	src/python/rxwire/rpc.py src/python/rxwire/rpc.pyi \
	src/python/rxwire/xdr.py src/python/rxwire/xdr.pyi \
	src/python/rxwire/py.typed
# The package rxafs, with the types that make-rxafs-abi has made of the headers.
rxafs_python_files = \
	src/python/rxafs/__init__.py src/python/rxafs/_abi.py src/python/rxafs/client.py src/python/rxafs/errors.py \
	src/python/rxafs/files.py src/python/rxafs/handles.py src/python/rxafs/py.typed src/python/rxafs/watch.py
EXTRA_DIST += $(python_files) $(rxafs_python_files) src/python/make-rxafs-abi src/python/pyproject.toml

if PYTHON_PACKAGE
rxwirepydir = $(pythondir)/rxwire
rxwirepy_DATA = $(python_files)
rxafspydir = $(pythondir)/rxafs
rxafspy_DATA = $(rxafs_python_files)
endif
