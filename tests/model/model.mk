# The models, and the reference of what calls return. Included by the top Makefile; uses BUILD.

.PHONY: test/models
test/models: host-asan ## check the Promela models with spin: the right ones exhaustively, every planted bug found; draw N runs of calls [200] and judge their answers (about three minutes of one core; make test leaves the largest out)
	@tests/model/run.py --build $(BUILD)/models
	@/usr/bin/python3 tests/model/draw.py --build $(BUILD) --examples $(or $(N),200)
