# The models and the replay of traces against them. Included by the top Makefile; uses BUILD.

.PHONY: test/models
test/models: ## check the Promela models with spin: the right ones exhaustively, every planted bug found (about two minutes of one core; make test leaves the largest out)
	@tests/model/run.py --build $(BUILD)/models
