# Every target is one call of setup_lab.py, which works without make too. Another Python: make lab PYTHON=python3.12
# More words for the command: make test ARGS="-k sharding"    make lab ARGS="--no-browser --port 9000"
PYTHON ?= python3

.PHONY: lab test test-long bench lint lessons
lab test test-long bench lint lessons:
	@$(PYTHON) setup_lab.py $@ $(ARGS)
